//! The protocol as it is to be: every state of each scenario is visited, and every property holds.
//!
//! Each scenario has its least number of states, so that a scenario in
//! which little can happen is noticed.

use outbox_model::{explore::explore, protocol::Protocol, scenario::Scenario};

/// A scenario that has more states than this is too large for a test.
const MOST: usize = 1_000_000;

fn holds(scenario: Scenario, at_least: usize) {
    all_hold(&Protocol::right(scenario), at_least);
}

fn all_hold(protocol: &Protocol, at_least: usize) {
    let report = explore(protocol, MOST);
    if let Some(counterexample) = &report.counterexample {
        println!("{counterexample}\n{}", counterexample.state);
    }
    let property = report.counterexample.map(|found| found.property);
    assert_eq!(property, None);
    println!(
        "{} states, {} steps, depth {}",
        report.states, report.steps, report.depth
    );
    assert!(report.complete, "more than {MOST} states");
    assert!(report.states >= at_least, "{} states", report.states);
}

#[test]
fn late_committers() {
    holds(Scenario::READING, 200_000);
}

#[test]
fn late_committers_in_pages() {
    holds(Scenario::READING_IN_PAGES, 10_000);
}

#[test]
fn late_committers_of_two_partitions() {
    holds(Scenario::READING_PARTITIONS, 8_000);
}

#[test]
fn handlers_take_their_time() {
    holds(Scenario::HANDLING, 10_000);
}

#[test]
fn leases_run_out() {
    holds(Scenario::EXPIRY, 70_000);
}

#[test]
fn a_process_crashes() {
    holds(Scenario::CRASH, 50_000);
}

#[test]
fn a_process_loses_its_session() {
    holds(Scenario::SESSION, 70_000);
}

#[test]
fn a_process_loses_its_session_and_order_holds() {
    holds(Scenario::SESSION_ORDER, 50_000);
}

#[test]
fn a_fence_that_is_not_locked_does_no_harm() {
    holds(Scenario::UNLOCKED, 150_000);
}

#[test]
fn reaping_frees_leases() {
    holds(Scenario::SESSION_SNAPSHOT_FREED, 10_000);
}

/// Then even a live process that was reaped starts nothing while the new owner works.
#[test]
fn a_time_of_grace_keeps_a_reaped_process_from_starting_anything() {
    let strict = Protocol {
        strict: true,
        ..Protocol::right(Scenario::SESSION_GRACE)
    };
    all_hold(&strict, 60_000);
}

#[test]
fn freed_leases_and_a_time_of_grace_together() {
    let strict = Protocol {
        strict: true,
        ..Protocol::right(Scenario::SESSION_ALL)
    };
    all_hold(&strict, 8_000);
}

#[test]
fn partitions_are_handed_over_without_duplicates() {
    holds(Scenario::HAND_OVER, 80_000);
}

#[test]
fn partitions_are_handed_over_while_claims_are_under_way() {
    holds(Scenario::HAND_OVER_RENEWING, 40_000);
}

#[test]
fn partitions_are_handed_over_while_a_transaction_publishes() {
    holds(Scenario::HAND_OVER_LATE, 10_000);
}

#[test]
fn partitions_are_handed_over_while_leases_run_out() {
    holds(Scenario::HAND_OVER_EXPIRY, 100_000);
}

#[test]
fn a_process_leaves_while_a_session_is_lost() {
    holds(Scenario::LEAVING, 10_000);
}

#[test]
fn a_process_that_is_cut_off_is_replaced() {
    holds(Scenario::CUT_OFF, 40_000);
}

#[test]
fn a_listener_is_notified() {
    holds(Scenario::LISTENING, 15_000);
}

#[test]
fn a_process_whose_flag_is_set_may_listen_again_at_once() {
    holds(Scenario::FLAG_KEPT, 15_000);
}

#[test]
fn a_listener_is_notified_whatever_happens_to_others() {
    holds(Scenario::LISTENING_FAULTS, 150_000);
}

#[test]
fn a_listener_is_notified_while_partitions_are_handed_over() {
    holds(Scenario::LISTENING_HAND_OVER, 70_000);
}

#[test]
fn the_database_crashes_and_forgets_the_first_of_two() {
    holds(Scenario::DATABASE_ORDER, 3_000);
}

#[test]
fn the_database_crashes() {
    holds(Scenario::DATABASE, 120_000);
}

#[test]
fn the_database_crashes_while_processes_listen() {
    holds(Scenario::DATABASE_LISTENING, 130_000);
}
