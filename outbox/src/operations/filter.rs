//! [`Filter`]: which records and deliveries. [`Paging`]: which part of them, in which order.

use std::{fmt, num::ParseIntError, str::FromStr, time::Duration};

use super::Status;

/// The most that a page holds.
pub(crate) const LARGEST_PAGE: u32 = 1000;

/// Which records or deliveries. All conditions must hold.
///
/// With the status of a delivery it selects deliveries; with that of a record, or with none, it
/// selects records.
///
/// ```
/// use std::time::Duration;
/// use outbox::operations::{DeliveryStatus, Filter, RecordStatus};
///
/// let to_look_at = Filter::new().status(DeliveryStatus::Failed).handler("charge-card");
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

    /// Of the event with this stored name.
    pub fn event(mut self, event: impl Into<String>) -> Self {
        self.event = Some(event.into());
        self
    }

    /// Deliveries of the handler with this id; records that have one.
    pub fn handler(mut self, handler: impl Into<String>) -> Self {
        self.handler = Some(handler.into());
        self
    }

    /// With this key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Deliveries whose last error has this fingerprint, with its version: `v1:` and 16 hexadecimal
    /// digits, as [`counts_by_error`](super::Operations::counts_by_error) says it; records that have
    /// such a delivery.
    pub fn fingerprint(mut self, fingerprint: impl Into<String>) -> Self {
        self.fingerprint = Some(fingerprint.into());
        self
    }

    /// Published longer ago than this, by the database's clock.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// Whether a text has a NUL, which no stored text has and not every database compares.
    pub(crate) fn matches_nothing(&self) -> bool {
        let texts = [&self.event, &self.handler, &self.key, &self.fingerprint];
        texts.into_iter().flatten().any(|text| text.contains('\0'))
    }
}

/// Which part of a list, and in which order.
///
/// ```
/// use outbox::operations::Paging;
///
/// let first = Paging::newest(50);
/// # let _ = first;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Paging {
    pub(crate) newest_first: bool,
    pub(crate) limit: u32,
    pub(crate) after: Option<Cursor>,
}

impl Paging {
    /// The newest first, `limit` per page: 1 to 1,000, and the nearest of these for any other.
    pub fn newest(limit: u32) -> Self {
        let mut paging = Self::oldest(limit);
        paging.newest_first = true;
        paging
    }

    /// The oldest first, `limit` per page: 1 to 1,000, and the nearest of these for any other.
    pub fn oldest(limit: u32) -> Self {
        Self {
            newest_first: false,
            limit: limit.clamp(1, LARGEST_PAGE),
            after: None,
        }
    }

    /// The page after the one that had this as its `next`; with the same filter and order.
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }
}

/// Where a page ended. As text it can travel in a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor(pub(crate) i64);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Cursor {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_1_to_1000() {
        let limits = [0, 1, 50, 1000, 1001, u32::MAX].map(|limit| Paging::newest(limit).limit);
        assert_eq!(limits, [1, 1, 50, 1000, 1000, 1000]);
    }

    #[test]
    fn a_cursor_is_text_and_back() {
        let cursor = Cursor(i64::MAX);
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        assert!("1 or 1=1".parse::<Cursor>().is_err());
    }
}
