//! The two events, one for each handler, and how handlers behave for them.

use std::time::Duration;

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

use crate::history::Handler;

/// The event of the plain handler.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "chaos.plain", key = key)]
pub(crate) struct Plain {
    pub(crate) key: String,
    pub(crate) number: i64,
    pub(crate) event: i64,
}

/// The event of the handler with a transaction.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "chaos.tx", key = key)]
pub(crate) struct Transactional {
    pub(crate) key: String,
    pub(crate) number: i64,
    pub(crate) event: i64,
}

/// How a handler behaves in one attempt. It depends on event and attempt only, so every process
/// behaves in the same way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Behaviour {
    pub(crate) sleep: Duration,
    pub(crate) fails: bool,
    pub(crate) panics: bool,
}

impl Behaviour {
    /// For one event in 3 the handler sleeps up to 50 ms, for one in 3,000 it sleeps 1 s. For one
    /// in 20 it fails one to three times, for one in 200 it panics once.
    pub(crate) fn of(event: i64, attempt: u32) -> Self {
        let hash = hash_of(event.cast_unsigned());
        let sleep = match hash {
            hash if hash % 3000 == 17 => 1000,
            hash if hash.is_multiple_of(3) => (hash >> 20) % 50,
            _ => 0,
        };
        let failures = match (hash >> 32) % 20 {
            0 => 1 + (hash >> 40) % 3,
            _ => 0,
        };
        Self {
            sleep: Duration::from_millis(sleep),
            fails: u64::from(attempt) <= failures,
            panics: attempt == 1 && (hash >> 48).is_multiple_of(200),
        }
    }
}

/// The hash of an event (`splitmix64`): events with neighbouring numbers get unrelated hashes.
fn hash_of(event: u64) -> u64 {
    let mut hash = event.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

impl Handler {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Tx => "tx",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Plain, Self::Tx]
            .into_iter()
            .find(|handler| handler.name() == name)
    }
}
