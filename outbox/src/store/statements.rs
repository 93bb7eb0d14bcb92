//! SQL files: split into statements and filled with the names of the tables, once per outbox.
//!
//! A file consists of sections. `-- name: x` starts a statement. `-- fragment: x` starts a text
//! that later sections include as `{x}`. A line that starts with `--` is a comment and is dropped.
//! `{record}` is the table of records, and likewise for the other tables. `{plain x}` is a name
//! with the prefix but without the schema; `{qualified x}` has both. `{channel}` is the channel of
//! PostgreSQL's notifications.

use std::{borrow::Cow, sync::Arc};

use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};

use super::TableNames;

/// The statements of one driver. Made once per outbox and shared by everything that uses it.
pub trait StatementSql: sqlx::Database {
    type Statements: std::fmt::Debug + Send + Sync + 'static;

    /// # Errors
    /// When an SQL file and the list of its statements differ. The tests of each driver rule it out.
    fn statements(names: &TableNames) -> Result<Self::Statements, SqlFileError>;
}

/// The statements of `Db`.
pub(crate) type Statements<Db> = <Db as StatementSql>::Statements;

/// An SQL file and the list of its statements differ.
#[derive(Debug, thiserror::Error)]
pub enum SqlFileError {
    #[error("no SQL file has the statement `{0}`")]
    Missing(&'static str),
    #[error("the statement `{0}` of an SQL file is used nowhere")]
    Unused(String),
    #[error("nothing fills a hole of the statement `{0}`")]
    Unfilled(String),
}

impl From<SqlFileError> for sqlx::Error {
    fn from(error: SqlFileError) -> Self {
        Self::Configuration(error.into())
    }
}

/// A file whose holes are filled.
#[derive(Debug)]
pub(super) struct SqlFile {
    /// Name and text, in the order of the file.
    statements: Vec<(&'static str, String)>,
}

impl SqlFile {
    pub(super) fn read(file: &'static str, names: &TableNames, quote: char) -> Self {
        let mut sections: Vec<(&str, bool, String)> = Vec::new();
        for line in file.lines() {
            if let Some(name) = line.strip_prefix("-- name: ") {
                sections.push((name, true, String::new()));
            } else if let Some(name) = line.strip_prefix("-- fragment: ") {
                sections.push((name, false, String::new()));
            } else if let Some((_, _, text)) = sections.last_mut()
                && !line.trim_start().starts_with("--")
            {
                text.push_str(line);
                text.push('\n');
            }
        }
        let (mut fragments, mut statements) = (Vec::new(), Vec::new());
        for (name, is_statement, text) in sections {
            let filled = filled(text.trim(), &fragments, names, quote);
            if is_statement {
                statements.push((name, filled));
            } else {
                fragments.push((name, filled));
            }
        }
        Self { statements }
    }

    /// Refuses a file with a statement that is not among these.
    pub(super) fn has_only(&self, known: &[&str]) -> Result<(), SqlFileError> {
        let mut names = self.statements.iter().map(|(name, _)| *name);
        match names.find(|name| !known.contains(name)) {
            Some(name) => Err(SqlFileError::Unused(name.to_owned())),
            None => Ok(()),
        }
    }

    /// The text is shared: a clone of what is returned copies no text.
    pub(super) fn statement(&self, name: &'static str) -> Result<SqlStr, SqlFileError> {
        let mut all = self.statements.iter();
        let (_, text) = all
            .find(|(known, _)| *known == name)
            .ok_or(SqlFileError::Missing(name))?;
        if text.contains('{') {
            return Err(SqlFileError::Unfilled(text.clone()));
        }
        Ok(shared(text))
    }

    /// All statements, in the order of the file.
    pub(super) fn texts(self) -> Vec<String> {
        self.statements.into_iter().map(|(_, text)| text).collect()
    }
}

/// SQL that was put together from our own text and checked [`TableNames`].
pub(crate) fn trusted(sql: String) -> SqlStr {
    AssertSqlSafe(sql).into_sql_str()
}

/// A statement of our own files. A clone copies no text.
pub(super) fn shared(text: &str) -> SqlStr {
    AssertSqlSafe(Arc::<str>::from(text)).into_sql_str()
}

const TABLES: [&str; 9] = [
    "record", "delivery", "failure", "instance", "lease", "pause", "command", "inbox", "schema",
];

/// A hole that nothing fills stays.
fn filled(text: &str, fragments: &[(&str, String)], names: &TableNames, quote: char) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, hole, after)) = next_hole(rest) {
        filled.push_str(before);
        let fragment = fragments.iter().find(|(name, _)| *name == hole);
        filled.push_str(&match (fragment, hole.split_once(' ')) {
            (Some((_, text)), _) => Cow::Borrowed(&**text),
            (_, Some(("plain", name))) => format!("{quote}{}{quote}", names.plain(name)).into(),
            (_, Some(("qualified", name))) => names.table(name, quote).into(),
            _ if TABLES.contains(&hole) => names.table(hole, quote).into(),
            _ if hole == "channel" => names.channel().into(),
            _ => format!("{{{hole}}}").into(),
        });
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// The texts before, in and after the first hole.
fn next_hole(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (hole, after) = rest.split_once('}')?;
    Some((before, hole, after))
}

/// Makes a struct with a field for each statement of SQL files. A field is an [`SqlStr`] or the
/// type that is written after it.
macro_rules! statements {
    (
        $(#[$doc:meta])*
        $vis:vis $Name:ident, $file:expr;
        $($field:ident $(: $kind:ty)?),* $(,)?
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $Name {
            $($field: statements!(@ $($kind)?),)*
        }

        impl $Name {
            fn render(
                names: &$crate::store::TableNames,
                quote: char,
            ) -> Result<Self, $crate::store::statements::SqlFileError> {
                let file = $crate::store::statements::SqlFile::read($file, names, quote);
                file.has_only(&[$(stringify!($field)),*])?;
                Ok(Self {
                    $($field: file.statement(stringify!($field))?.into(),)*
                })
            }
        }
    };
    (@) => { sqlx::SqlStr };
    (@ $kind:ty) => { $kind };
}
pub(super) use statements;

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "-- Why the file is so.
-- fragment: now
clock()
-- fragment: columns
a, {now}

-- name: first
-- $1 id
select {columns} from {record}
    -- The index is forced.
    where id = $1

-- name: second
create index {plain record_due} on {qualified record} ({hole})
";

    fn file() -> SqlFile {
        let names = TableNames::new(Some("shop".to_owned()), "box_".to_owned()).unwrap();
        SqlFile::read(FILE, &names, '"')
    }

    #[test]
    fn fragments_and_names_fill_the_holes_and_comments_go() {
        let first = file().statement("first").unwrap();
        assert_eq!(
            first.as_str(),
            "select a, clock() from \"shop\".\"box_record\"\n    where id = $1"
        );
        assert_eq!(
            file().texts()[1],
            "create index \"box_record_due\" on \"shop\".\"box_record\" ({hole})"
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = file().statement("second").unwrap_err();
        assert!(matches!(error, SqlFileError::Unfilled(_)), "{error}");
        let error = file().statement("third").unwrap_err();
        assert!(matches!(error, SqlFileError::Missing("third")), "{error}");
        let error = file().has_only(&["first"]).unwrap_err();
        assert!(matches!(error, SqlFileError::Unused(_)), "{error}");
        file().has_only(&["first", "second"]).unwrap();
    }

    #[test]
    fn a_clone_shares_the_text() {
        let first = file().statement("first").unwrap();
        assert!(std::ptr::eq(first.as_str(), first.clone().as_str()));
    }
}
