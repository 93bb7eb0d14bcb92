//! Mistakes, each found in a scenario in which the protocol without it is right (`right.rs`).

use outbox_model::{
    explore::explore, mistake::Mistake, property::Property, protocol::Protocol, scenario::Scenario,
};

const MOST: usize = 1_000_000;

/// The property that is violated, if any; the shortest way to it is printed.
fn found(protocol: Protocol) -> Option<Property> {
    let report = explore(&protocol, MOST);
    let counterexample = report.counterexample;
    match &counterexample {
        Some(found) => println!("{:?}: {found}", protocol.mistake),
        None => assert!(report.complete, "more than {MOST} states"),
    }
    counterexample.map(|found| found.property)
}

fn breaks(mistake: Mistake, scenario: Scenario, property: Property) {
    assert_eq!(found(Protocol::wrong(scenario, mistake)), Some(property));
}

// Leases.

#[test]
fn no_fence() {
    breaks(Mistake::NoFence, Scenario::EXPIRY, Property::Fence);
    breaks(Mistake::NoFence, Scenario::CRASH, Property::Fence);
}

#[test]
fn a_fence_without_epoch() {
    breaks(
        Mistake::FenceWithoutEpoch,
        Scenario::EXPIRY,
        Property::Fence,
    );
}

#[test]
fn an_epoch_that_is_not_incremented() {
    breaks(Mistake::SameEpoch, Scenario::EXPIRY, Property::Owner);
}

#[test]
fn reaping_a_live_process_without_a_new_epoch() {
    let wrong = Mistake::ReapedSameEpoch;
    breaks(wrong, Scenario::SESSION, Property::OneBeliever);
}

#[test]
fn reaping_in_two_steps() {
    breaks(Mistake::ReapsLater, Scenario::SESSION, Property::Owner);
}

#[test]
fn claiming_before_the_row_is_there() {
    breaks(
        Mistake::ClaimsBeforeRow,
        Scenario::HAND_OVER,
        Property::Owner,
    );
}

#[test]
fn renewing_without_looking_at_the_answer() {
    breaks(Mistake::RenewsBlindly, Scenario::EXPIRY, Property::Owner);
}

#[test]
fn counting_from_the_answer() {
    breaks(
        Mistake::CountsFromTheAnswer,
        Scenario::EXPIRY,
        Property::Owner,
    );
}

#[test]
fn starting_a_handler_after_the_lease_has_run_out() {
    breaks(
        Mistake::StartsAfterExpiry,
        Scenario::EXPIRY,
        Property::Owner,
    );
}

#[test]
fn leases_that_a_crash_of_the_database_forgets() {
    let wrong = Mistake::AsynchronousLeases;
    breaks(wrong, Scenario::DATABASE, Property::OneBeliever);
}

#[test]
fn counting_a_process_that_stands_still() {
    breaks(Mistake::CountsTheFrozen, Scenario::CUT_OFF, Property::Lost);
}

/// No mistake: a limit. A live process that lost its session works until its lease has run out, and
/// the peer that reaps it does not wait for that. Order and fence hold all the same.
#[test]
fn a_live_process_that_was_reaped_starts_handlers_as_the_new_owner_does() {
    let strict = Protocol {
        strict: true,
        ..Protocol::right(Scenario::SESSION)
    };
    assert_eq!(found(strict), Some(Property::OwnerAlways));
}

/// With a time of grace that limit is gone, if the process keeps to it.
#[test]
fn renewing_without_a_session() {
    let strict = Protocol {
        strict: true,
        ..Protocol::wrong(Scenario::SESSION_GRACE, Mistake::ClaimsWithoutSession)
    };
    assert_eq!(found(strict), Some(Property::OwnerAlways));
}

/// No mistake of the protocol, but of the SQL that looks like it: under READ COMMITTED a claim that
/// waited for a lease looks at that lease again, but not at the rows of processes. So a lease is to
/// be freed by the peer that reaps, not taken because its owner has no row.
#[test]
fn taking_a_lease_because_its_owner_had_no_row_when_the_statement_began() {
    let protocol = Protocol::right(Scenario::SESSION_SNAPSHOT);
    assert_eq!(found(protocol), Some(Property::Owner));
}

#[test]
fn continuing_after_a_new_connection() {
    let wrong = Mistake::ContinuesAfterReconnect;
    breaks(wrong, Scenario::SESSION, Property::Owner);
}

// Completions.

