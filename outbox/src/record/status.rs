//! The statuses of records and deliveries, and which of them may follow which.

use crate::outbox::named::named;

/// Defines an enum of statuses. The text of each is stored, and is the status in JSON.
macro_rules! statuses {
    ($(#[$attribute:meta])* $name:ident of a $row:literal {
        $($(#[$doc:meta])* $status:ident = $text:literal,)*
    }) => {
        named! {
            $(#[$attribute])*
            #[derive(serde::Serialize)]
            $name { $($(#[$doc])* #[serde(rename = $text)] $status = $text,)* }
        }

        impl $name {
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$status),*];

            /// The status with this text. Fails if a newer version of the library, or a person,
            /// has stored another one.
            pub(crate) fn stored(text: &str) -> Result<Self, sqlx::Error> {
                const UNKNOWN: &str =
                    concat!("the status of a ", $row, " is none that this version knows");
                match text {
                    $($text => Ok(Self::$status),)*
                    _ => Err(sqlx::Error::Decode(UNKNOWN.into())),
                }
            }
        }
    };
}

statuses! {
    /// What a record waits for.
    RecordStatus of a "record" {
        /// To be handled as soon as possible.
        Pending = "pending",
        /// To be handled at a later time, as its publisher said.
        Scheduled = "scheduled",
        /// Put aside: no handler was there for its event.
        Unhandled = "unhandled",
        /// Some of its handlers did not finish at once; each has a delivery of its own.
        Split = "split",
        /// Every handler is done with it.
        Completed = "completed",
        /// Given up by a person; or the last of its deliveries was.
        Discarded = "discarded",
    }
}

statuses! {
    /// What a delivery waits for: a record for one handler that did not finish with it at once.
    DeliveryStatus of a "delivery" {
        /// Behind an earlier one of its lane.
        Waiting = "waiting",
        /// For the time of its next attempt.
        Retrying = "retrying",
        /// For a person: the handler failed for good.
        Failed = "failed",
        /// For nothing: its handler is done.
        Completed = "completed",
        /// For nothing: given up by a person.
        Discarded = "discarded",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_found_again_as_it_is_stored() {
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
