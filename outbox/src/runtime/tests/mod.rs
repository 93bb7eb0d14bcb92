//! Tests of lanes: each transition by itself, and all of them against a database in memory.

mod db;
mod examples;
mod fairness;
#[cfg(feature = "testing")]
mod fetcher;
mod laws;
mod others;
mod property;
mod reading;
mod regressions;
mod states;
mod world;

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    handler::{Context, Outcome},
    record::Attempt,
    registry::{
        EventMatch, Invocation, Location, PerHandler, PermanentFailure, Registration, route::Router,
    },
    runtime::{
        engine::Engine,
        lane::{HandlerSettings, LaneSettings},
        ownership::LeaseTable,
    },
};

/// An event `one` goes to the first handler, an event `three` to all.
const HANDLERS: [&str; 3] = ["a", "b", "c"];
/// Whether a record that failed permanently lets the records behind it run, by handler.
const SKIPS_FAILED: [bool; 3] = [false, true, false];
const CONCURRENCY: [u32; 3] = [2, 1, 3];

/// The settings that differ between the tested dispatchers.
#[derive(Debug, Clone, Copy)]
struct Setup {
    stop_on_failure: bool,
    /// Whether `a` completes its records in its own transaction.
    is_transactional: bool,
    /// How many records may be in memory.
    max_records: usize,
    max_burst: usize,
}

impl Setup {
    fn settings(self) -> LaneSettings {
        let handler = |ix: usize| HandlerSettings {
            id: HANDLERS[ix],
            concurrency: CONCURRENCY[ix],
            skips_failed: SKIPS_FAILED[ix],
            is_transactional: self.is_transactional && ix == 0,
        };
        LaneSettings {
            stop_on_failure: self.stop_on_failure,
            max_burst: self.max_burst,
            handlers: PerHandler::for_tests((0..3).map(handler)),
        }
    }

    fn engine(self) -> Engine {
        let secs = Duration::from_secs;
        let leases = LeaseTable::new(Uuid::now_v7(), secs(30), secs(20), Instant::now());
        let router = Router::for_tests(REGISTRATIONS.iter());
        Engine::new(self.settings(), leases, router, 2, self.max_records)
    }
}

static REGISTRATIONS: [Registration; 3] = [
    registration(HANDLERS[0], &["one", "three"]),
    registration(HANDLERS[1], &["three"]),
    registration(HANDLERS[2], &["three"]),
];

const fn registration(id: &'static str, events: &'static [&'static str]) -> Registration {
    const fn nowhere() -> Location {
        Location {
            file: "",
            line: 0,
            column: 0,
        }
    }
    fn never(_: &Context) -> Invocation<'_> {
        Box::pin(async { Outcome::Handled })
    }
    Registration {
        id,
        aliases: &[],
        location: nowhere(),
        event: EventMatch::Patterns(events),
        requires: |_| {},
        invoke: never,
        fallback: None,
        timeout: None,
        concurrency: None,
        on_permanent_failure: PermanentFailure::Block,
        of_trait: None,
        of_attribute: None,
    }
}

fn attempt(number: u32) -> Attempt {
    Attempt {
        number,
        ..Attempt::first()
    }
}
