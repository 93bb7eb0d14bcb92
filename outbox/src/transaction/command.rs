//! Commands: what is done once, however often it is asked for.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::CommandError;
use crate::store::CommandKey;

/// The id of a command, and what is known of its request.
#[derive(Clone)]
pub(crate) struct Command {
    pub(crate) id: String,
    pub(crate) fingerprint: Option<String>,
}

impl Command {
    pub(crate) fn key<'a>(&'a self, operation: &'a str) -> CommandKey<'a> {
        CommandKey {
            operation,
            id: &self.id,
        }
    }

    pub(crate) fn check(&self) -> Result<(), CommandError> {
        let bytes = self.id.len();
        if (1..=255).contains(&bytes) && !self.id.contains('\0') {
            return Ok(());
        }
        Err(CommandError::BadId { bytes })
    }

    /// Whether a stored command is this one; what was stored without a request is.
    pub(crate) fn is(&self, stored: Option<&str>) -> bool {
        match (&self.fingerprint, stored) {
            (Some(ours), Some(stored)) => ours == stored,
            _ => true,
        }
    }
}

/// How the result of a command becomes text and back.
pub(crate) struct Codec<T> {
    pub(crate) encode: fn(&T) -> Result<String, serde_json::Error>,
    pub(crate) decode: fn(&str) -> Result<T, serde_json::Error>,
}

impl<T: Serialize + DeserializeOwned> Codec<T> {
    pub(crate) fn json() -> Self {
        Self {
            encode: |result| serde_json::to_string(result),
            decode: |text| serde_json::from_str(text),
        }
    }
}

impl<T> fmt::Debug for Codec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codec")
    }
}

/// 32 hexadecimal digits (FNV-1a of 128 bits) of the request as JSON, with the fields of objects
/// in the order of their names: a map has no order of its own. It tells mistakes, not attacks.
/// Stored, so that neither the hash nor what goes into it may change.
pub(crate) fn fingerprint(request: &impl Serialize) -> Result<String, CommandError> {
    let request = serde_json::to_value(request).map_err(|source| CommandError::Encode {
        what: "the request",
        source,
    })?;
    let mut hash = Fnv(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    hash.value(&request);
    Ok(format!("{:032x}", hash.0))
}

struct Fnv(u128);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }

    /// With its length in front, so that no two sequences of texts are the same bytes.
    fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(yes) => self.bytes(if *yes { b"t" } else { b"f" }),
            Value::Number(number) => {
                self.bytes(b"#");
                self.text(&number.to_string());
            }
            Value::String(text) => {
                self.bytes(b"s");
                self.text(text);
            }
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
                    self.text(name);
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
        let of = |request: Value| fingerprint(&request).unwrap();
        assert_eq!(of(Value::Null), "d228cb69661a8caf78912b704e4a7e51");
        let request = json!({"case": 7, "by": "ann", "notes": [null, true, 1.5]});
        assert_eq!(of(request), "d4f76715d7a333f2ce522ff55dc033ca");
    }

    #[test]
    fn what_differs_has_another() {
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
        let mut all: Vec<_> = requests
            .iter()
            .map(|one| fingerprint(one).unwrap())
            .collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), requests.len());
    }

    proptest! {
        #[test]
        fn a_map_has_one_whatever_its_order(fields: HashMap<String, i64>) {
            let reversed: Vec<_> = fields.clone().into_iter().collect();
            let again: HashMap<String, i64> = reversed.into_iter().rev().collect();
            prop_assert_eq!(fingerprint(&fields).unwrap(), fingerprint(&again).unwrap());
        }
    }
}
