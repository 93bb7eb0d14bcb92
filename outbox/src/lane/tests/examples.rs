//! One transition each.
