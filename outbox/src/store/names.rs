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

    /// Those of an outbox of which nothing else was said.
    pub(crate) fn usual() -> Self {
        Self {
            schema: None,
            prefix: "outbox_".to_owned(),
        }
    }

    /// A table, quoted with the database's own mark.
    pub(crate) fn table(&self, name: &str, mark: char) -> String {
        let table = format!("{mark}{}{name}{mark}", self.prefix);
        match &self.schema {
            Some(schema) => format!("{mark}{schema}{mark}.{table}"),
            None => table,
        }
    }

    /// An index or a lock, which have no schema in front.
    pub(crate) fn plain(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The channel on which processes tell each other, in one database.
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
    pub(crate) fn namespace(&self, mark: char) -> String {
        let schema = self.schema.as_deref();
        schema.map_or(String::new(), |schema| format!("{mark}{schema}{mark}"))
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
    let sound = (1..=30).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if sound {
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
        assert_eq!(names.plain("record_due"), "outbox_record_due");
    }
}
