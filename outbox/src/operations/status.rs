//! What a change of an operator came to.

use std::fmt;

use crate::record::{DeliveryStatus, RecordStatus};

/// The status of a record or of one of its deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// Of a record.
    Record(RecordStatus),
    /// Of a delivery.
    Delivery(DeliveryStatus),
}

/// What a change came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a change that found something else did nothing"]
#[non_exhaustive]
pub enum Change {
    /// Done.
    Applied,
    /// There is no such record, or nothing in it for this handler. Nothing was changed.
    NotFound,
    /// It cannot be done to what is there: this. Nothing was changed.
    Conflict(Status),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(status) => status.fmt(f),
            Self::Delivery(status) => status.fmt(f),
        }
    }
}

impl From<RecordStatus> for Status {
    fn from(status: RecordStatus) -> Self {
        Self::Record(status)
    }
}

impl From<DeliveryStatus> for Status {
    fn from(status: DeliveryStatus) -> Self {
        Self::Delivery(status)
    }
}
