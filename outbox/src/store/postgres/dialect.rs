//! How PostgreSQL writes the statements that all databases have.

use sqlx::{
    Arguments as _, Connection as _, PgConnection, Postgres,
    error::BoxDynError,
    postgres::{PgArguments, PgRow},
    query::Query,
};

use crate::store::{
    TableNames,
    call::Param,
    dialect::{Dialect, Words, runs_queries, sql_files},
    operator::{Retained, Table},
    statements::SqlFileError,
    trusted,
};

impl Dialect for Postgres {
    const WORDS: Words = Words {
        files: sql_files!(),
        schema: include_str!("sql/schema.sql"),
        begin_leases: "begin",
        needs_lease_locks: false,
        parameter_prefix: Some('$'),
        lanes_per_statement: usize::MAX,
        quote: '"',
        now: "clock_timestamp()",
        null_number: "null::bigint",
        epoch: "timestamptz 'epoch'",
        for_update: " order by t.id for update",
        read_latest: "",
        insert_new: ("insert", " on conflict do nothing"),
        key: "key",
        blocking: "blocking",
        among_ids: "= any(?)",
        no_index: "",
        waiting_order: " order by id",
    };
    const BEGIN: &'static str = "begin";

    fn micros_between(from: &str, to: &str) -> String {
        format!("(extract(epoch from {to} - {from}) * 1000000)::bigint")
    }

    fn micros_ago() -> String {
        "clock_timestamp() - ? * interval '1 microsecond'".to_owned()
    }

    fn time_from_micros() -> String {
        "timestamptz 'epoch' + ? * interval '1 microsecond'".to_owned()
    }

    /// Compares and orders by all columns of the index of lanes. With an order by the id alone, the
    /// planner may scan the primary key for the first delivery of a lane, through all rows of a long
    /// lane.
    fn in_lane(of: &str, other: &str) -> String {
        let lane = |of: &str| format!("({of}.part, {of}.key, {of}.handler)");
        let (lane, other) = (lane(of), lane(other));
        format!(
            "{of}.blocking and {lane} >= {other} and {lane} <= {other} order by {of}.part, {of}.key, {of}.handler, {of}.id"
        )
    }

