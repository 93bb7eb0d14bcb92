//! What one fetch is asked for, and what came of it.

/// What the timers ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FetchRequest {
    /// Read pending records of all partitions.
    pub(crate) poll: Option<PollReason>,
    /// Look for scheduled records and deliveries that have become due.
    pub(crate) due: bool,
    /// Read every owned partition from id 0 again.
    pub(crate) sweep: bool,
    /// Microseconds added to the database's clock; zero outside of tests.
    pub(crate) clock_offset: i64,
}

/// Why pending records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PollReason {
    /// Something was published, or may have been.
    Signalled,
    /// The poll interval is over. Nothing says that there is anything, so one cheap probe comes first.
    Timer,
}

/// What a fetch brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FetchSummary {
    /// Records and deliveries that were not in memory.
    pub(crate) new: usize,
    /// Of those, the ones that had become due.
    pub(crate) due: usize,
    /// The fetch looked for what is due, so `next_due` says something.
    pub(crate) looked_for_due: bool,
    /// Microseconds until the next record or delivery is due; none or less if it is overdue.
    pub(crate) next_due: Option<i64>,
    /// Records with ids below those that had been read of their partition before.
    pub(crate) late_found: usize,
    /// An open transaction may still bring such a record.
    pub(crate) expects_late: bool,
}
