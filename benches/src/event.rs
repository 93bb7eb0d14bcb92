//! The event of the benchmarks: about 100 bytes of JSON.

use outbox::{Metadata, OutboxEvent, State, outbox_handler};
use serde::{Deserialize, Serialize};

use crate::tally::Tally;

/// A text that makes the payload about 100 bytes long.
pub(crate) const TEXT: &str = "0190a6c2-7b1e-7d5f-9c1a-5f3f2b9f0a11 0190a6c2-7b1e-7d5f-9c1a";

#[derive(Clone, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "bench.happened", key = key)]
pub(crate) struct Happened {
    /// The number of the event, from 0.
    pub(crate) n: u64,
    pub(crate) key: u64,
    pub(crate) text: String,
}

impl Happened {
    pub(crate) fn new(n: u64, key: u64) -> Self {
        Self {
            n,
            key,
            text: TEXT.to_owned(),
        }
    }
}

/// A handler that only counts.
#[outbox_handler(id = "count")]
pub(crate) async fn count(event: Happened, State(tally): State<Tally>) {
    tally.handled(event.n, event.key);
}

/// A handler that fails twice for each event, and then counts it.
#[outbox_handler(id = "count-third")]
#[outbox::retryable(fixed("1ms"), max_retries = 5)]
pub(crate) async fn count_third(
    event: Happened,
    meta: &Metadata,
    State(tally): State<Tally>,
) -> Result<(), &'static str> {
    if meta.attempt() < 3 {
        return Err("not yet");
    }
    tally.handled(event.n, event.key);
    Ok(())
}
