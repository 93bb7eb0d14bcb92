//! One record through one handler: what it is given, what it answers, what is decided.

mod arguments;
mod events;
mod failures;
mod fallback;
