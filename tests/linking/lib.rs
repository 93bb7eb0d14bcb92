//! This crate has only tests: `linked.rs` and `unlinked.rs`.
