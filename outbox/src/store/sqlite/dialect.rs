//! How SQLite writes the statements that all databases have.

use sqlx::{
    Arguments as _, Sqlite, SqliteConnection,
    error::BoxDynError,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::NOW;
use crate::store::{
    TableNames,
    batch::rows_as_json,
    call::Param,
    dialect::{Dialect, Words, runs_queries, sql_files},
    operator::{Retained, Table},
    trusted,
};

impl Dialect for Sqlite {
    const WORDS: Words = Words {
        files: sql_files!(),
        schema: concat!(
            include_str!("sql/fragments.sql"),
            include_str!("sql/schema.sql")
        ),
        // It is the writer from its start: SQLite may refuse a read transaction that wants to write.
        begin_leases: Self::BEGIN,
        needs_lease_locks: false,
        parameter_prefix: Some('?'),
        lanes_per_statement: usize::MAX,
        quote: '"',
        now: NOW,
        null_number: "null",
        epoch: "0",
        for_update: "",
        read_latest: "",
        insert_new: ("insert", " on conflict do nothing"),
        key: "key",
        blocking: "blocking",
        among_ids: "in (select value from json_each(?))",
        no_index: "+",
        waiting_order: " order by part, handler, id",
    };
    const BEGIN: &'static str = "begin immediate";

    fn micros_between(from: &str, to: &str) -> String {
        format!("{to} - {from}")
    }

    fn micros_ago() -> String {
        format!("{NOW} - ?")
    }

    fn time_from_micros() -> String {
        "?".to_owned()
    }

    fn oldest_pending(names: &TableNames) -> String {
        let (record, lease) = (names.table("record", '"'), names.table("lease", '"'));
        format!(
            "select {NOW} - min(r.created_at), min(r.id) from {lease} p join {record} r on r.id = (
    select f.id from {record} f where f.part = p.part and f.status = 'pending' order by f.id limit 1
)"
        )
    }

    fn prune_retained(names: &TableNames, kind: Retained) -> String {
        let table = names.table(kind.table(), '"');
        format!(
            "delete from {table} where rowid in (
    select rowid from {table} where created_at <= {NOW} - ? order by created_at limit ?
)"
        )
    }

    fn add_argument(arguments: &mut SqliteArguments, value: Param<'_>) -> Result<(), BoxDynError> {
        match value {
            Param::Int(value) => arguments.add(value),
            Param::Text(value) | Param::Key(value) => arguments.add(value),
            Param::Uuid(value) => arguments.add(value),
            Param::Flag(value) => arguments.add(value),
            Param::Partition(value) => arguments.add(value.number().cast_signed()),
            Param::Session(key) => arguments.add(key.map(|key| key.0)),
            list => arguments.add(list.as_json()?),
        }
    }

    runs_queries!();

    async fn statuses_within(
        connection: &mut SqliteConnection,
        names: &TableNames,
        table: Table,
        ranges: &[(i64, i64)],
    ) -> Result<Vec<SqliteRow>, sqlx::Error> {
        let (rows, is_delivery) = (names.table(table.name(), '"'), table.is_delivery());
        let of = |(first, last): &(i64, i64)| {
            format!("select status from {rows} where id between {first} and {last}")
        };
        let parts: Vec<String> = ranges.iter().map(of).collect();
        let sql = trusted(format!(
            "select {is_delivery}, s.status, null, count(*) from (\n{}\n) s group by s.status",
            parts.join("\nunion all ")
        ));
        // The text differs from call to call, so the prepared statement is not cached.
        sqlx::query(sql)
            .persistent(false)
            .fetch_all(connection)
            .await
    }

    async fn receive(
        connection: &mut SqliteConnection,
        names: &TableNames,
        source: &str,
        messages: &[&str],
    ) -> Result<Vec<String>, sqlx::Error> {
        let table = names.table("inbox", '"');
        let sql = trusted(format!(
            "insert into {table} (source, message_id) select ?1, value from json_each(?2) where true
on conflict do nothing returning message_id"
        ));
        sqlx::query_scalar(sql)
            .bind(source)
            .bind(rows_as_json(messages)?)
            .fetch_all(connection)
            .await
    }
}
