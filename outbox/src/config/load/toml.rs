//! TOML as a tree of [`Node`]s.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Source,
    fault::{Fault, Problem},
    node::{DEEPEST, Entry, Node, Spot, Value},
    scalar::{self, Kind, Scalar},
};
use crate::config::ConfigError;

pub(super) fn parse(source: &Source) -> Result<Node, ConfigError> {
    let table = DeTable::parse(source.text()).map_err(|error| {
        let place = source.place_of_byte(error.span().map_or(0, |span| span.start));
        let message = error.message().to_owned();
        ConfigError::Syntax {
            place,
            format: "TOML",
            source: message.into(),
        }
    })?;
    let spot = Spot::Byte(0);
    section(table.into_inner(), spot, 1).map_err(|fault| fault.into_error(source))
}

fn node(value: Spanned<DeValue<'_>>, depth: usize) -> Result<Node, Fault> {
    let spot = Spot::Byte(value.span().start);
    if depth > DEEPEST {
        return Err(Fault::at(spot, Problem::too_deep()));
    }
    let scalar = match value.into_inner() {
        DeValue::Table(table) => return section(table, spot, depth + 1),
        DeValue::Array(array) => {
            let nodes = array.into_iter().map(|value| node(value, depth + 1));
            let value = Value::List(nodes.collect::<Result<_, _>>()?);
            return Ok(Node { value, spot });
        }
        DeValue::String(text) => Scalar::text(text.into_owned()),
        DeValue::Datetime(date) => Scalar::text(date.to_string()),
        DeValue::Integer(integer) => Scalar {
            kind: scalar::of_digits(integer.as_str(), integer.radix()),
            text: integer.to_string(),
        },
        // A float with too many digits becomes infinity, which no key accepts.
        DeValue::Float(float) => Scalar {
            kind: Kind::Float(float.as_str().parse().unwrap_or(f64::NAN)),
            text: float.to_string(),
        },
        DeValue::Boolean(on) => Scalar {
            kind: Kind::Bool(on),
            text: on.to_string(),
        },
    };
    let value = Value::Scalar(scalar);
    Ok(Node { value, spot })
}

fn section(table: DeTable<'_>, spot: Spot, depth: usize) -> Result<Node, Fault> {
    let mut entries: Vec<_> = table.into_iter().collect();
    // The parser sorts by key. In the order of the file, the first mistake is reported.
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter().map(|(key, value)| {
        let spot = Spot::Byte(key.span().start);
        let node = node(value, depth)?;
        let key = key.into_inner().into_owned();
        Ok(Entry { key, spot, node })
    });
    let value = Value::Section(entries.collect::<Result<_, Fault>>()?);
    Ok(Node { value, spot })
}
