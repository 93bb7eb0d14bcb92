//! The guide: one page per task, for users of the library.
//!
//! | page | for |
//! |---|---|
//! | [`getting_started`] | dependencies, a first handler, the pool, the tables |
//! | [`publishing`] | events, delays, dedup keys, headers, changing the shape of an event |
//! | [`handlers`] | functions, types and methods; arguments; options; fallbacks |
//! | [`retries`] | which policy a handler has, and what happens after a failure |
//! | [`ordering`] | order per key, blocked lanes, what the order needs from you |
//! | [`exactly_once`] | effects in the same database with `Tx`, idempotency keys elsewhere |
//! | [`processes`] | shares, takeover, wake-up, rolling deployments, stopping |
//! | [`transactions`] | transactions that retry, commands, the inbox |
//! | [`operations`] | failed records: list, replay, discard; retention; the command line |
//! | [`testing`] | handlers in tests, with a clock that the test moves |
//! | [`configuration`] | every key with its default |
//! | [`metrics`] | what to watch; health probes |
//! | [`tracing`] | spans, log lines, one trace across processes |
//!
//! The modules contain documentation only, and exist only there: code cannot name them.

#[doc = include_str!("../docs/guide/getting_started.md")]
pub mod getting_started {}

#[doc = include_str!("../docs/guide/publishing.md")]
pub mod publishing {}

#[doc = include_str!("../docs/guide/handlers.md")]
pub mod handlers {}

#[doc = include_str!("../docs/guide/retries.md")]
pub mod retries {}

#[doc = include_str!("../docs/guide/ordering.md")]
pub mod ordering {}

#[doc = include_str!("../docs/guide/exactly_once.md")]
pub mod exactly_once {}

#[doc = include_str!("../docs/guide/processes.md")]
pub mod processes {}

#[doc = include_str!("../docs/guide/transactions.md")]
pub mod transactions {}

#[doc = include_str!("../docs/guide/operations.md")]
pub mod operations {}

#[doc = include_str!("../docs/guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../docs/guide/configuration.md")]
pub mod configuration {}

#[doc = include_str!("../docs/guide/metrics.md")]
pub mod metrics {}

#[doc = include_str!("../docs/tracing.md")]
pub mod tracing {}