/// Harmless as long as a partition is taken only after its lease has run out: then nothing is read
/// before a claim has told. It is not harmless when its owner may be reaped before that.
#[test]
fn taking_what_was_refused_for_written() {
    let wrong = Mistake::IgnoresRefusal;
    breaks(wrong, Scenario::SESSION, Property::Duplicate);
    for scenario in [Scenario::EXPIRY, Scenario::CRASH] {
        assert_eq!(found(Protocol::wrong(scenario, wrong)), None);
    }
}

#[test]
fn forgetting_that_something_was_refused() {
    breaks(
        Mistake::ForgetsRefusal,
        Scenario::SESSION,
        Property::Duplicate,
    );
}

#[test]
fn the_answer_to_a_batch_of_an_earlier_epoch() {
    breaks(
        Mistake::ForgetsByOldBatch,
        Scenario::EXPIRY,
        Property::Duplicate,
    );
}

#[test]
fn completing_at_the_start() {
    let property = Property::CompletedUnhandled;
    breaks(Mistake::CompletesAtStart, Scenario::HANDLING, property);
}

#[test]
fn two_handlers_of_one_lane() {
    breaks(
        Mistake::TwoOfALane,
        Scenario::DATABASE_ORDER,
        Property::Overlap,
    );
}

#[test]
fn no_sweep_after_an_outage() {
    breaks(
        Mistake::NoSweepAfterOutage,
        Scenario::DATABASE,
        Property::Lost,
    );
}

// Reading.

#[test]
fn a_watermark_that_is_believed() {
    breaks(Mistake::NoRescan, Scenario::HANDLING, Property::Lost);
    breaks(Mistake::NoRescan, Scenario::READING, Property::Order);
}

#[test]
fn asking_for_the_writers_after_reading() {
    let wrong = Mistake::WritersAfterReading;
    breaks(wrong, Scenario::HANDLING, Property::Lost);
    breaks(wrong, Scenario::READING, Property::Order);
    breaks(wrong, Scenario::LISTENING, Property::LostWakeUp);
}

#[test]
fn reading_late_ones_in_a_statement_of_its_own() {
    let wrong = Mistake::LateInAnotherStatement;
    breaks(wrong, Scenario::READING, Property::Order);
}

#[test]
fn reading_what_is_not_committed() {
    breaks(
        Mistake::ReadsUncommitted,
        Scenario::READING,
        Property::RolledBack,
    );
}

#[test]
fn leaving_out_what_is_in_memory_when_it_arrives() {
    breaks(
        Mistake::FiltersOnArrival,
        Scenario::HANDLING,
        Property::Duplicate,
    );
}

// Hand-over.

#[test]
fn releasing_before_draining() {
    breaks(
        Mistake::ReleaseBeforeDrain,
        Scenario::HAND_OVER,
        Property::Duplicate,
    );
}

#[test]
fn releasing_while_a_claim_is_under_way() {
    let wrong = Mistake::ReleaseDuringClaim;
    breaks(wrong, Scenario::HAND_OVER_RENEWING, Property::Owner);
    breaks(wrong, Scenario::HAND_OVER_EXPIRY, Property::Owner);
}

#[test]
fn deleting_the_row_before_draining() {
    let wrong = Mistake::RowDeletedBeforeDrain;
    breaks(wrong, Scenario::HAND_OVER, Property::Duplicate);
}

// Listening.

#[test]
fn setting_the_flag_after_the_last_look() {
    breaks(
        Mistake::FlagAfterLastLook,
        Scenario::LISTENING,
        Property::LostWakeUp,
    );
}

#[test]
fn listening_although_there_are_writers() {
    breaks(
        Mistake::ListensDespiteWriters,
        Scenario::LISTENING,
        Property::LostWakeUp,
    );
}

#[test]
fn publishing_with_an_old_snapshot() {
    breaks(
        Mistake::FlagOfAnOldSnapshot,
        Scenario::LISTENING,
        Property::LostWakeUp,
    );
}

#[test]
fn taking_the_flag_down_without_waiting_for_it() {
    breaks(
        Mistake::TakesFlagDownLater,
        Scenario::LISTENING,
        Property::LostWakeUp,
    );
}

#[test]
fn listening_again_without_a_look() {
    let wrong = Mistake::ListensWithoutLook;
    breaks(wrong, Scenario::LISTENING_FAULTS, Property::LostWakeUp);
}

/// A process that was notified too early and reads once more sees the writer, and polls until that
/// has ended: late, but not lost. A process that listens again at once loses the record.
#[test]
fn notifying_before_the_commit() {
    let wrong = Mistake::WakesBeforeCommit;
    breaks(wrong, Scenario::FLAG_KEPT, Property::LostWakeUp);
    assert_eq!(found(Protocol::wrong(Scenario::LISTENING, wrong)), None);
}
