//! The names of the tables, checked before they become part of a statement.

use std::fmt;

use crate::outbox::{Error, Result, error::NameKind};

/// The prefix of all tables, and the schema (or database) they are in.
#[derive(Debug, Clone)]
pub struct TableNames {
    schema: Option<String>,
    prefix: String,
}

impl TableNames {
    pub(crate) fn new(schema: Option<String>, prefix: String) -> Result<Self> {
        if let Some(schema) = &schema {
            check(NameKind::Schema, schema)?;
        }
        check(NameKind::TablePrefix, &prefix)?;
        Ok(Self { schema, prefix })
    }

    /// A table with its schema, in the database's quotes.
    pub(crate) fn table(&self, name: &str, quote: char) -> String {
        let table = self.unqualified(name, quote);
        match &self.schema {
            Some(schema) => format!("{quote}{schema}{quote}.{table}"),
            None => table,
        }
    }

    /// A name with the prefix and without the schema, quoted: an index, or a table of the same schema.
    pub(crate) fn unqualified(&self, name: &str, quote: char) -> String {
        format!("{quote}{}{name}{quote}", self.prefix)
    }

    /// The channel on which the processes of one database notify each other.
    pub(crate) fn channel(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.prefix),
            None => self.prefix.clone(),
        }
    }

    pub(crate) fn has_schema(&self) -> bool {
        self.schema.is_some()
    }

    /// The schema, quoted; empty if there is none.
    pub(crate) fn namespace(&self, quote: char) -> String {
        let schema = self.schema.as_deref();
        schema.map_or(String::new(), |schema| format!("{quote}{schema}{quote}"))
    }
}

impl Default for TableNames {
    fn default() -> Self {
        Self {
            schema: None,
            prefix: "outbox_".to_owned(),
        }
    }
}

impl fmt::Display for TableNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}*", self.prefix),
            None => write!(f, "{}*", self.prefix),
        }
    }
}

fn check(kind: NameKind, name: &str) -> Result<()> {
    let is_valid = (1..=30).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if is_valid {
        return Ok(());
    }
    Err(Error::BadName {
        kind,
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_identifiers_are_names() {
        for bad in [
            "",
            "a b",
            "a;drop table x",
            "\"",
            "1st",
            "ä",
            "a.b",
            &"x".repeat(31),
            "a\0",
        ] {
            assert!(TableNames::new(None, bad.to_owned()).is_err(), "{bad:?}");
            assert!(
                TableNames::new(Some(bad.to_owned()), "outbox_".to_owned()).is_err(),
                "{bad:?}"
            );
        }
        let names = TableNames::new(Some("shop".to_owned()), "outbox_".to_owned()).unwrap();
        assert_eq!(names.table("record", '"'), "\"shop\".\"outbox_record\"");
        assert_eq!(names.unqualified("record_due", '`'), "`outbox_record_due`");
    }
}
