//! Where a record stands.

use jiff::Timestamp;

/// What a record waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordStatus {
    /// To be handled as soon as possible.
    Pending,
    /// To be handled at a later time, as its publisher said.
    Scheduled,
    /// Put aside: no handler was there for its event.
    Unhandled,
    /// Some of its handlers did not finish at once; each has a [`Delivery`] of its own.
    Split,
    /// Every handler is done with it.
    Completed,
    /// Given up by a person; or the last of its deliveries was.
    Discarded,
}

/// What a delivery waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeliveryStatus {
    /// Behind an earlier one of its lane.
    Waiting,
    /// For the time of its next attempt.
    Retrying,
    /// For a person: the handler failed for good.
    Failed,
    /// For nothing: its handler is done.
    Completed,
    /// For nothing: given up by a person.
    Discarded,
}

/// A record for one handler that did not finish with it at once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// The id of the handler.
    pub handler: String,
    /// What it waits for.
    pub status: DeliveryStatus,
    /// The attempt that is next, or was the last.
    pub attempt: u32,
    /// How many failures used up a retry, before that attempt.
    pub failure_count: u32,
    /// When the next attempt is due, by the kit's clock.
    pub due_at: Option<Timestamp>,
    /// The last error.
    pub error: Option<String>,
}

impl RecordStatus {
    pub(crate) fn stored(text: &str) -> Option<Self> {
        Some(match text {
            "pending" => Self::Pending,
            "scheduled" => Self::Scheduled,
            "unhandled" => Self::Unhandled,
            "split" => Self::Split,
            "completed" => Self::Completed,
            "discarded" => Self::Discarded,
            _ => return None,
        })
    }
}

impl DeliveryStatus {
    pub(crate) fn stored(text: &str) -> Option<Self> {
        Some(match text {
            "waiting" => Self::Waiting,
            "scheduled" => Self::Retrying,
            "failed" => Self::Failed,
            "completed" => Self::Completed,
            "discarded" => Self::Discarded,
            _ => return None,
        })
    }
}
