//! Deliberate mistakes: each is a design, or an order of steps, that somebody could take for right.
//! A check that does not find them proves nothing.

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A completion is conditional on the row only.
    NoFence,
    /// A completion is conditional on the owner, not on the epoch.
    FenceWithoutEpoch,
    /// Whoever takes a partition keeps its epoch.
    SameEpoch,
    /// Whoever takes the partition of a process that was buried keeps its epoch: it is dead, is it
    /// not?
    BuriedSameEpoch,
    /// Leases are renewed by a statement whose count of rows nobody looks at.
    RenewsBlindly,
    /// What the fence has refused counts as written, and nothing else follows from it.
    IgnoresRefusal,
    /// What the fence has refused is forgotten with its partition, so that the answer to an earlier
    /// claim brings the partition back.
    ForgetsRefusal,
    /// The time of a lease is counted from when its claim was answered, not from when it was asked.
    CountsFromTheAnswer,
    /// A handler is started without a look at the clock.
    StartsAfterExpiry,
    /// A new session, and work goes on as if the old one had not been gone.
    GoesOnAfterReconnect,
    /// Leases are renewed by a process that has no session.
    ClaimsWithoutSession,
    /// A record that comes back is started beside a later one of its key.
    TwoOfALane,
    /// The watermark is believed: nothing below it is read again.
    NoRescan,
    /// The writers are asked for after the records were read.
    WritersAfterReading,
    /// What came late is read by a statement of its own, after what is new.
    LateInAnotherStatement,
    /// Records are read before they are committed.
    ReadsUncommitted,
    /// What is in memory is left out when rows arrive, not by the statement that reads them: what
    /// was finished in between seems to be new.
    FiltersOnArrival,
    /// The answer to a batch of an earlier epoch counts for what was read since.
    ForgetsByOldBatch,
    /// A record is completed when its handler is started.
    CompletesAtStart,
    /// The notification is sent when the record is written, not when it is committed.
    WakesBeforeCommit,
    /// The flag is set after the last look at the records instead of before.
    FlagAfterLastLook,
    /// Transactions that are under way do not keep a process from sleeping.
    SleepsDespiteWriters,
    /// The publisher's statement sees the flag as it was before its transaction was among the
    /// writers: as under REPEATABLE READ, where the first statement of the transaction, whatever it
    /// is about, decides what all others see.
    FlagOfAnOldSnapshot,
    /// The flag is taken down on a connection of its own, and nobody waits for that.
    TakesFlagDownLater,
    /// Listens again after the connection broke, and does not look at what it missed.
    ListensWithoutLook,
    /// A partition is given up while its handlers run.
    ReleaseBeforeDrain,
    /// A partition is given up on another connection than the one that claims, while a claim is
    /// under way.
    ReleaseDuringClaim,
    /// The row of a process that leaves is deleted while it still finishes what runs.
    RowDeletedBeforeDrain,
    /// A process is found dead by one statement and buried by another.
    BuriesLater,
    /// Leases are taken before the row is there that says that their owner lives.
    ClaimsBeforeRow,
    /// A process that stands still counts when partitions are shared out.
    CountsTheFrozen,
    /// Leases are written like acknowledgements: a crash of the database may forget them.
    AsynchronousLeases,
    /// After an outage of the database reading goes on from the watermark.
    NoSweepAfterOutage,
}
