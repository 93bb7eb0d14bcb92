//! [`Reader`]: passes a [`Node`] to `serde`, and adds the node to each mistake.

use std::borrow::Cow;

use serde::{
    Deserializer,
    de::{
        Error as _, IntoDeserializer, Unexpected, Visitor,
        value::{MapDeserializer, SeqDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};

use super::{
    fault::Fault,
    node::{Entry, Node, Value},
    scalar::{Kind, plain},
};

/// A node, and the last key of the path to it.
pub(super) struct Reader<'de>(&'de Node, Option<Cow<'de, str>>);

type Read<T> = Result<T, Fault>;

impl<'de> Reader<'de> {
    pub(super) fn root(node: &'de Node) -> Self {
        Self(node, None)
    }

    fn any<V: Visitor<'de>>(node: &'de Node, visitor: V) -> Read<V::Value> {
        match &node.value {
            Value::Section(entries) => visitor.visit_map(keys(entries)),
            Value::List(nodes) => visitor.visit_seq(items(nodes)),
            Value::Scalar(text, Kind::Untyped) => scalar(text, plain(text), visitor),
            Value::Scalar(text, kind) => scalar(text, *kind, visitor),
        }
    }

    fn section<V: Visitor<'de>>(node: &'de Node, visitor: V) -> Read<V::Value> {
        match node.entries() {
            Some(entries) => visitor.visit_map(keys(entries)),
            // A derived visitor would read a list as its fields in order.
            None => Err(Fault::invalid_type(
                Unexpected::Other("no section"),
                &visitor,
            )),
        }
    }

    fn list<V: Visitor<'de>>(node: &'de Node, visitor: V) -> Read<V::Value> {
        match &node.value {
            Value::Scalar(_, Kind::Null) => visitor.visit_seq(items(&[])),
            Value::Scalar(text, Kind::Untyped) => {
                let items = text.split(',').map(str::trim);
                visitor.visit_seq(SeqDeserializer::new(items.filter(|item| !item.is_empty())))
            }
            _ => Self::any(node, visitor),
        }
    }

    fn text<V: Visitor<'de>>(node: &'de Node, visitor: V) -> Read<V::Value> {
        match &node.value {
            Value::Scalar(text, Kind::Untyped) => visitor.visit_borrowed_str(text),
            _ => Self::any(node, visitor),
        }
    }

    fn float<V: Visitor<'de>>(node: &'de Node, visitor: V) -> Read<V::Value> {
        match &node.value {
            // Accepts any number of digits.
            Value::Scalar(text, Kind::Integer(_)) if let Ok(float) = text.parse() => {
                visitor.visit_f64(float)
            }
            _ => Self::any(node, visitor),
        }
    }

    /// A word of an enum. A number or `true` is read as a word too, and is then unknown.
    fn word<V: Visitor<'de>>(node: &'de Node, visitor: V) -> Read<V::Value> {
        match &node.value {
            Value::Scalar(text, kind) if *kind != Kind::Null => {
                let word: StrDeserializer<'_, Fault> = text.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            _ => Err(Fault::invalid_type(Unexpected::Enum, &"a word")),
        }
    }

    fn optional<V: Visitor<'de>>(node: &'de Node, visitor: V) -> Read<V::Value> {
        match &node.value {
            Value::Scalar(_, Kind::Null) => visitor.visit_none(),
            _ => visitor.visit_some(Self::root(node)),
        }
    }
}

fn keys(entries: &[Entry]) -> MapDeserializer<'_, impl Iterator<Item = (&str, Reader<'_>)>, Fault> {
    MapDeserializer::new(
        entries
            .iter()
            .map(|Entry { key, node, .. }| (key.as_str(), Reader(node, Some(key.into())))),
    )
}

fn items(nodes: &[Node]) -> SeqDeserializer<impl Iterator<Item = Reader<'_>>, Fault> {
    let nodes = nodes.iter().enumerate();
    SeqDeserializer::new(nodes.map(|(index, node)| Reader(node, Some(format!("[{index}]").into()))))
}

fn scalar<'de, V: Visitor<'de>>(text: &'de str, kind: Kind, visitor: V) -> Read<V::Value> {
    match kind {
        Kind::Null => visitor.visit_unit(),
        Kind::Bool(on) => visitor.visit_bool(on),
        Kind::Integer(number) => match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => visitor.visit_u64(number),
            (_, Ok(number)) => visitor.visit_i64(number),
            _ => visitor.visit_i128(number),
        },
        Kind::Float(number) => visitor.visit_f64(number),
        Kind::Text | Kind::Untyped => visitor.visit_borrowed_str(text),
    }
}

impl<'de> IntoDeserializer<'de, Fault> for Reader<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Each method reads with one of the functions above. A mistake gets the node and its key.
macro_rules! read_with {
    ($($method:ident($($_:ty),*) => $read:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, $(_: $_,)* visitor: V) -> Read<V::Value> {
            let Self(node, key) = self;
            Self::$read(node, visitor).map_err(|fault| fault.about(node, key.as_deref()))
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Fault;

    read_with! {
        deserialize_any() => any,
        deserialize_map() => section,
        deserialize_struct(&'static str, &'static [&'static str]) => section,
        deserialize_seq() => list,
        deserialize_str() => text,
        deserialize_string() => text,
        deserialize_f64() => float,
        deserialize_enum(&'static str, &'static [&'static str]) => word,
        deserialize_option() => optional,
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char bytes byte_buf unit unit_struct tuple
        tuple_struct newtype_struct identifier ignored_any
    }
}
