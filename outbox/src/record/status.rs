//! The statuses of records and deliveries, and the transitions between them.

use crate::outbox::named::named;

/// Defines an enum of statuses. The text of each is stored, and is the status in JSON.
macro_rules! statuses {
    ($(#[$attribute:meta])* $name:ident of a $row:literal {
        $($(#[$doc:meta])* $status:ident = $text:literal,)*
    }) => {
        named! {
            $(#[$attribute])*
            #[derive(serde::Serialize, serde::Deserialize)]
            $name { $($(#[$doc])* #[serde(rename = $text)] $status = $text,)* }
        }

        impl $name {
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$status),*];

            /// The status with this text. Fails for a text that a newer version of the library, or a
            /// person, has stored.
            pub(crate) fn stored(text: &str) -> Result<Self, sqlx::Error> {
                const UNKNOWN: &str =
                    concat!("this version does not know the status of a ", $row);
                match text {
                    $($text => Ok(Self::$status),)*
                    _ => Err(sqlx::Error::Decode(UNKNOWN.into())),
                }
            }
        }
    };
}

statuses! {
    /// The status of a record.
    RecordStatus of a "record" {
        /// To be handled as soon as possible.
        Pending = "pending",
        /// To be handled at the later time that its publisher gave.
        Scheduled = "scheduled",
        /// No handler of the owning process takes its event. It waits for a process with a handler.
        Unhandled = "unhandled",
        /// Some handlers did not finish it at their first attempt. Each of them has a delivery.
        Split = "split",
        /// Every handler completed it.
        Completed = "completed",
        /// A person discarded it, or its last open delivery.
        Discarded = "discarded",
    }
}

statuses! {
    /// The status of a delivery: a record for one handler that did not finish it at its first attempt.
    DeliveryStatus of a "delivery" {
        /// It waits for an earlier delivery of its lane.
        Waiting = "waiting",
        /// It waits for the time of its next attempt.
        Retrying = "retrying",
        /// The handler failed permanently. It waits for a person who replays or discards it.
        Failed = "failed",
        /// The handler completed it.
        Completed = "completed",
        /// A person discarded it.
        Discarded = "discarded",
    }
}

/// One legal change: from (`None`: the row is new), event, to.
#[cfg(test)]
pub(crate) type Transition<Status> = (Option<Status>, &'static str, Status);

#[cfg(test)]
impl RecordStatus {
    /// Every change that may happen. A scheduled record never becomes pending: the fetcher reads it when
    /// it is due, and it ends like a pending one. Completed and discarded records are deleted after the
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
                "a handler failed, is blocked, is paused, or takes a `Tx` and is not the only one",
                Split,
            ),
            (
                Some(Scheduled),
                "a handler failed, is blocked, is paused, or takes a `Tx` and is not the only one",
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
                "its record is split after an attempt that is retried",
                Retrying,
            ),
            (
                None,
                "its record is split after an attempt that failed permanently",
                Failed,
            ),
            (Some(Waiting), "an attempt completed", Completed),
            (Some(Retrying), "an attempt completed", Completed),
            (
                Some(Waiting),
                "an attempt failed and is retried, or the delivery before it was discarded",
                Retrying,
            ),
            (
                Some(Retrying),
                "an attempt failed and is retried, or a person replays it",
                Retrying,
            ),
            (Some(Waiting), "an attempt failed permanently", Failed),
            (Some(Retrying), "an attempt failed permanently", Failed),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_reads_back_from_its_stored_text() {
        for &status in RecordStatus::ALL {
            assert_eq!(RecordStatus::stored(status.as_str()).unwrap(), status);
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        for &status in DeliveryStatus::ALL {
            assert_eq!(DeliveryStatus::stored(status.as_str()).unwrap(), status);
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert!(RecordStatus::stored("failed").is_err());
        assert!(DeliveryStatus::stored("scheduled").is_err());
    }
}
