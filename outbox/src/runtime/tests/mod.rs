//! Lanes: each transition by itself, and all of them against a database in memory.

mod db;
mod examples;
mod fairness;
#[cfg(feature = "testing")]
mod fetcher;
mod found;
mod laws;
mod people;
mod property;
mod reading;
mod states;
mod world;

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    handler::{Context, Outcome},
    record::{Attempt, Record},
    registry::{
        EventMatch, Invocation, Location, PerHandler, PermanentFailure, Registration, route::Router,
    },
    runtime::{
        engine::Engine,
        lane::{HandlerSettings, LaneSettings},
        ownership::LeaseTable,
    },
};

/// An event `one` goes to the first, an event `three` to all.
const HANDLERS: [&str; 3] = ["a", "b", "c"];
/// Those for which a record that failed for good lets the ones behind it go on.
const SKIPS: [bool; 3] = [false, true, false];
const CONCURRENCY: [u32; 3] = [2, 1, 3];

/// What differs between the dispatchers that are tried.
#[derive(Debug, Clone, Copy)]
struct Setup {
    stop_on_failure: bool,
    /// Whether `a` completes its records in its own transaction.
    transactional: bool,
    /// How many records may be in memory.
    max_records: usize,
    max_burst: usize,
}

impl Setup {
    fn settings(self) -> LaneSettings {
        let handler = |ix: usize| HandlerSettings {
            id: HANDLERS[ix],
            concurrency: CONCURRENCY[ix],
            skips_failed: SKIPS[ix],
            is_transactional: self.transactional && ix == 0,
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

fn record(id: i64, key: &str, event: &str) -> Record {
    Record {
        id,
        event_id: Uuid::nil(),
        event: event.to_owned(),
        version: 1,
        key: key.to_owned(),
        payload: String::new(),
        headers: BTreeMap::new(),
        created_at: jiff::Timestamp::UNIX_EPOCH,
        max_retries: None,
    }
}

fn attempt(number: u32) -> Attempt {
    Attempt {
        number,
        ..Attempt::first()
    }
}
