//! [`Inspected`] as JSON: the form in which a record is exported and restored.

use std::{borrow::Cow, collections::BTreeMap};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Delivery, DeliveryStatus, Failure, Inspected, RecordStatus};
use crate::record::Record;

/// The fields of the JSON object. An unknown field is refused, so that nothing is lost unnoticed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Export<'a> {
    record_id: i64,
    event_id: Uuid,
    event: Cow<'a, str>,
    version: u32,
    key: Cow<'a, str>,
    status: RecordStatus,
    created_at: Timestamp,
    due_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    max_retries: Option<u32>,
    pinned_max_retries: Option<u32>,
    dedup_key: Option<Cow<'a, str>>,
    #[serde(default)]
    headers: Cow<'a, BTreeMap<String, String>>,
    /// The text of the payload as it is stored, without line breaks. `null` if it is not JSON.
    payload: Box<RawValue>,
    /// A payload that is not JSON, which only a person can have written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_text: Option<Cow<'a, str>>,
    #[serde(default)]
    deliveries: Cow<'a, [Delivery]>,
    #[serde(default)]
    failures: Cow<'a, [Failure]>,
}

/// One JSON object on one line; see [`restore`](super::Operations::restore).
impl Serialize for Inspected {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = &self.record;
        // JSON text has line breaks between its parts only, where a space means the same.
        let line = record.payload.replace(['\n', '\r'], " ");
        let (payload, payload_text) = match RawValue::from_string(line) {
            Ok(payload) => (payload, None),
            Err(_) => (RawValue::NULL.to_owned(), Some(Cow::from(&*record.payload))),
        };
        let export = Export {
            record_id: record.id,
            event_id: record.event_id,
            event: (&*record.event).into(),
            version: record.version,
            key: (&*record.key).into(),
            status: self.status,
            created_at: record.created_at,
            due_at: self.due_at,
            completed_at: self.completed_at,
            max_retries: record.max_retries,
            pinned_max_retries: record.pinned_max_retries,
            dedup_key: self.dedup_key.as_deref().map(Cow::from),
            headers: Cow::Borrowed(&record.headers),
            payload,
            payload_text,
            deliveries: (&*self.deliveries).into(),
            failures: (&*self.failures).into(),
        };
        export.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Inspected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let export = Export::deserialize(deserializer)?;
        let payload = match export.payload_text {
            Some(text) => text.into_owned(),
            None => export.payload.get().to_owned(),
        };
        Ok(Self {
            record: Record {
                id: export.record_id,
                event_id: export.event_id,
                event: export.event.into_owned(),
                version: export.version,
                key: export.key.into_owned(),
                payload,
                headers: export.headers.into_owned(),
                created_at: export.created_at,
                max_retries: export.max_retries,
                pinned_max_retries: export.pinned_max_retries,
            },
            status: export.status,
            due_at: export.due_at,
            completed_at: export.completed_at,
            dedup_key: export.dedup_key.map(Cow::into_owned),
            deliveries: export.deliveries.into_owned(),
            failures: export.failures.into_owned(),
        })
    }
}

impl Inspected {
    /// The same record with deliveries that do not block their lanes: [`restore`](super::Operations::restore)
    /// accepts it while dispatchers run. A waiting delivery becomes a retrying one that is due at once.
    #[must_use]
    pub fn unblocked(mut self) -> Self {
        for delivery in &mut self.deliveries {
            delivery.blocking = false;
            if delivery.status == DeliveryStatus::Waiting {
                delivery.status = DeliveryStatus::Retrying;
                delivery.due_at = Some(self.record.created_at);
            }
        }
        self
    }
}
