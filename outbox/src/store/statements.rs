//! Reads SQL files: splits them into statements and fills in table names, once per outbox.
//!
//! A file consists of sections. `-- name: x` starts a statement. `-- transaction: x` starts one that
//! runs in a transaction of its own. `-- then` starts the next step of a statement; the step runs if
//! the step before changed a row. `-- fragment: x` starts a text that later sections include as
//! `{x}`. `-- version: x` starts a step of the schema. Any other line that starts with `--` is a
//! comment and is dropped.
//!
//! `{record}` is the table of records, and likewise for the other tables. `{unqualified x}` is a name
//! with the prefix but without the schema; `{qualified x}` has both. `{namespace}` is the schema
//! alone. `{channel}` is the channel of PostgreSQL's notifications. [`Sql`] explains parameters.

use std::{borrow::Cow, sync::Arc};

use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};

use super::{Dialect, TableNames, sql::Sql};

/// An SQL file does not match the code that uses it.
#[derive(Debug, thiserror::Error)]
pub enum SqlFileError {
    #[error("no SQL file has the statement `{0}`")]
    Missing(&'static str),
    #[error("the statement `{0}` of an SQL file is used nowhere")]
    Unused(String),
    #[error("the statement `{0}` of an SQL file has an unknown placeholder")]
    Placeholder(String),
    #[error("no value is bound to the parameter `:{0}` of a statement")]
    NoValue(String),
}

impl From<SqlFileError> for sqlx::Error {
    fn from(error: SqlFileError) -> Self {
        Self::Configuration(error.into())
    }
}

/// A file in which all known placeholders are replaced.
#[derive(Debug)]
pub(super) struct SqlFile {
    /// In the order of the file.
    statements: Vec<Section>,
    fragments: Vec<(&'static str, String)>,
}

#[derive(Debug)]
struct Section {
    name: &'static str,
    kind: &'static str,
    steps: Vec<String>,
}

impl SqlFile {
    pub(super) fn read<Db: Dialect>(file: &'static str, names: &TableNames) -> Self {
        let (mut fragments, mut statements) = (Vec::new(), Vec::new());
        for mut section in sections(file) {
            for step in &mut section.steps {
                *step = replaced(step.trim(), &fragments, names, Db::WORDS.quote);
            }
            if section.kind == "fragment" {
                fragments.push((section.name, section.steps.concat()));
            } else {
                statements.push(section);
            }
        }
        Self {
            statements,
            fragments,
        }
    }

    /// The text of a fragment. Empty if the file does not have it.
    pub(super) fn fragment(&self, name: &str) -> &str {
        let mut all = self.fragments.iter();
        let found = all.find(|(known, _)| *known == name);
        found.map_or("", |(_, text)| text)
    }

    /// Fails if the file has a statement that is not in this list.
    pub(super) fn has_only(&self, known: &[&str]) -> Result<(), SqlFileError> {
        let mut names = self.statements.iter().map(|section| section.name);
        match names.find(|name| !known.contains(name)) {
            Some(name) => Err(SqlFileError::Unused(name.to_owned())),
            None => Ok(()),
        }
    }

    pub(super) fn statement<Db: Dialect>(&self, name: &'static str) -> Result<Sql, SqlFileError> {
        let statement = self.optional::<Db>(name)?;
        let found = statement.exists().then_some(statement);
        found.ok_or(SqlFileError::Missing(name))
    }

    /// The statement, or one without steps if the file does not have it.
    pub(super) fn optional<Db: Dialect>(&self, name: &'static str) -> Result<Sql, SqlFileError> {
        let mut all = self.statements.iter();
        let Some(section) = all.find(|section| section.name == name) else {
            return Ok(Sql::default());
        };
        if let Some(step) = section.steps.iter().find(|step| step.contains('{')) {
            return Err(SqlFileError::Placeholder(step.clone()));
        }
        let is_transaction = section.kind == "transaction";
        Ok(Sql::new::<Db>(is_transaction, &section.steps))
    }

