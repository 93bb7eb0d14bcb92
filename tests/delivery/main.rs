//! The running outbox on real databases: the same cases on SQLite, PostgreSQL and MySQL/MariaDB.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod blocked;
mod blocked_keys;
mod busy;
mod conflicts;
mod fleet;
mod late;
mod order;
mod outage;
mod pause;
mod payload;
mod poison;
mod process;
mod scene;
mod small_pool;
mod split;
mod stop;
mod takeover;
mod time;
mod transactional;
mod unhandled;
mod waking;
