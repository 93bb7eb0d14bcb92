//! [`Dialect`]: what differs between databases.
//!
//! The statements of publishing and of the dispatcher are in SQL files, one folder per database.
//! [`operator`](super::operator) builds the statements of operators, once for all databases.

use sqlx::{IntoArguments, error::BoxDynError, query::Query};

use super::{
    Statements, TableNames,
    call::Param,
    columns::Cells,
    operator::{Retained, Table},
    statements::SqlFileError,
    trusted,
};
use crate::operations::{DeliveryStatus, RecordStatus, Status};

/// Texts and numbers that differ between databases.
#[derive(Debug)]
pub struct Words {
    /// The SQL files with all [`Statements`].
    pub(crate) files: &'static str,
    /// The SQL file with each step from nothing to the newest schema.
    pub(crate) schema: &'static str,
    /// Starts a transaction that changes leases.
    pub(crate) begin_leases: &'static str,
    /// Settling first locks the leases of the owner, and its statements name the locked partitions
    /// (`:owned`). Otherwise each statement contains the fence.
    pub(crate) needs_lease_locks: bool,
    /// The character before the number of a parameter. `None`: parameters are `?`, without a number.
    pub(crate) parameter_prefix: Option<char>,
    /// The largest number of lanes that one statement reads.
    pub(crate) lanes_per_statement: usize,
    /// The quote around the name of a table.
    pub(crate) quote: char,
    /// The current time on the database's clock.
    pub(crate) now: &'static str,
    /// A null in a column of numbers.
    pub(crate) null_number: &'static str,
    /// The start of 1970, the first argument of [`Dialect::micros_between`] for absolute times.
    pub(crate) epoch: &'static str,
    /// The end of a `select` from table `t` that locks its rows. Empty where only one transaction
    /// writes at a time.
    pub(crate) for_update: &'static str,
    /// The end of a `select` that must see rows committed after the transaction's snapshot.
    pub(crate) read_latest: &'static str,
    /// The start and the end of an `insert` that skips rows which exist already.
    pub(crate) insert_new: (&'static str, &'static str),
    /// The column `key`.
    pub(crate) key: &'static str,
    /// The condition "blocks its lane", in the form that the index of lanes has.
    pub(crate) blocking: &'static str,
    /// Compares a column with the ids of the only parameter, in statements on given rows.
    pub(crate) among_ids: &'static str,
    /// The prefix of a column in a condition on given rows. With it, the planner finds the rows by
    /// their ids and not by an index on this column.
    pub(crate) no_index: &'static str,
    /// The order of the index of waiting deliveries.
    pub(crate) waiting_order: &'static str,
}

/// How one database writes the statements that all databases have. Texts have `?` for each parameter.
pub trait Dialect: sqlx::Database<Row: Cells, Arguments: IntoArguments<Self>> {
    /// One constant for all of them, because it is in the scope of every generic `Db: Database`.
    const WORDS: Words;
    /// Starts a transaction that will write.
    const BEGIN: &'static str;

    /// The statements on these tables.
    ///
    /// # Errors
    /// When an SQL file and the list of its statements differ. Tests check that they do not.
    fn statements(names: &TableNames) -> Result<Statements, SqlFileError> {
        Statements::render::<Self>(Self::WORDS.files, names)
    }

    /// A column that is bound as [`Param::Key`], as text.
    fn key_as_text(column: &str) -> String {
        column.to_owned()
    }

    /// The key as text.
    fn key_text(alias: &str) -> String {
        Self::key_as_text(&format!("{alias}.{}", Self::WORDS.key))
    }

    /// Microseconds from one time to another; null if one of the times is null.
    fn micros_between(from: &str, to: &str) -> String;

    /// The time that is `?` microseconds ago.
    fn micros_ago() -> String;

    /// The time that is `?` microseconds after the start of 1970.
    fn time_from_micros() -> String;

    /// Reads rows of table `t` whose `column` is among the ids of the only parameter.
    fn select_given(columns: &str, table: &str, column: &str, when: &str) -> String {
        let among = Self::WORDS.among_ids;
        format!("select {columns} from {table} t where t.{column} {among} and {when}")
    }

    /// Changes rows whose `id` is among the ids of the only parameter. Columns have no alias.
    fn update_given(table: &str, set: &str, when: &str) -> String {
        let among = Self::WORDS.among_ids;
        format!("update {table} set {set} where id {among} and {when}")
    }

    /// Deletes rows whose `column` is among the ids of the only parameter.
    fn delete_given(table: &str, column: &str, when: &str) -> String {
        let among = Self::WORDS.among_ids;
        format!("delete from {table} where {column} {among} and {when}")
    }

    /// The condition and the order after `where` that select blocking deliveries `of` the lane of
    /// delivery `other`.
    fn in_lane(of: &str, other: &str) -> String {
        let (blocking, key) = (Self::WORDS.blocking, Self::WORDS.key);
        format!(
            "{of}.{blocking} and {of}.part = {other}.part and {of}.{key} = {other}.{key} and {of}.handler = {other}.handler order by {of}.id"
        )
    }

    /// How to find the rows of a status without reading other rows. The order is that of the status's
    /// own index, so that the planner uses that index whatever its statistics are.
    fn index_path(_: &TableNames, status: Status) -> IndexPath {
        let order = match status {
            Status::Record(RecordStatus::Pending) => " order by part, id",
            Status::Record(RecordStatus::Unhandled) => " order by part, event",
            Status::Record(RecordStatus::Scheduled)
            | Status::Delivery(DeliveryStatus::Retrying) => " order by part, due_at",
            Status::Delivery(DeliveryStatus::Waiting) => Self::WORDS.waiting_order,
            Status::Delivery(DeliveryStatus::Failed) => " order by failed_at, id",
            Status::Record(_) | Status::Delivery(_) => " order by id",
        };
        (String::new(), order)
    }

