//! [`Limits`]: checked before any SQL, so that a refused event leaves the transaction usable.

use crate::{
    outbox::{Error, Result, error::Field},
    record::{Record, record::LONGEST_NAME},
    telemetry::trace::{TRACEPARENT, TRACESTATE},
};

/// The size limits of a record.
///
/// ```
/// use outbox::config::Limits;
///
/// let limits = Limits::default();
/// assert_eq!((limits.payload_bytes, limits.header_bytes), (1024 * 1024, 64 * 1024));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest payload, as JSON text. Default: 1 MiB.
    pub payload_bytes: usize,
    /// The greatest sum of all headers, names and values. Default: 64 KiB.
    pub header_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes: 1024 * 1024,
            header_bytes: 64 * 1024,
        }
    }
}

impl Limits {
    /// Adds the headers of a trace, unless the publisher has set a `traceparent`. Leaves them out if
    /// they would exceed the limit: tracing must not cause an event to be refused.
    pub(crate) fn add_trace(&self, record: &mut Record, trace: &[(String, String)]) {
        let headers = &mut record.headers;
        let bytes: usize = bytes(headers.iter()) + bytes(trace.iter().map(|(n, v)| (n, v)));
        if trace.is_empty() || headers.contains_key(TRACEPARENT) || bytes > self.header_bytes {
            return;
        }
        // A `tracestate` without its `traceparent` belongs to another trace.
        headers.remove(TRACESTATE);
        headers.extend(trace.iter().cloned());
    }

    /// `dedup_key` is empty if there is none.
    pub(crate) fn check(&self, event: &str, record: &Record, dedup_key: &str) -> Result<()> {
        let within = |field, actual, limit| {
            if actual <= limit {
                return Ok(());
            }
            Err(Error::TooLong {
                field,
                event: event.to_owned(),
                actual,
                limit,
            })
        };
        within(Field::Payload, record.payload.len(), self.payload_bytes)?;
        let header_bytes = bytes(record.headers.iter());
        within(Field::Headers, header_bytes, self.header_bytes)?;
        within(Field::Key, record.key.len(), LONGEST_NAME)?;
        within(Field::DedupKey, dedup_key.len(), LONGEST_NAME)?;

        // JSON escapes NUL in the payload, and headers are stored as JSON too.
        for (field, text) in [(Field::Key, &*record.key), (Field::DedupKey, dedup_key)] {
            if text.contains('\0') {
                let event = event.to_owned();
                return Err(Error::Nul { field, event });
            }
        }
        Ok(())
    }
}

/// The length of names and values together.
fn bytes<'a>(headers: impl Iterator<Item = (&'a String, &'a String)>) -> usize {
    headers.map(|(name, value)| name.len() + value.len()).sum()
}
