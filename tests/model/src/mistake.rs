//! Deliberate mistakes: each is a design, or an order of steps, that somebody could take for right.
//! A check that does not find them proves nothing.

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A completion is conditional on the row only. Rule F1.
    NoFence,
    /// A completion is conditional on the owner, not on the epoch. Rule F1.
    FenceWithoutEpoch,
    /// A claim that takes a partition keeps its epoch. Rule L3.
    SameEpoch,
    /// A claim that takes the partition of a reaped process keeps its epoch, as if a reaped process
    /// could not still run. Rule L3.
    ReapedSameEpoch,
    /// A process renews leases and ignores how many rows that changed. Rule L6.
    RenewsBlindly,
    /// A process takes a batch that the fence has refused for written. Rule F5.
    IgnoresRefusal,
    /// A process forgets a partition whose batch was refused, so the answer to an earlier claim
    /// brings the partition back. Rule F5.
    ForgetsRefusal,
    /// The time of a lease is counted from when its claim was answered, not from when it was asked.
    /// Rule L4.
    CountsFromTheAnswer,
    /// A handler is started without a look at the clock. Rule L5.
    StartsAfterExpiry,
    /// A process with a new session continues to start work. Rule T4.
    ContinuesAfterReconnect,
    /// Leases are renewed by a process that has no session. Rule L10.
    ClaimsWithoutSession,
    /// A record that comes back is started while a later one of its key runs. Rule M1.
    TwoOfALane,
    /// The watermark is believed: nothing below it is read again. Rule R1.
    NoRescan,
    /// The writers are asked for after the records were read. Rule R2.
    WritersAfterReading,
    /// What came late is read by a statement of its own, after what is new. Rule R3.
    LateInAnotherStatement,
    /// Records are read before they are committed. Rule R12.
    ReadsUncommitted,
    /// What is in memory is left out when rows arrive, not by the statement that reads them: what
    /// was finished in between seems to be new. Rule R8.
    FiltersOnArrival,
    /// The answer to a batch of an earlier epoch counts for what was read since. Rule M5.
    ForgetsByOldBatch,
    /// A record is completed when its handler is started. Rule M8.
    CompletesAtStart,
    /// The notification is sent when the record is written, not when it is committed. Rule W4.
    WakesBeforeCommit,
    /// The flag is set after the last look at the records instead of before. Rule W3.
    FlagAfterLastLook,
    /// A process listens although transactions are under way. Rule W3.
    ListensDespiteWriters,
    /// The publisher's statement sees the flag as it was before its transaction was among the
    /// writers: as under REPEATABLE READ, where the first statement of the transaction, whatever it
    /// is about, decides what all others see. Rule W8.
    FlagOfAnOldSnapshot,
    /// A process takes its flag down on another connection and does not wait for that. Rule W7.
    TakesFlagDownLater,
    /// Listens again after the connection broke, and does not look at what it missed. Rule W6.
    ListensWithoutLook,
    /// A partition is released while its handlers run. Rule S4.
    ReleaseBeforeDrain,
    /// A partition is released on another connection than the one that claims, while a claim is
    /// under way. Rule S5.
    ReleaseDuringClaim,
    /// The row of a process that leaves is deleted while it still finishes what runs. Rule L9.
    RowDeletedBeforeDrain,
    /// A process is found dead by one statement and reaped by another. Rule T2.
    ReapsLater,
    /// Leases are taken before the row is there that says that their owner lives. Rule L9.
    ClaimsBeforeRow,
    /// A process that stands still counts when partitions are shared out. Rule S8.
    CountsTheFrozen,
    /// Leases are written like acknowledgements: a crash of the database may forget them. Rule L8.
    AsynchronousLeases,
    /// After an outage of the database, reading continues from the watermark. Rule R10.
    NoSweepAfterOutage,
}
