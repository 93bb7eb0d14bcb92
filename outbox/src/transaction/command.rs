//! [`Command`]: an id under which the result of a transaction is stored.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::CommandError;
use crate::store::CommandKey;

/// The id of a command and the fingerprint of its request.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) id: String,
    pub(super) fingerprint: Option<String>,
}

impl Command {
    pub(super) fn new(id: String) -> Result<Self, CommandError> {
        let bytes = id.len();
        if !(1..=255).contains(&bytes) || id.contains('\0') {
            return Err(CommandError::BadId { bytes });
        }
        let fingerprint = None;
        Ok(Self { id, fingerprint })
    }

    pub(super) fn with_request(mut self, request: &impl Serialize) -> Result<Self, CommandError> {
        let request = serde_json::to_value(request).map_err(CommandError::EncodeRequest)?;
        self.fingerprint = Some(fingerprint(&request));
        Ok(self)
    }

    pub(super) fn key<'a>(&'a self, operation: &'a str) -> CommandKey<'a> {
        let id = &self.id;
        CommandKey { operation, id }
    }

    /// Whether the stored command is this one. A command without a request matches every request.
    pub(super) fn matches(&self, stored: Option<&str>) -> bool {
        let both = self.fingerprint.as_deref().zip(stored);
        both.is_none_or(|(ours, stored)| ours == stored)
    }
}

/// Encodes and decodes the result of a command. Function pointers, so that a transaction without a
/// command does not need `Serialize`.
pub(super) struct Codec<T> {
    pub(super) encode: fn(&T) -> Result<String, serde_json::Error>,
    pub(super) decode: fn(&str) -> Result<T, serde_json::Error>,
}

impl<T: Serialize + DeserializeOwned> Codec<T> {
    pub(super) fn json() -> Self {
        Self {
            encode: |result| serde_json::to_string(result),
            decode: |text| serde_json::from_str(text),
        }
    }
}

/// 32 hexadecimal digits (FNV-1a of 128 bits) of the request as JSON. The fields of an object are
/// hashed in the order of their names, because a map has no order of its own. The fingerprint
/// finds mistakes, not attacks. It is stored, so neither the hash nor its input may change.
fn fingerprint(request: &Value) -> String {
    let mut hash = Fnv(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    hash.value(request);
    format!("{:032x}", hash.0)
}

struct Fnv(u128);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }

    /// Hashes the length before the text, so that different sequences of texts are different bytes.
    fn text(&mut self, tag: &[u8], text: &str) {
        self.bytes(tag);
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(is_true) => self.bytes(if *is_true { b"t" } else { b"f" }),
            Value::Number(number) => self.text(b"#", &number.to_string()),
            Value::String(text) => self.text(b"s", text),
            Value::Array(values) => {
                self.bytes(b"[");
                values.iter().for_each(|value| self.value(value));
                self.bytes(b"]");
            }
            Value::Object(fields) => {
                self.bytes(b"{");
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| *name);
                for (name, value) in fields {
                    self.text(b"", name);
                    self.value(value);
                }
                self.bytes(b"}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_fingerprint_never_changes() {
        assert_eq!(
            fingerprint(&Value::Null),
            "d228cb69661a8caf78912b704e4a7e51"
        );
        let request = json!({"case": 7, "by": "ann", "notes": [null, true, 1.5]});
        assert_eq!(fingerprint(&request), "d4f76715d7a333f2ce522ff55dc033ca");
    }

    #[test]
    fn different_requests_have_different_fingerprints() {
        let requests = [
            json!(null),
            json!([]),
            json!({}),
            json!(""),
            json!("ab"),
            json!(["ab"]),
            json!(["a", "b"]),
            json!([["a"], "b"]),
            json!({"a": "b"}),
            json!({"ab": ""}),
            json!(1),
            json!("1"),
            json!(true),
        ];
        let mut all: Vec<_> = requests.iter().map(fingerprint).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), requests.len());
    }

    proptest! {
        #[test]
        fn the_order_of_a_map_does_not_matter(fields: HashMap<String, i64>) {
            let reversed: Vec<_> = fields.clone().into_iter().collect();
            let again: HashMap<String, i64> = reversed.into_iter().rev().collect();
            let of = |fields: &HashMap<String, i64>| {
                let command = Command::new("c".to_owned()).and_then(|command| command.with_request(fields));
                command.unwrap().fingerprint
            };
            prop_assert_eq!(of(&fields), of(&again));
        }
    }
}
