//! See the tests: `linked.rs` and `unlinked.rs`.
