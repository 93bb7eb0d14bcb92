//! Writing what became of records.

pub(crate) mod settler;
pub(super) mod writer;
