//! [`Reader`]: passes a [`Node`] to `serde`, and adds the node to each mistake.

use std::slice;

use serde::{
    Deserializer,
    de::{
        DeserializeSeed, Error as _, IntoDeserializer as _, MapAccess, SeqAccess, Unexpected,
        Visitor,
        value::{SeqDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};

use super::{
    fault::Fault,
    node::{Entry, Node, Value},
    scalar::{Kind, Scalar, plain},
};

#[derive(Clone, Copy)]
pub(super) struct Reader<'de>(pub(super) &'de Node);

type Read<T> = Result<T, Fault>;

impl<'de> Reader<'de> {
    fn any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match &self.0.value {
            Value::Section(entries) => visitor.visit_map(Keys::of(entries)),
            Value::List(nodes) => visitor.visit_seq(Items(nodes.iter(), 0)),
            Value::Scalar(scalar) => scalar.visit(visitor),
        }
    }

    fn section<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.0.entries() {
            Some(entries) => visitor.visit_map(Keys::of(entries)),
            // A derived visitor would read a list as its fields in order.
            None => Err(Fault::invalid_type(
                Unexpected::Other("no section"),
                &visitor,
            )),
        }
    }

    fn list<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match &self.0.value {
            Value::Scalar(scalar) if scalar.is_null() => visitor.visit_seq(Items([].iter(), 0)),
            Value::Scalar(Scalar {
                text,
                kind: Kind::Untyped,
            }) => {
                let items = text
                    .split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty());
                visitor.visit_seq(SeqDeserializer::new(items))
            }
            Value::Scalar(_) | Value::List(_) | Value::Section(_) => self.any(visitor),
        }
    }

    fn text<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match &self.0.value {
            Value::Scalar(Scalar {
                text,
                kind: Kind::Untyped,
            }) => visitor.visit_borrowed_str(text),
            Value::Scalar(_) | Value::List(_) | Value::Section(_) => self.any(visitor),
        }
    }

    fn float<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match &self.0.value {
            // Accepts any number of digits.
            Value::Scalar(Scalar {
                text,
                kind: Kind::Integer(_),
            }) if let Ok(float) = text.parse() => visitor.visit_f64(float),
            Value::Scalar(_) | Value::List(_) | Value::Section(_) => self.any(visitor),
        }
    }

    /// A word of an enum. A number or `true` is read as a word too, and is then unknown.
    fn word<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match &self.0.value {
            Value::Scalar(scalar) if !scalar.is_null() => {
                let word: StrDeserializer<'_, Fault> = scalar.text.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            Value::Scalar(_) | Value::List(_) | Value::Section(_) => {
                Err(Fault::invalid_type(Unexpected::Enum, &"a word"))
            }
        }
    }

    fn optional<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match &self.0.value {
            Value::Scalar(scalar) if scalar.is_null() => visitor.visit_none(),
            Value::Scalar(_) | Value::List(_) | Value::Section(_) => visitor.visit_some(self),
        }
    }
}

impl Scalar {
    fn visit<'de, V: Visitor<'de>>(&'de self, visitor: V) -> Read<V::Value> {
        let kind = match self.kind {
            Kind::Untyped => plain(&self.text),
            kind => kind,
        };
        match kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(on) => visitor.visit_bool(on),
            Kind::Integer(number) => match (u64::try_from(number), i64::try_from(number)) {
                (Ok(number), _) => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_i64(number),
                _ => visitor.visit_i128(number),
            },
            Kind::Float(number) => visitor.visit_f64(number),
            Kind::Text | Kind::Untyped => visitor.visit_borrowed_str(&self.text),
        }
    }
}

macro_rules! forward {
    ($($method:ident => $to:ident),* $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
            self.$to(visitor).map_err(|fault| fault.about(self.0))
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Fault;

    forward! {
        deserialize_any => any,
        deserialize_map => section,
        deserialize_seq => list,
        deserialize_str => text,
        deserialize_string => text,
        deserialize_identifier => text,
        deserialize_f32 => float,
        deserialize_f64 => float,
        deserialize_option => optional,
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        self.word(visitor).map_err(|fault| fault.about(self.0))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Read<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char bytes byte_buf unit unit_struct tuple
        tuple_struct ignored_any
    }
}

/// The entries of a section, one by one.
struct Keys<'de> {
    entries: slice::Iter<'de, Entry>,
    current: Option<&'de Entry>,
}

impl<'de> Keys<'de> {
    fn of(entries: &'de [Entry]) -> Self {
        let entries = entries.iter();
        Self {
            entries,
            current: None,
        }
    }
}

impl<'de> MapAccess<'de> for Keys<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        self.current = self.entries.next();
        match self.current {
            Some(entry) => seed
                .deserialize(entry.key.as_str().into_deserializer())
                .map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        match self.current.take() {
            Some(entry) => seed
                .deserialize(Reader(&entry.node))
                .map_err(|fault| fault.about(&entry.node).within(&entry.key)),
            None => Err(Fault::custom("was asked for before its key")),
        }
    }
}

/// The items of a list, one by one, and how many were read.
struct Items<'de>(slice::Iter<'de, Node>, usize);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        let Some(node) = self.0.next() else {
            return Ok(None);
        };
        let index = self.1;
        self.1 += 1;
        let item = seed.deserialize(Reader(node));
        item.map(Some)
            .map_err(|fault| fault.about(node).within(&format!("[{index}]")))
    }
}
