//! Retried transactions, commands and the inbox, on real databases.

#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod attempt_timeout;
mod classification;
mod commands;
mod conflicts;
mod events;
mod inbox;
mod limits;
mod logs;
mod recorder;
mod retrying;
mod reviewers;
mod scene;
mod unknown_outcome;
mod whole;