    /// The texts of the statements below each `-- version: x`, in the order of the file.
    pub(super) fn versions(self) -> Vec<Vec<String>> {
        let mut versions: Vec<Vec<String>> = Vec::new();
        for section in self.statements {
            if section.kind == "version" {
                versions.push(Vec::new());
            } else if let Some(version) = versions.last_mut() {
                version.extend(section.steps);
            }
        }
        versions
    }
}

fn sections(file: &'static str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in file.lines() {
        let comment = line.trim_start().strip_prefix("--").map(str::trim);
        let header = comment.and_then(|comment| comment.split_once(": "));
        if let Some((kind @ ("name" | "transaction" | "fragment" | "version"), name)) = header {
            sections.push(Section {
                name,
                kind,
                steps: vec![String::new()],
            });
        } else if let Some(section) = sections.last_mut() {
            if line == "-- then" {
                section.steps.push(String::new());
            } else if let (None, Some(step)) = (comment, section.steps.last_mut()) {
                step.push_str(line);
                step.push('\n');
            }
        }
    }
    sections
}

/// SQL that consists of our own text and of checked [`TableNames`].
pub(crate) fn trusted(sql: String) -> SqlStr {
    AssertSqlSafe(sql).into_sql_str()
}

/// A statement of our own files. Cloning it copies no text.
pub(super) fn shared(text: &str) -> SqlStr {
    AssertSqlSafe(Arc::<str>::from(text)).into_sql_str()
}

const TABLES: [&str; 9] = [
    "record", "delivery", "failure", "instance", "lease", "pause", "command", "inbox", "schema",
];

/// Replaces the placeholders of a text. An unknown placeholder stays as it is.
fn replaced(text: &str, fragments: &[(&str, String)], names: &TableNames, quote: char) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, placeholder, after)) = next_placeholder(rest) {
        result.push_str(before);
        let fragment = fragments.iter().find(|(name, _)| *name == placeholder);
        result.push_str(&match (fragment, placeholder.split_once(' ')) {
            (Some((_, text)), _) => Cow::Borrowed(&**text),
            (_, Some(("unqualified", name))) => names.unqualified(name, quote).into(),
            (_, Some(("qualified", name))) => names.table(name, quote).into(),
            _ if TABLES.contains(&placeholder) => names.table(placeholder, quote).into(),
            _ if placeholder == "channel" => names.channel().into(),
            _ if placeholder == "namespace" => names.namespace(quote).into(),
            _ => format!("{{{placeholder}}}").into(),
        });
        rest = after;
    }
    result.push_str(rest);
    result
}

/// The texts before, in and after the first placeholder.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (placeholder, after) = rest.split_once('}')?;
    Some((before, placeholder, after))
}

