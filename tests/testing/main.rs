//! The test kit, used as a user of the library uses it.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod misuse;
mod order;
mod outage;
mod publishing;
mod restoring;
mod shop;
mod time;
mod transactional;
