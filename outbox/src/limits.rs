//! What may be published: checked before any SQL, so that a refusal leaves the transaction as it was.

use crate::{Error, Record, Result, record::LONGEST_NAME};

/// How much one record may hold.
///
/// ```
/// use outbox::Limits;
///
/// let limits = Limits::default();
/// assert_eq!((limits.payload_bytes, limits.header_bytes), (1024 * 1024, 64 * 1024));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The payload as JSON text. Default: 1 MiB.
    pub payload_bytes: usize,
    /// All headers together, names and values. Default: 64 KiB.
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
    pub(crate) fn check(
        &self,
        event: &'static str,
        record: &Record,
        dedup_key: Option<&str>,
    ) -> Result<()> {
        let within = |what, actual, limit, instead| {
            if actual <= limit {
                return Ok(());
            }
            Err(Error::TooLong {
                what,
                event,
                actual,
                limit,
                instead,
            })
        };
        let headers = record
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len());
        within(
            "the payload",
            record.payload.len(),
            self.payload_bytes,
            ": publish a reference to the data, or raise `Limits::payload_bytes`",
        )?;
        within("the headers", headers.sum(), self.header_bytes, "")?;
        within(
            "the key",
            record.key.len(),
            LONGEST_NAME,
            ": use a hash of it",
        )?;
        let dedup_key = dedup_key.unwrap_or_default();
        within(
            "the dedup key",
            dedup_key.len(),
            LONGEST_NAME,
            ": use a hash of it",
        )?;

        // JSON escapes it in the payload; headers are stored as JSON too.
        for (what, text) in [("the key", &*record.key), ("the dedup key", dedup_key)] {
            if text.contains('\0') {
                return Err(Error::Nul { what, event });
            }
        }
        Ok(())
    }
}