/// Declares a struct with a field for each statement of SQL files.
macro_rules! statements {
    (
        $(#[$doc:meta])*
        $vis:vis $Name:ident { $($field:ident),* $(,)? }
        optional { $($optional:ident),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $Name {
            $(pub(crate) $field: $crate::store::sql::Sql,)*
            $(pub(crate) $optional: $crate::store::sql::Sql,)*
        }

        impl $Name {
            /// # Errors
            /// When the file and this list differ. Tests check each driver.
            pub(crate) fn render<Db: $crate::store::Dialect>(
                file: &'static str,
                names: &$crate::store::TableNames,
            ) -> Result<Self, $crate::store::statements::SqlFileError> {
                let file = $crate::store::statements::SqlFile::read::<Db>(file, names);
                file.has_only(&[$(stringify!($field),)* $(stringify!($optional),)*])?;
                Ok(Self {
                    $($field: file.statement::<Db>(stringify!($field))?,)*
                    $($optional: file.optional::<Db>(stringify!($optional))?,)*
                })
            }
        }
    };
}
#[cfg(feature = "testing")]
pub(super) use statements;

statements! {
    /// The statements of publishing and of the dispatcher. Rendered once per outbox and shared by all
    /// components. A database that does not need an optional statement does not have it in its
    /// files. Executing it does nothing.
    #[cfg_attr(
        not(all(feature = "mysql", feature = "postgres")),
        expect(dead_code, reason = "statements of a database that is switched off")
    )]
    pub Statements {
        // migrate
        create_versions, newest_version, add_version,
        // publish
        insert, insert_deduplicated, insert_all,
        // lease
        partition_count, seed_partitions, heartbeat, renew, delete_instance, free_leases, cluster_view,
        take_partitions, release_leases, lock_leases, reap_expired,
        // watch
        poll,
        // fetch
        due_records, next_due, unhandled_events,
        // delivery
        due_deliveries, load_deliveries, blocked_among, blocking_keys, lane_heads,
        runnable_oldest_first, runnable_every_lane,
        // settle
        complete_records, delete_records, set_unhandled, split_records, change_deliveries,
        add_failures, delete_old_failures, complete_split_records, delete_split_records,
        rename_handler, requeue_unhandled,
    }
    optional {
        // migrate
        lock_migration, create_schema,
        // lease: MySQL cannot skip locked rows in an update
        lock_free_leases,
        // watch: SQLite has neither sessions nor notifications, MySQL no notifications
        channel, lock_session, unlock_session, register, advertise, reap_lost, set_listening,
        notify_peers,
        // fetch: MySQL reads pending records with other statements
        pending_records, pending_page, pending_pages, pending_ids, records_of_ids, database_time,
        open_writers,
        // settle
        relax_transaction, complete_records_autocommit, delete_records_autocommit, add_deliveries,
        lock_split_records, open_deliveries,
    }
}

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests {
    use sqlx::Sqlite;

    use super::*;

    const FILE: &str = "-- A comment of the file.
-- fragment: now
clock()
-- fragment: columns
a, {now}

-- name: first
-- The id is known.
select {columns} from {record}
    -- The index is forced.
    where id = :id

-- transaction: steps
delete from {lease}
-- then
delete from {pause}

-- name: second
create index {unqualified record_due} on {qualified record} ({unknown})
";

    fn names() -> TableNames {
        TableNames::new(Some("shop".to_owned()), "box_".to_owned()).unwrap()
    }

    fn file() -> SqlFile {
        SqlFile::read::<Sqlite>(FILE, &names())
    }

    #[test]
    fn fragments_and_names_replace_placeholders_and_comments_are_dropped() {
        let first = file().statement::<Sqlite>("first").unwrap();
        assert_eq!(
            first.text().as_str(),
            "select a, clock() from \"shop\".\"box_record\"\n    where id = ?1"
        );
        let steps = file().statement::<Sqlite>("steps").unwrap();
        assert_eq!(steps.text().as_str(), "delete from \"shop\".\"box_lease\"");
    }

    #[test]
    fn a_schema_has_the_statements_of_each_version() {
        let file = "-- version: 1
-- name: record
create table {record}
-- name: index
create index {unqualified record_due}
-- version: 2
-- name: column
alter table {qualified record}";
        let versions = SqlFile::read::<Sqlite>(file, &names()).versions();
        let first = [
            "create table \"shop\".\"box_record\"",
            "create index \"box_record_due\"",
        ];
        assert_eq!(versions[0], first);
        assert_eq!(versions[1], ["alter table \"shop\".\"box_record\""]);
        assert_eq!(versions.len(), 2);
    }

    #[test]
    fn a_file_that_does_not_match_the_code_is_refused() {
        let error = file().statement::<Sqlite>("second").unwrap_err();
        assert!(matches!(error, SqlFileError::Placeholder(_)), "{error}");
        let error = file().statement::<Sqlite>("third").unwrap_err();
        assert!(matches!(error, SqlFileError::Missing("third")), "{error}");
        assert!(!file().optional::<Sqlite>("third").unwrap().exists());
        let error = file().has_only(&["first", "steps"]).unwrap_err();
        assert!(matches!(error, SqlFileError::Unused(_)), "{error}");
        file().has_only(&["first", "steps", "second"]).unwrap();
    }

    #[test]
    fn a_clone_shares_the_text() {
        let first = file().statement::<Sqlite>("first").unwrap();
        assert!(std::ptr::eq(first.text().as_str(), first.text().as_str()));
    }
}
