//! The statuses of records and deliveries, and which of them may follow which.

use std::fmt;

use serde::Serialize;

/// What a record waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RecordStatus {
    /// To be handled as soon as possible.
    Pending,
    /// To be handled at a later time, as its publisher said.
    Scheduled,
    /// Put aside: no handler was there for its event.
    Unhandled,
    /// Some of its handlers did not finish at once; each has a delivery of its own.
    Split,
    /// Every handler is done with it.
    Completed,
    /// Given up by a person; or the last of its deliveries was.
    Discarded,
}

/// What a delivery waits for: a record for one handler that did not finish with it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
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

impl RecordStatus {
    pub(crate) const ALL: [Self; 6] = [
        Self::Pending,
        Self::Scheduled,
        Self::Unhandled,
        Self::Split,
        Self::Completed,
        Self::Discarded,
    ];

    /// As it is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Scheduled => "scheduled",
            Self::Unhandled => "unhandled",
            Self::Split => "split",
            Self::Completed => "completed",
            Self::Discarded => "discarded",
        }
    }

    pub(crate) fn stored(text: &str) -> Result<Self, sqlx::Error> {
        let mut all = Self::ALL.into_iter();
        all.find(|status| status.as_str() == text)
            .ok_or_else(|| unknown("record"))
    }
}

impl DeliveryStatus {
    pub(crate) const ALL: [Self; 5] = [
        Self::Waiting,
        Self::Retrying,
        Self::Failed,
        Self::Completed,
        Self::Discarded,
    ];

    /// As it is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Retrying => "retrying",
            Self::Failed => "failed",
            Self::Completed => "completed",
            Self::Discarded => "discarded",
        }
    }

    pub(crate) fn stored(text: &str) -> Result<Self, sqlx::Error> {
        let mut all = Self::ALL.into_iter();
        all.find(|status| status.as_str() == text)
            .ok_or_else(|| unknown("delivery"))
    }
}

/// One legal change: from (`None`: the row is new), event, to.
#[cfg(test)]
pub(crate) type Transition<Status> = (Option<Status>, &'static str, Status);

#[cfg(test)]
impl RecordStatus {
    /// Every change that may happen. A scheduled record never becomes pending: it is read when it is
    /// due, and ends like a pending one. Completed and discarded records are deleted after the
    /// retention.
    pub(crate) const TRANSITIONS: &[Transition<Self>] = {
        use RecordStatus::{Completed, Discarded, Pending, Scheduled, Split, Unhandled};
        &[
            (None, "published, due now", Pending),
            (None, "published, due later", Scheduled),
            (Some(Pending), "every handler completed it", Completed),
            (Some(Scheduled), "every handler completed it", Completed),
            (Some(Pending), "no handler here takes its event", Unhandled),
            (
                Some(Scheduled),
                "no handler here takes its event",
                Unhandled,
            ),
            (
                Some(Pending),
                "a handler failed, is blocked, is paused, or takes a `Tx` beside others",
                Split,
            ),
            (
                Some(Scheduled),
                "a handler failed, is blocked, is paused, or takes a `Tx` beside others",
                Split,
            ),
            (
                Some(Unhandled),
                "an instance that has a handler for it gains its partition",
                Pending,
            ),
            (Some(Split), "its last open delivery completed", Completed),
            (
                Some(Split),
                "its last open delivery was discarded",
                Discarded,
            ),
            (Some(Pending), "a person discards it", Discarded),
            (Some(Scheduled), "a person discards it", Discarded),
            (Some(Unhandled), "a person discards it", Discarded),
            (
                Some(Scheduled),
                "a person replays it: it is due now",
                Scheduled,
            ),
        ]
    };

    pub(crate) fn may_become(self, to: Self) -> bool {
        let mut legal = Self::TRANSITIONS.iter();
        legal.any(|row| (row.0, row.2) == (Some(self), to))
    }
}

#[cfg(test)]
impl DeliveryStatus {
    /// Every change that may happen.
    pub(crate) const TRANSITIONS: &[Transition<Self>] = {
        use DeliveryStatus::{Completed, Discarded, Failed, Retrying, Waiting};
        &[
            (
                None,
                "its record is split behind another delivery, or before its first attempt",
                Waiting,
            ),
            (
                None,
                "its record is split after an attempt that is tried again",
                Retrying,
            ),
            (
                None,
                "its record is split after an attempt that failed for good",
                Failed,
            ),
            (Some(Waiting), "an attempt completed", Completed),
            (Some(Retrying), "an attempt completed", Completed),
            (
                Some(Waiting),
                "an attempt failed and is tried again, or the delivery before it was discarded",
                Retrying,
            ),
            (
                Some(Retrying),
                "an attempt failed and is tried again, or a person replays it",
                Retrying,
            ),
            (Some(Waiting), "an attempt failed for good", Failed),
            (Some(Retrying), "an attempt failed for good", Failed),
            (
                Some(Waiting),
                "the handler was not found at the attempt",
                Waiting,
            ),
            (
                Some(Retrying),
                "the handler was not found at the attempt",
                Waiting,
            ),
            (
                Some(Failed),
                "a person replays it: attempt + 1, no failures",
                Retrying,
            ),
            (Some(Waiting), "a person discards it", Discarded),
            (Some(Retrying), "a person discards it", Discarded),
            (Some(Failed), "a person discards it", Discarded),
        ]
    };

    pub(crate) fn may_become(self, to: Self) -> bool {
        let mut legal = Self::TRANSITIONS.iter();
        legal.any(|row| (row.0, row.2) == (Some(self), to))
    }
}

/// A status that this version does not know: a newer one has been here, or a hand.
fn unknown(of: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("the status of a {of} is none that this version knows").into())
}

impl fmt::Display for RecordStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for DeliveryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_found_again_as_it_is_stored() {
        for status in RecordStatus::ALL {
            assert_eq!(RecordStatus::stored(status.as_str()).unwrap(), status);
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        for status in DeliveryStatus::ALL {
            assert_eq!(DeliveryStatus::stored(status.as_str()).unwrap(), status);
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert!(RecordStatus::stored("failed").is_err());
        assert!(DeliveryStatus::stored("scheduled").is_err());
    }
}
