//! [`Dialect`]: what differs between databases.
//!
//! The statements of publishing and of the dispatcher stand in SQL files, one folder per database.
//! Those of operators are put together by [`operator`](super::operator), once for all databases.

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

/// Pieces of text that differ between databases.
#[derive(Debug)]
pub struct Words {
    /// The SQL files with all [`Statements`].
    pub(crate) files: &'static str,
    /// The SQL file of each step from nothing to the newest schema.
    pub(crate) schema: &'static [&'static str],
    /// Starts a transaction that changes leases.
    pub(crate) begin_leases: &'static str,
    /// Settling locks the leases of an owner first, and its statements name the locked partitions
    /// (`:ours`). Otherwise each statement has the fence itself.
    pub(crate) locks_fence: bool,
    /// Stands before the number of a parameter. `None`: each parameter is the next value.
    pub(crate) numbered: Option<char>,
    /// How many lanes one statement reads.
    pub(crate) lanes_at_once: usize,
    /// Quotes the name of a table.
    pub(crate) quote: char,
    /// The present, by the database's clock.
    pub(crate) now: &'static str,
    /// The start of 1970, from which [`Dialect::micros_between`] counts.
    pub(crate) epoch: &'static str,
    /// Follows a `select` from table `t` whose rows the transaction locks. Empty where only one
    /// transaction writes at a time.
    pub(crate) for_update: &'static str,
    /// Follows a `select` that must see what was committed after the transaction's snapshot.
    pub(crate) read_latest: &'static str,
    /// Stand before and after an `insert` that leaves out rows which exist already.
    pub(crate) insert_new: (&'static str, &'static str),
    /// The column `key`.
    pub(crate) key: &'static str,
    /// The condition "blocks its lane", as the index of the lanes has it.
    pub(crate) blocking: &'static str,
    /// Compares a column with the ids of the only parameter, in the statements on given rows.
    pub(crate) among_ids: &'static str,
    /// Stands before a column in a condition on given rows, so that the planner finds the rows by
    /// their ids and not by an index on this column.
    pub(crate) no_index: &'static str,
    /// The order of the index of waiting deliveries.
    pub(crate) waiting_order: &'static str,
}

/// How one database says what every database can say. Texts have `?` for each parameter.
pub trait Dialect: sqlx::Database<Row: Cells, Arguments: IntoArguments<Self>> {
    /// Pieces of text. One name for all of them: it is in the scope of every generic `Db: Database`.
    const WORDS: Words;
    /// Starts a transaction that is going to write.
    const BEGIN: &'static str;

    /// The statements on these tables.
    ///
    /// # Errors
    /// When an SQL file and the list of its statements differ. Tests rule it out.
    fn statements(names: &TableNames) -> Result<Statements, SqlFileError> {
        Statements::render::<Self>(Self::WORDS.files, names)
    }

    /// The key as text.
    fn key_text(alias: &str) -> String {
        format!("{alias}.{}", Self::WORDS.key)
    }

    /// Microseconds from one time to another; null if one of them is.
    fn micros_between(from: &str, to: &str) -> String;

    /// The time that is `?` microseconds ago.
    fn micros_ago() -> String;

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

    /// The blocking deliveries `of` the lane of delivery `other`, in their order: what follows
    /// `where`.
    fn in_lane(of: &str, other: &str) -> String {
        let (blocking, key) = (Self::WORDS.blocking, Self::WORDS.key);
        format!(
            "{of}.{blocking} and {of}.part = {other}.part and {of}.{key} = {other}.{key} and {of}.handler = {other}.handler order by {of}.id"
        )
    }

    /// How the rows of a status are found without reading any other row: in the order of the
    /// status's own index, so that the planner reads that index whatever its statistics say.
    fn index_path(_: &TableNames, status: Status) -> IndexPath {
        let order = match status {
            Status::Record(RecordStatus::Pending) => " order by part, id",
            Status::Record(RecordStatus::Unhandled) => " order by part, event",
            Status::Record(RecordStatus::Scheduled)
            | Status::Delivery(DeliveryStatus::Retrying) => " order by part, due_at",
            Status::Delivery(DeliveryStatus::Waiting) => Self::WORDS.waiting_order,
            Status::Record(_) | Status::Delivery(_) => " order by id",
        };
        (String::new(), order)
    }

    /// Microseconds since the oldest pending record was published, and the lowest id of one. The
    /// parameter is the number of partitions. Reads one index entry per partition.
    fn oldest_pending(names: &TableNames) -> String;

    /// Deletes the oldest commands or messages: older than `?` microseconds, at most `?` of them.
    fn prune_retained(names: &TableNames, what: Retained) -> String;

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

    /// The rows that a statement finds which walks each [`IndexPath`] in its order and stops early.
    fn with_index_order(
        connection: &mut Self::Connection,
        query: Query<'static, Self, Self::Arguments>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, sqlx::Error>> + Send {
        Self::fetch_rows(connection, query)
    }

    /// How many rows have an id in one of these ranges (first and last): columns as of
    /// [`counted`](super::operator), one row per status.
    fn statuses_within(
        connection: &mut Self::Connection,
        names: &TableNames,
        table: Table,
        ranges: &[(i64, i64)],
    ) -> impl Future<Output = Result<Vec<Self::Row>, sqlx::Error>> + Send;

    /// Writes messages into the inbox, and returns those that were not there. They are sorted and
    /// differ.
    fn receive(
        connection: &mut Self::Connection,
        names: &TableNames,
        source: &str,
        messages: &[&str],
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;
}

/// What stands behind the table, and what stands behind the condition on the status.
pub(crate) type IndexPath = (String, &'static str);

/// A text and its parameters, put together for one call.
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

    /// The value of the next `?`. A value that cannot be encoded fails the call of the statement.
    pub(crate) fn bind<'a>(mut self, value: impl Into<Param<'a>>) -> Self {
        self.arguments = self.arguments.and_then(|mut arguments| {
            Db::add_argument(&mut arguments, value.into()).map(|()| arguments)
        });
        self
    }

    /// This statement between two texts without parameters.
    pub(crate) fn inside(mut self, before: &str, after: &str) -> Self {
        self.text = format!("{before}{}{after}", self.text);
        self
    }

    /// What a driver executes.
    pub(super) fn query(self) -> Result<Query<'static, Db, Db::Arguments>, sqlx::Error> {
        let arguments = self.arguments.map_err(sqlx::Error::Encode)?;
        let text = match Db::WORDS.numbered {
            Some('$') => numbered(&self.text),
            _ => self.text,
        };
        Ok(sqlx::query_with(trusted(text), arguments))
    }
}

/// Each `?` becomes `$1`, `$2` and so on. No text has a `?` for anything else.
fn numbered(text: &str) -> String {
    let mut pieces = text.split('?');
    let mut numbered = pieces.next().unwrap_or_default().to_owned();
    for (n, piece) in pieces.enumerate() {
        numbered.push_str(&format!("${}{piece}", n + 1));
    }
    numbered
}

/// The SQL files of the folder in which this is written.
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

/// How a driver runs a query: the same text for each, because no generic code knows that a
/// connection is an `Executor`.
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
