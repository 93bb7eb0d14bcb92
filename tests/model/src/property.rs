//! What must hold.

/// A property of the protocol. All but [`Lost`](Self::Lost) are about single states and steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// A record is completed only after it was handled.
    CompletedUnhandled,
    /// From wherever the protocol is, its own steps lead to the completion of every committed
    /// record, without a poll of a process that listens, a new publish or a restart.
    Lost,
    /// A handler is started only if all earlier committed records of its key were handled.
    Order,
    /// A completion is accepted only from the process that has owned the partition ever since.
    Fence,
    /// At most one process believes, within the time of its lease, that it has a partition in an
    /// epoch.
    OneBeliever,
    /// Only the owner of a partition starts handlers. Exception: a live process without a session
    /// that was reaped, until its lease has run out, because it cannot know.
    Owner,
    /// The same without the exception. Does not hold: see the tests.
    OwnerAlways,
    /// A record is handled again only after its partition was taken from an owner that had
    /// crashed, stood still or lost its session, or after the database forgot.
    Duplicate,
    /// Handlers of one key run at the same time only then.
    Overlap,
    /// What was rolled back is never handled.
    RolledBack,
    /// A process that listens and has something to do has a notification on its way.
    LostWakeUp,
}
