//! Deliberate mistakes: each is a design, or an order of steps, that somebody could take for right.
//! A check that does not find them proves nothing.

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A completion is conditional on the row only. Rule F1.
    NoFence,
    /// A completion is conditional on the owner, not on the epoch. Rule F1.
    FenceWithoutEpoch,
    /// Whoever takes a partition keeps its epoch. Rule L3.
    SameEpoch,
    /// Whoever takes the partition of a process that was buried keeps its epoch: it is dead, is it
    /// not? Rule L3.
    BuriedSameEpoch,
    /// Leases are renewed by a statement whose count of rows nobody looks at. Rule L6.
    RenewsBlindly,
    /// What the fence has refused counts as written, and nothing else follows from it. Rule F5.
    IgnoresRefusal,
    /// What the fence has refused is forgotten with its partition, so that the answer to an earlier
    /// claim brings the partition back. Rule F5.
    ForgetsRefusal,
    /// The time of a lease is counted from when its claim was answered, not from when it was asked.
    /// Rule L4.
    CountsFromTheAnswer,
    /// A handler is started without a look at the clock. Rule L5.
    StartsAfterExpiry,
    /// A new session, and work goes on as if the old one had not been gone. Rule T4.
    GoesOnAfterReconnect,
    /// Leases are renewed by a process that has no session. Rule L10.
    ClaimsWithoutSession,
    /// A record that comes back is started beside a later one of its key. Rule M1.
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
    /// Transactions that are under way do not keep a process from sleeping. Rule W3.
    SleepsDespiteWriters,
    /// The publisher's statement sees the flag as it was before its transaction was among the
    /// writers: as under REPEATABLE READ, where the first statement of the transaction, whatever it
    /// is about, decides what all others see. Rule W8.
    FlagOfAnOldSnapshot,
    /// The flag is taken down on a connection of its own, and nobody waits for that. Rule W7.
    TakesFlagDownLater,
    /// Listens again after the connection broke, and does not look at what it missed. Rule W6.
    ListensWithoutLook,
    /// A partition is given up while its handlers run. Rule S4.
    ReleaseBeforeDrain,
    /// A partition is given up on another connection than the one that claims, while a claim is
    /// under way. Rule S5.
    ReleaseDuringClaim,
    /// The row of a process that leaves is deleted while it still finishes what runs. Rule L9.
    RowDeletedBeforeDrain,
    /// A process is found dead by one statement and buried by another. Rule T2.
    BuriesLater,
    /// Leases are taken before the row is there that says that their owner lives. Rule L9.
    ClaimsBeforeRow,
    /// A process that stands still counts when partitions are shared out. Rule S8.
    CountsTheFrozen,
    /// Leases are written like acknowledgements: a crash of the database may forget them. Rule L8.
    AsynchronousLeases,
    /// After an outage of the database reading goes on from the watermark. Rule R10.
    NoSweepAfterOutage,
}
