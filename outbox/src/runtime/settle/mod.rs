//! Writes the results of attempts to the database.

pub(crate) mod settler;
pub(super) mod writer;