    /// The condition and the order both use `part`, so that only the index of pending records fits.
    fn oldest_pending(names: &TableNames) -> String {
        let (record, lease) = (names.table("record", '"'), names.table("lease", '"'));
        let age = Self::micros_between("min(oldest.created_at)", Self::WORDS.now);
        format!(
            "select {age}, min(oldest.id) from {lease} p cross join lateral (
    select r.created_at, r.id from {record} r
    where r.status = 'pending' and r.part >= p.part and r.part <= p.part order by r.part, r.id limit 1
) oldest"
        )
    }

    /// Two processes may prune at the same time. Each skips the rows that the other has locked.
    fn prune_retained(names: &TableNames, kind: Retained) -> String {
        let table = names.table(kind.table(), '"');
        format!(
            "delete from {table} where ctid = any(array(
    select ctid from {table} where created_at <= statement_timestamp() - ? * interval '1 microsecond'
    order by created_at limit ? for update skip locked
))"
        )
    }

    fn add_argument(arguments: &mut PgArguments, value: Param<'_>) -> Result<(), BoxDynError> {
        match value {
            Param::Int(value) => arguments.add(value),
            Param::Text(value) | Param::Key(value) => arguments.add(value),
            Param::Uuid(value) => arguments.add(value),
            Param::Flag(value) => arguments.add(value),
            Param::Partition(value) => arguments.add(value.number().cast_signed()),
            Param::Session(key) => arguments.add(key.map(|key| key.0)),
            Param::Ids(ids) => arguments.add(ids),
            Param::Texts(texts) => arguments.add(texts),
            Param::Partitions(list) => {
                arguments.add(column(list, |one| one.number().cast_signed()))
            }
            _ => Err("rows are bound by their columns".into()),
        }
    }

    fn add_column(
        arguments: &mut PgArguments,
        rows: Param<'_>,
        name: &str,
    ) -> Result<(), BoxDynError> {
        match (rows, name) {
            (Param::Leases(rows), "part") => {
                arguments.add(column(rows, |r| r.partition.number().cast_signed()))
            }
            (Param::Leases(rows), "epoch") => arguments.add(column(rows, |r| r.epoch)),
            (Param::Lanes(rows), "part") => {
                arguments.add(column(rows, |r| r.partition.number().cast_signed()))
            }
            (Param::Lanes(rows), "key") => arguments.add(column(rows, |r| &*r.key)),
            (Param::Lanes(rows), "handler") => arguments.add(column(rows, |r| &*r.handler)),
            (Param::Pages(rows), "part") => {
                arguments.add(column(rows, |r| r.partition.number().cast_signed()))
            }
            (Param::Pages(rows), "after") => arguments.add(column(rows, |r| r.after)),
            (Param::Records(rows), "event_id") => {
                arguments.add(column(rows, |r| r.record.event_id))
            }
            (Param::Records(rows), "key") => arguments.add(column(rows, |r| &*r.record.key)),
            (Param::Records(rows), "part") => {
                arguments.add(column(rows, |r| r.partition.number().cast_signed()))
            }
            (Param::Records(rows), "payload") => {
                arguments.add(column(rows, |r| &*r.record.payload))
            }
            _ => Err(SqlFileError::NoValue(name.to_owned()).into()),
        }
    }

    runs_queries!();

    /// Switches other plans off. Before the first `analyze` of a table, the planner would read and sort
    /// all rows of a status.
    async fn with_index_order(
        connection: &mut PgConnection,
        query: Query<'static, Self, PgArguments>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let mut tx = connection.begin().await?;
        let off = ["enable_bitmapscan", "enable_seqscan", "enable_sort", "jit"]
            .map(|setting| format!("set_config('{setting}', 'off', true)"));
        let set = trusted(format!("select {}", off.join(", ")));
        sqlx::query(set).execute(&mut *tx).await?;
        let rows = Self::fetch_rows(&mut tx, query).await?;
        tx.rollback().await?;
        Ok(rows)
    }

    /// A sequence does not notice ids that a statement names. Only a sequence below the id is changed, and
    /// the lock keeps publishers from taking ids meanwhile: otherwise it could be set back.
    async fn raise_next_id(
        connection: &mut PgConnection,
        names: &TableNames,
        table: Table,
        id: i64,
    ) -> Result<(), sqlx::Error> {
        let rows = names.table(table.name(), '"');
        let sequence = format!("pg_get_serial_sequence('{rows}', 'id')::regclass");
        let is_below = format!("coalesce(pg_sequence_last_value({sequence}), 0) < $1");
        let found = sqlx::query_scalar(trusted(format!("select {is_below}")));
        if !found.bind(id).fetch_one(&mut *connection).await? {
            return Ok(());
        }
        for text in [
            "set local lock_timeout = '5s'".to_owned(),
            format!("lock table {rows} in share row exclusive mode"),
        ] {
            sqlx::query(trusted(text)).execute(&mut *connection).await?;
        }
        let raise = format!("select setval({sequence}, $1) where {is_below}");
        let raise = sqlx::query(trusted(raise)).bind(id);
        raise.execute(connection).await.map(drop)
    }

    async fn statuses_within(
        connection: &mut PgConnection,
        names: &TableNames,
        table: Table,
        ranges: &[(i64, i64)],
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let (rows, is_delivery) = (names.table(table.name(), '"'), table.is_delivery());
        // Without the limit, the planner expects so many rows that it first compiles the statement
        // (`jit`).
        let sql = trusted(format!(
            "select {is_delivery}, r.status, null, count(*) from unnest($1::bigint[], $2::bigint[]) as s (first, last)
cross join lateral (
    select r.id, r.status from {rows} r where r.id >= s.first order by r.id limit $3
) r where r.id <= s.last group by r.status"
        ));
        let width = ranges.iter().map(|(first, last)| last - first + 1).max();
        let (first, last): (Vec<i64>, Vec<i64>) = ranges.iter().copied().unzip();
        sqlx::query(sql)
            .bind(first)
            .bind(last)
            .bind(width.unwrap_or(0))
            .fetch_all(connection)
            .await
    }

    async fn receive(
        connection: &mut PgConnection,
        names: &TableNames,
        source: &str,
        messages: &[&str],
    ) -> Result<Vec<String>, sqlx::Error> {
        let table = names.table("inbox", '"');
        let sql = trusted(format!(
            "insert into {table} (source, message_id)
select $1, message from unnest($2::text[]) with ordinality as m (message, place) order by place
on conflict do nothing returning message_id"
        ));
        sqlx::query_scalar(sql)
            .bind(source)
            .bind(messages)
            .fetch_all(connection)
            .await
    }
}

/// The values of one column, for an array.
fn column<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