    /// Microseconds since the oldest pending record was published, and the lowest id of one. Reads one
    /// index entry per partition.
    fn oldest_pending(names: &TableNames) -> String;

    /// Deletes the oldest commands or messages: older than `?` microseconds, at most `?` of them.
    fn prune_retained(names: &TableNames, kind: Retained) -> String;

    /// Adds a parameter.
    fn add_argument(arguments: &mut Self::Arguments, value: Param<'_>) -> Result<(), BoxDynError>;

    /// Adds a column of rows as an array, where the database takes arrays.
    fn add_column(
        _: &mut Self::Arguments,
        _rows: Param<'_>,
        column: &str,
    ) -> Result<(), BoxDynError> {
        Err(SqlFileError::NoValue(column.to_owned()).into())
    }

    /// The rows that a query finds.
    fn fetch_rows(
        connection: &mut Self::Connection,
        query: Query<'static, Self, Self::Arguments>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, sqlx::Error>> + Send;

    /// How many rows a query changed.
    fn execute_query(
        connection: &mut Self::Connection,
        query: Query<'static, Self, Self::Arguments>,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Runs a statement that scans each [`IndexPath`] in its order and stops at a limit.
    fn with_index_order(
        connection: &mut Self::Connection,
        query: Query<'static, Self, Self::Arguments>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, sqlx::Error>> + Send {
        Self::fetch_rows(connection, query)
    }

    /// Makes sure that the database gives this id to no new row, before a row with it is written. Most
    /// databases do so by themselves.
    fn raise_next_id(
        _: &mut Self::Connection,
        _: &TableNames,
        _: Table,
        _id: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }

    /// How many rows have an id in one of these ranges (first and last). One row per status, with the
    /// columns of [`counted`](super::operator).
    fn statuses_within(
        connection: &mut Self::Connection,
        names: &TableNames,
        table: Table,
        ranges: &[(i64, i64)],
    ) -> impl Future<Output = Result<Vec<Self::Row>, sqlx::Error>> + Send;

    /// Writes messages into the inbox and returns those that were new. `messages` is sorted and has
    /// no duplicates.
    fn receive(
        connection: &mut Self::Connection,
        names: &TableNames,
        source: &str,
        messages: &[&str],
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;
}

/// The text after the name of the table, and the text after the condition on the status.
pub(crate) type IndexPath = (String, &'static str);

/// A text and its parameters, built for one call.
#[derive(Debug)]
pub(super) struct Statement<Db: Dialect> {
    text: String,
    arguments: Result<Db::Arguments, BoxDynError>,
}

impl<Db: Dialect> Statement<Db> {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            arguments: Ok(Db::Arguments::default()),
        }
    }

    pub(crate) fn push(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    pub(crate) fn key(self, value: &str) -> Self {
        self.bind(Param::Key(Some(value)))
    }

    /// Binds the next `?`. If the value cannot be encoded, running the statement fails.
    pub(crate) fn bind<'a>(mut self, value: impl Into<Param<'a>>) -> Self {
        self.arguments = self.arguments.and_then(|mut arguments| {
            Db::add_argument(&mut arguments, value.into()).map(|()| arguments)
        });
        self
    }

    /// Puts this statement between two texts without parameters.
    pub(crate) fn inside(mut self, before: &str, after: &str) -> Self {
        self.text = format!("{before}{}{after}", self.text);
        self
    }

    /// The query that the driver runs.
    pub(super) fn query(self) -> Result<Query<'static, Db, Db::Arguments>, sqlx::Error> {
        let arguments = self.arguments.map_err(sqlx::Error::Encode)?;
        let text = match Db::WORDS.parameter_prefix {
            Some('$') => numbered(&self.text),
            _ => self.text,
        };
        Ok(sqlx::query_with(trusted(text), arguments))
    }
}

/// Replaces each `?` with `$1`, `$2` and so on. No text uses `?` for anything else.
fn numbered(text: &str) -> String {
    let mut pieces = text.split('?');
    let mut numbered = pieces.next().unwrap_or_default().to_owned();
    for (n, piece) in pieces.enumerate() {
        numbered.push_str(&format!("${}{piece}", n + 1));
    }
    numbered
}

/// The SQL files in the folder of the calling module.
macro_rules! sql_files {
    () => {
        concat!(
            include_str!("sql/fragments.sql"),
            include_str!("../columns.sql"),
            include_str!("sql/migrate.sql"),
            include_str!("sql/publish.sql"),
            include_str!("sql/lease.sql"),
            include_str!("sql/watch.sql"),
            include_str!("sql/fetch.sql"),
            include_str!("sql/delivery.sql"),
            include_str!("sql/settle.sql"),
        )
    };
}
pub(super) use sql_files;

/// Implements how a driver runs a query. The text is the same for each driver; generic code cannot
/// have it, because it does not know that a connection is an `Executor`.
macro_rules! runs_queries {
    () => {
        async fn fetch_rows(
            connection: &mut Self::Connection,
            query: Query<'static, Self, Self::Arguments>,
        ) -> Result<Vec<Self::Row>, sqlx::Error> {
            query.fetch_all(connection).await
        }

        async fn execute_query(
            connection: &mut Self::Connection,
            query: Query<'static, Self, Self::Arguments>,
        ) -> Result<u64, sqlx::Error> {
            Ok(query.execute(connection).await?.rows_affected())
        }
    };
}
pub(super) use runs_queries;
