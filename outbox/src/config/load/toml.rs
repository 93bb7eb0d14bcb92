//! TOML as a tree of [`Node`]s.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Source,
    node::{DEEPEST, Entry, Node, Spot, TOO_DEEP, Value},
    scalar::{Kind, of_digits},
};
use crate::config::ConfigError;

pub(super) fn parse(source: &Source) -> Result<Node, ConfigError> {
    let table = DeTable::parse(source.text()).map_err(|error| ConfigError::Syntax {
        place: source.place_of_byte(error.span().map_or(0, |span| span.start)),
        format: "TOML",
        source: error.message().into(),
    })?;
    let value = section(table.into_inner(), source, 1)?;
    let spot = Spot::Byte(0);
    Ok(Node { value, spot })
}

fn node(value: Spanned<DeValue<'_>>, source: &Source, depth: usize) -> Result<Node, ConfigError> {
    let spot = Spot::Byte(value.span().start);
    if depth > DEEPEST {
        return Err(source.refuse(&spot, TOO_DEEP));
    }
    let value = match value.into_inner() {
        DeValue::Table(table) => section(table, source, depth + 1)?,
        DeValue::Array(array) => {
            let nodes = array
                .into_iter()
                .map(|value| node(value, source, depth + 1));
            Value::List(nodes.collect::<Result<_, _>>()?)
        }
        DeValue::String(text) => Value::Scalar(text.into_owned(), Kind::Text),
        DeValue::Datetime(date) => Value::Scalar(date.to_string(), Kind::Text),
        DeValue::Integer(integer) => {
            let kind = of_digits(integer.as_str(), integer.radix());
            Value::Scalar(integer.to_string(), kind)
        }
        // A float with too many digits becomes infinity, which no key accepts.
        DeValue::Float(float) => {
            let number = float.as_str().parse().unwrap_or(f64::NAN);
            Value::Scalar(float.to_string(), Kind::Float(number))
        }
        DeValue::Boolean(on) => Value::Scalar(on.to_string(), Kind::Bool(on)),
    };
    Ok(Node { value, spot })
}

fn section(table: DeTable<'_>, source: &Source, depth: usize) -> Result<Value, ConfigError> {
    let mut entries: Vec<_> = table.into_iter().collect();
    // The parser sorts by key. In the order of the file, the first mistake is reported.
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter().map(|(key, value)| {
        let spot = Spot::Byte(key.span().start);
        let node = node(value, source, depth)?;
        let key = key.into_inner().into_owned();
        Ok(Entry { key, spot, node })
    });
    Ok(Value::Section(entries.collect::<Result<_, ConfigError>>()?))
}
