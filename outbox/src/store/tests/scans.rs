//! How many rows PostgreSQL scans for a statement.

use sqlx::Postgres;

use super::{due, p, page, pending};
use crate::{
    operations::{Cursor, DeliveryStatus, Order},
    store::{DeliverySql as _, FetchSql as _, ListQuery, Operator, Page, RunnableOrder},
};

/// Statements find due rows without scanning rows that are due later.
#[tokio::test]
async fn postgres_does_not_scan_rows_that_are_due_later() {
    let db = super::database::postgres().await;
    db.run(
        "insert into outbox_record (event_id, event, version, key, part, payload, status, due_at)
select gen_random_uuid(), 'e', 1, 'k', 1, '{}', 'scheduled', clock_timestamp() + interval '1 day' from generate_series(1, 5000)",
    )
    .await;
    db.run(
        "insert into outbox_delivery (record_id, part, key, handler, status, blocking, attempt, failure_count, due_at)
select n, 1, n::text, 'h', 'retrying', true, 2, 1, clock_timestamp() + interval '1 day' from generate_series(1, 5000) n",
    )
    .await;
    db.run("analyze outbox_record, outbox_delivery").await;
    let mut connection = db.pool.acquire().await.unwrap();
    let sql = &db.sql;
    let before = scanned(&mut connection).await;
    let partition = [p(1)];
    let records = Postgres::due_records(&mut connection, sql, due(&partition, &[], 0, 10));
    assert!(records.await.unwrap().is_empty());
    let deliveries = Postgres::due_deliveries(&mut connection, sql, due(&partition, &["h"], 0, 10));
    assert!(deliveries.await.unwrap().is_empty());
    let scanned = scanned(&mut connection).await - before;
    assert!(scanned < 100, "{scanned} rows were scanned");
}

/// If one key has most rows of the table, statements on other keys must not scan its rows. The planner
/// knows how many rows the key has, and must not prefer the primary key.
#[tokio::test]
async fn postgres_does_not_scan_rows_of_one_key_for_another() {
    let db = super::database::postgres().await;
    db.run(
        "insert into outbox_record (event_id, event, version, key, part, payload)
select gen_random_uuid(), 'e', 1, 'hot', 1, '{}' from generate_series(1, 20000)",
    )
    .await;
    db.run(
        "insert into outbox_delivery (record_id, part, key, handler, status, blocking, attempt, failure_count)
select id, 1, case when id = 20000 then 'cold' else 'hot' end, 'h', 'waiting', true, 1, 0 from outbox_record order by id",
    )
    .await;
    db.run("analyze outbox_record, outbox_delivery").await;
    let mut connection = db.pool.acquire().await.unwrap();
    let sql = &db.sql;
    let before = scanned(&mut connection).await;

    let pages: Vec<Page> = (0..64).map(page).collect();
    let records = Postgres::pending_records(&mut connection, sql, pending(&pages, &[], 4, 64));
    assert_eq!(records.await.unwrap().len(), 4);
    let cold = [super::database::lane(1, "cold", "h")];
    let lanes = Postgres::lane_heads(&mut connection, sql, &cold, 4);
    assert_eq!(lanes.await.unwrap().len(), 1);
    let mut operator = Operator::<Postgres>::new(&mut connection, &db.names);
    assert!(operator.oldest_pending().await.unwrap().is_some());
    let read = scanned(&mut connection).await - before;
    assert!(read < 1000, "{read} rows were scanned");

    for order in [RunnableOrder::OldestFirst, RunnableOrder::EveryLane] {
        let before = scanned(&mut connection).await;
        let partition = [p(1)];
        let runnable =
            Postgres::runnable_lanes(&mut connection, sql, &partition, &["h"], order, 10);
        assert_eq!(runnable.await.unwrap().len(), 2);
        // Scans all waiting deliveries, and for each only the first delivery of its lane.
        let read = scanned(&mut connection).await - before;
        assert!(read < 100_000, "{order:?}: {read} rows were scanned");
    }
}

/// A page of the list by the time of failure, and the newest failure of each event, read the ends of one
/// index, also before the first `analyze`.
#[tokio::test]
async fn postgres_does_not_scan_all_failures_for_the_newest() {
    let db = super::database::postgres().await;
    db.run(
        "insert into outbox_record (event_id, event, version, key, part, payload, status)
select gen_random_uuid(), 'e', 1, 'k', 1, '{}', 'split' from generate_series(1, 30000)",
    )
    .await;
    db.run(
        "insert into outbox_delivery (record_id, part, key, handler, status, blocking, attempt, failure_count, failed_at)
select id, 1, 'k', 'h', 'failed', false, 2, 1, clock_timestamp() - id * interval '1 second' from outbox_record",
    )
    .await;
    let mut connection = db.pool.acquire().await.unwrap();
    let before = scanned(&mut connection).await;
    let status = Some(DeliveryStatus::Failed.into());
    let mut after = None;
    for first in [1, 11] {
        let query = ListQuery {
            event: None,
            handler: None,
            key: None,
            fingerprint: None,
            older_than: None,
            failed_since: None,
            order: Order::Failed,
            newest_first: true,
            after,
            limit: 10,
        };
        let mut operator = Operator::<Postgres>::new(&mut connection, &db.names);
        let page = operator.list(status, query).await.unwrap();
        let ids: Vec<i64> = page.iter().map(|item| item.record_id).collect();
        assert_eq!(ids, (first..first + 10).collect::<Vec<i64>>());
        let last = page[9].delivery.as_ref().unwrap();
        after = Some(Cursor {
            id: last.id,
            failed_at: last.failed_at.map(jiff::Timestamp::as_microsecond),
        });
    }
    let read = scanned(&mut connection).await - before;
    assert!(read < 200, "{read} rows were scanned");
}

/// How many index entries and table rows this database has scanned so far.
async fn scanned(connection: &mut sqlx::PgConnection) -> i64 {
    sqlx::query("select pg_stat_force_next_flush()")
        .execute(&mut *connection)
        .await
        .unwrap();
    let sql = "select (sum(coalesce(i.idx_tup_read, 0)) + (select sum(seq_tup_read) from pg_stat_user_tables where schemaname = current_schema()))::bigint
from pg_stat_user_indexes i where i.schemaname = current_schema() and i.relname in ('outbox_record', 'outbox_delivery')";
    sqlx::query_scalar(sql)
        .fetch_one(&mut *connection)
        .await
        .unwrap()
}
