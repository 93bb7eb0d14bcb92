//! Run them with `cargo run --example <name>`.
