//! [`Filter`]: selects records or deliveries. [`Paging`]: selects a page of them, and the order.

use std::{fmt, num::ParseIntError, str::FromStr, time::Duration};

use super::Status;

/// The largest number of items on a page.
pub(crate) const LARGEST_PAGE: u32 = 1000;

/// Selects records or deliveries. All conditions must hold.
///
/// With the status of a delivery it selects deliveries. With the status of a record, or without a
/// status, it selects records.
///
/// ```
/// use std::time::Duration;
/// use outbox::operations::{DeliveryStatus, Filter, RecordStatus};
///
/// let failed = Filter::new().status(DeliveryStatus::Failed).handler("charge-card");
/// let late = Filter::new().status(RecordStatus::Pending).older_than(Duration::from_secs(300));
/// let all_of_one_key = Filter::new().key("order-7");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Filter {
    pub(crate) status: Option<Status>,
    pub(crate) event: Option<String>,
    pub(crate) handler: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) older_than: Option<Duration>,
    pub(crate) failed_since: Option<Duration>,
}

impl Filter {
    /// All records.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this status: a [`RecordStatus`](super::RecordStatus) or a
    /// [`DeliveryStatus`](super::DeliveryStatus).
    pub fn status(mut self, status: impl Into<Status>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// With this stored name of the event.
    pub fn event(mut self, event: impl Into<String>) -> Self {
        self.event = Some(event.into());
        self
    }

    /// Deliveries of the handler with this id, or records that have such a delivery.
    pub fn handler(mut self, handler: impl Into<String>) -> Self {
        self.handler = Some(handler.into());
        self
    }

    /// With this key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Deliveries whose last error has this fingerprint, or records that have such a delivery.
    /// [`counts_by_error`](super::Operations::counts_by_error) returns fingerprints: a version, `v1:`,
    /// and 16 hexadecimal digits.
    pub fn fingerprint(mut self, fingerprint: impl Into<String>) -> Self {
        self.fingerprint = Some(fingerprint.into());
        self
    }

    /// Published before this age, on the database's clock.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// Deliveries whose last attempt failed at most this long ago, on the database's clock, or records that
    /// have such a delivery.
    pub fn failed_since(mut self, age: Duration) -> Self {
        self.failed_since = Some(age);
        self
    }

    /// Whether a text contains NUL. No stored text does, and not every database can compare it.
    pub(crate) fn matches_nothing(&self) -> bool {
        let texts = [&self.event, &self.handler, &self.key, &self.fingerprint];
        texts.into_iter().flatten().any(|text| text.contains('\0'))
    }
}

/// Selects a page of a list, and its order.
///
/// ```
/// use outbox::operations::{Order, Paging};
///
/// let published_last = Paging::newest(50);
/// let failed_last = Paging::newest(50).ordered_by(Order::Failed);
/// # let _ = (published_last, failed_last);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Paging {
    pub(crate) order: Order,
    pub(crate) newest_first: bool,
    pub(crate) limit: u32,
    pub(crate) after: Option<Cursor>,
}

impl Paging {
    /// The newest items first. `limit` items per page, clamped to 1 to 1,000.
    pub fn newest(limit: u32) -> Self {
        let mut paging = Self::oldest(limit);
        paging.newest_first = true;
        paging
    }

    /// The oldest items first. `limit` items per page, clamped to 1 to 1,000.
    pub fn oldest(limit: u32) -> Self {
        Self {
            order: Order::Published,
            newest_first: false,
            limit: limit.clamp(1, LARGEST_PAGE),
            after: None,
        }
    }

    /// What the oldest and the newest items are. Default: [`Order::Published`].
    pub fn ordered_by(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// The page after the page whose `next` is this cursor. Use the same filter and order.
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }
}

/// The time by which a list is ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// Records in the order in which they were published; deliveries in the order in which they were
    /// written.
    #[default]
    Published,
    /// Deliveries in the order in which their last attempts failed. The list has only deliveries that failed
    /// at least once. Without a status, it has those that failed permanently. With the status of a record, it
    /// is empty.
    Failed,
}

/// The end of a page. Its text can be part of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The id of the last delivery, or of the last record.
    pub(crate) id: i64,
    /// When the last delivery failed, in microseconds since 1970, in a list in the order of failures.
    pub(crate) failed_at: Option<i64>,
}

impl Cursor {
    /// The place in a list that is ordered by [`Order::Failed`].
    pub(crate) fn failure(self) -> Option<(i64, i64)> {
        self.failed_at.map(|failed_at| (failed_at, self.id))
    }
}

/// `ID`, or `ID.MICROSECONDS` in a list in the order of failures.
impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failed_at {
            Some(failed_at) => write!(f, "{}.{failed_at}", self.id),
            None => self.id.fmt(f),
        }
    }
}

impl FromStr for Cursor {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (id, failed_at) = match text.split_once('.') {
            Some((id, failed_at)) => (id, Some(failed_at.parse()?)),
            None => (text, None),
        };
        Ok(Self {
            id: id.parse()?,
            failed_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_1_to_1000_items() {
        let limits = [0, 1, 50, 1000, 1001, u32::MAX].map(|limit| Paging::newest(limit).limit);
        assert_eq!(limits, [1, 1, 50, 1000, 1000, 1000]);
    }

    #[test]
    fn a_cursor_reads_back_from_its_text() {
        for failed_at in [None, Some(1_700_000_000_123_456), Some(-1)] {
            let id = i64::MAX;
            let cursor = Cursor { id, failed_at };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "1 or 1=1", "1.", ".1", "1.2.3", "1.x"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
