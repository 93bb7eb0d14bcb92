//! How MySQL writes the statements that all databases have.
//!
//! Every statement on given rows starts from them (`straight_join`) and finds each by its key. MySQL
//! reads no other row, so it locks no other row.

use sqlx::{
    Arguments as _, MySql, MySqlConnection,
    error::BoxDynError,
    mysql::{MySqlArguments, MySqlRow},
    query::Query,
};
use uuid::Uuid;

use super::{placeholders, watch::lock_name};
use crate::{
    operations::{DeliveryStatus, RecordStatus, Status},
    store::{
        TableNames,
        call::Param,
        dialect::{Dialect, IndexPath, Words, runs_queries, sql_files},
        operator::{Retained, Table},
        trusted,
    },
};

/// Ids that are given as JSON.
const IDS: &str = "json_table(?, '$[*]' columns (id bigint path '$')) u";
/// How many messages one statement writes.
const MESSAGES_PER_STATEMENT: usize = 500;

impl Dialect for MySql {
    const WORDS: Words = Words {
        files: sql_files!(),
        schema: include_str!("sql/schema.sql"),
        // At a higher isolation level, rows of other owners that were read and did not match would
        // stay locked.
        begin_leases: "set transaction isolation level read committed; begin",
        needs_lease_locks: true,
        parameter_prefix: None,
        // The connection keeps a prepared statement for each number of lanes.
        lanes_per_statement: 64,
        quote: '`',
        now: "utc_timestamp(6)",
        null_number: "cast(null as signed)",
        epoch: "'1970-01-01'",
        for_update: " for update",
        read_latest: " lock in share mode",
        // `ignore` hides more errors than duplicates. Callers check lengths first.
        insert_new: ("insert ignore", ""),
        key: "`key`",
        blocking: "blocking = true",
        no_index: "",
        // Not used: the functions below join given rows and name indexes.
        among_ids: "",
        waiting_order: "",
    };
    const BEGIN: &'static str = "begin";

    fn key_as_text(column: &str) -> String {
        format!("convert({column} using utf8mb4)")
    }

    fn micros_between(from: &str, to: &str) -> String {
        format!("timestampdiff(microsecond, {from}, {to})")
    }

    fn micros_ago() -> String {
        "utc_timestamp(6) - interval ? microsecond".to_owned()
    }

    fn time_from_micros() -> String {
        "timestamp('1970-01-01') + interval ? microsecond".to_owned()
    }

    fn select_given(columns: &str, table: &str, column: &str, when: &str) -> String {
        format!(
            "select {columns} from {IDS} straight_join {table} t on t.{column} = u.id where {when}"
        )
    }

    fn update_given(table: &str, set: &str, when: &str) -> String {
        format!("update {IDS} straight_join {table} t on t.id = u.id set {set} where {when}")
    }

    fn delete_given(table: &str, column: &str, when: &str) -> String {
        format!("delete t from {IDS} straight_join {table} t on t.{column} = u.id where {when}")
    }

    /// Several indexes begin with the status, so the index is named.
    fn index_path(names: &TableNames, status: Status) -> IndexPath {
        let (index, order) = match status {
            Status::Record(RecordStatus::Scheduled) => {
                ("record_scheduled", " order by part, due_at")
            }
            Status::Record(_) => ("record_pending", " order by part, id"),
            Status::Delivery(DeliveryStatus::Retrying) => {
                ("delivery_due", " order by part, due_at")
            }
            Status::Delivery(DeliveryStatus::Failed) => {
                ("delivery_failed_at", " order by failed_at, id")
            }
            Status::Delivery(_) => ("delivery_waiting", " order by id"),
        };
        (
            format!(" force index ({})", names.unqualified(index, '`')),
            order,
        )
    }

    fn oldest_pending(names: &TableNames) -> String {
        let (record, lease, pending) = (
            names.table("record", '`'),
            names.table("lease", '`'),
            names.unqualified("record_pending", '`'),
        );
        format!(
            "select timestampdiff(microsecond, min(r.created_at), utc_timestamp(6)), min(r.id) from (
    select (
        select f.id from {record} f force index ({pending})
        where f.status = 'pending' and f.part = p.part order by f.id limit 1
    ) as id from {lease} p
) oldest join {record} r on r.id = oldest.id"
        )
    }

    fn prune_retained(names: &TableNames, kind: Retained) -> String {
        let table = names.table(kind.table(), '`');
        format!(
            "delete from {table} where created_at <= utc_timestamp(6) - interval ? microsecond order by created_at limit ?"
        )
    }

    fn add_argument(arguments: &mut MySqlArguments, value: Param<'_>) -> Result<(), BoxDynError> {
        match value {
            Param::Int(value) => arguments.add(value),
            Param::Text(value) => arguments.add(value),
            Param::Key(value) => arguments.add(value.map(str::as_bytes)),
            Param::Uuid(value) => arguments.add(value),
            Param::Flag(value) => arguments.add(value),
            Param::Partition(value) => arguments.add(value.number().cast_signed()),
            Param::Session(key) => arguments.add(key.map(lock_name)),
            list => arguments.add(list.as_json()?),
        }
    }

    runs_queries!();

    async fn statuses_within(
        connection: &mut MySqlConnection,
        names: &TableNames,
        table: Table,
        ranges: &[(i64, i64)],
    ) -> Result<Vec<MySqlRow>, sqlx::Error> {
        let (rows, is_delivery) = (names.table(table.name(), '`'), table.is_delivery());
        let of = |(first, last): &(i64, i64)| format!("id between {first} and {last}");
        let parts: Vec<String> = ranges.iter().map(of).collect();
        let sql = trusted(format!(
            "select {is_delivery}, status, null, count(*) from {rows} force index (primary) where {}\ngroup by status",
            parts.join(" or ")
        ));
        // The text differs from call to call, so it is not prepared. Closing a prepared statement
        // would also delay the next statement by 40 ms, because the server does not reply to it.
        sqlx::raw_sql(sql).fetch_all(connection).await
    }

    async fn receive(
        connection: &mut MySqlConnection,
        names: &TableNames,
        source: &str,
        messages: &[&str],
    ) -> Result<Vec<String>, sqlx::Error> {
        let table = names.table("inbox", '`');
        // The database does not report which rows `ignore` skipped. The rows of this call have a
        // receipt of their own.
        let receipt = Uuid::now_v7();
        let mut new_messages = Vec::new();
        for messages in messages.chunks(MESSAGES_PER_STATEMENT) {
            let rows = vec!["(?, ?, ?, utc_timestamp(6))"; messages.len()].join(", ");
            let insert = trusted(format!(
                "insert ignore into {table} (source, message_id, receipt, created_at) values {rows}"
            ));
            let mut query = sqlx::query(insert);
            for message in messages {
                query = query
                    .bind(source.as_bytes())
                    .bind(message.as_bytes())
                    .bind(receipt);
            }
            query.execute(&mut *connection).await?;
            let select = trusted(format!(
                "select convert(message_id using utf8mb4) from {table} where source = ? and receipt = ? and message_id in ({})",
                placeholders(messages.len())
            ));
            let mut query = sqlx::query_scalar(select)
                .bind(source.as_bytes())
                .bind(receipt);
            for message in messages {
                query = query.bind(message.as_bytes());
            }
            let found: Vec<String> = query.fetch_all(&mut *connection).await?;
            new_messages.extend(found);
        }
        Ok(new_messages)
    }
}
