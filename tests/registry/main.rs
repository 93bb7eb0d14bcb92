//! What is checked and resolved at start-up, and what is reported of it.

mod named;
mod resolution;
mod start_up;
