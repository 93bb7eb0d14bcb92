//! The same at larger sizes: minutes, and some gigabytes of memory.
//! `cargo nextest run -p outbox-model --run-ignored only --success-output final`.

use outbox_model::{
    explore::explore,
    protocol::Protocol,
    scenario::{Faults, Scenario},
};

const MOST: usize = 12_000_000;

/// What is to be built, where the model leaves a choice.
const fn as_built(scenario: Scenario) -> Scenario {
    Scenario {
        grace: true,
        frees: true,
        snapshot: true,
        unlocked: true,
        ..scenario
    }
}

fn holds(scenario: Scenario) {
    let protocol = Protocol {
        strict: scenario.grace,
        ..Protocol::right(scenario)
    };
    let report = explore(&protocol, MOST);
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
}

#[test]
#[ignore = "large"]
fn a_partition_comes_back_while_others_commit() {
    holds(Scenario {
        leaves: 1,
        committed: 0,
        ..Scenario::HAND_OVER_LATE
    });
}

#[test]
#[ignore = "large"]
fn leases_run_out_twice_while_others_commit() {
    holds(Scenario {
        workers: 2,
        running: 2,
        transactions: &[&[0], &[1]],
        instant: true,
        faults: Faults {
            expiries: 2,
            ..Faults::NONE
        },
        ..Scenario::CALM
    });
}

#[test]
#[ignore = "large"]
fn everything_happens_to_two_processes_with_two_records() {
    holds(Scenario {
        faults: Faults {
            crashes: 1,
            expiries: 1,
            sessions: 1,
            databases: 0,
        },
        ..Scenario::SESSION_ORDER
    });
}

#[test]
#[ignore = "large"]
fn the_database_crashes_with_two_processes_and_two_records() {
    holds(Scenario {
        transactions: &[&[0], &[0]],
        faults: Faults {
            databases: 1,
            ..Faults::NONE
        },
        ..Scenario::DATABASE
    });
}

#[test]
#[ignore = "large"]
fn a_listener_is_notified_by_three_transactions() {
    holds(Scenario {
        transactions: &[&[0], &[1], &[0]],
        ..Scenario::LISTENING
    });
}

#[test]
#[ignore = "large"]
fn as_built_crashes() {
    holds(as_built(Scenario::CRASH));
}

#[test]
#[ignore = "large"]
fn as_built_leaving() {
    holds(as_built(Scenario {
        faults: Faults {
            expiries: 1,
            sessions: 1,
            ..Faults::NONE
        },
        ..Scenario::LEAVING
    }));
}

#[test]
#[ignore = "large"]
fn as_built_listening() {
    holds(as_built(Scenario::LISTENING_FAULTS));
}

#[test]
#[ignore = "large"]
fn as_built_crashes_of_the_database() {
    holds(as_built(Scenario::DATABASE));
}

#[test]
#[ignore = "large"]
fn as_built_hand_over() {
    holds(as_built(Scenario::HAND_OVER));
}

#[test]
#[ignore = "large"]
fn as_built_hand_over_while_leases_run_out() {
    holds(as_built(Scenario::HAND_OVER_EXPIRY));
}

#[test]
#[ignore = "large"]
fn as_built_a_process_is_cut_off() {
    holds(as_built(Scenario::CUT_OFF));
}

#[test]
#[ignore = "large"]
fn as_built_lost_sessions_and_leases() {
    holds(as_built(Scenario::SESSION));
}

#[test]
#[ignore = "large"]
fn late_committers_in_pages_with_rollbacks() {
    holds(Scenario {
        rollbacks: true,
        ..Scenario::READING_IN_PAGES
    });
}
