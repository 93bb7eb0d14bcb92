//! Pending records, and what becomes due.

use super::{
    database::{ids, names, record},
    due, on_each_database, page, pending, scheduled, waiting,
};
use crate::store::{
    Batch, DeliverySql as _, Due, FetchSql as _, InMemory, OpenWriters, Operator, Page,
    PublishSql as _,
};

on_each_database! {
    async fn a_record_is_read_as_it_was_written(db) {
        let new = record("Kunde ä \"7\"", 3);
        let mut connection = db.pool.acquire().await.unwrap();
        Db::insert_all(&mut connection, &db.sql, std::slice::from_ref(&new)).await.unwrap();
        let found = Db::pending_records(&mut connection, &db.sql, pending(&[page(3)], &[], 10, 10)).await.unwrap();
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.part, 3);
        let age = crate::outbox::clock::Clock::now(&crate::outbox::clock::SystemClock).duration_since(found.record.created_at);
        assert!(age.as_secs().abs() < 60, "{age}");
        let mut expected = new.record;
        expected.id = found.record.id;
        expected.created_at = found.record.created_at;
        assert_eq!(found.record, expected);
    }

    async fn pages_have_their_own_bounds_and_share_a_limit(db) {
        let i = db.publish(&[("a", 1), ("b", 2), ("c", 1), ("d", 1), ("e", 2), ("f", 5), ("g", 1), ("h", 60)]).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let mut read = async |pages: &[Page], per_page, limit| {
            ids(&Db::pending_records(&mut connection, &db.sql, pending(pages, &[], per_page, limit)).await.unwrap())
        };
        assert!(read(&[], 9, 9).await.is_empty());
        assert_eq!(read(&[page(1)], 9, 9).await, [i[0], i[2], i[3], i[6]]);
        // The partitions in the order in which they were asked for.
        assert_eq!(read(&[page(2), page(1), page(9)], 9, 9).await, [i[1], i[4], i[0], i[2], i[3], i[6]]);
        assert_eq!(read(&[page(1), page(2), page(5)], 2, 9).await, [i[0], i[2], i[1], i[4], i[5]]);
        assert_eq!(read(&[page(1), page(2), page(5)], 2, 3).await, [i[0], i[2], i[1]]);
        let middle = Page { part: 1, after: i[0] };
        assert_eq!(read(&[middle, page(2)], 9, 9).await, [i[2], i[3], i[6], i[1], i[4]]);
        assert_eq!(read(&[middle], 1, 9).await, [i[2]]);
        let nothing = Page { part: 1, after: i[6] };
        assert!(read(&[nothing], 9, 9).await.is_empty());
        // All partitions at once.
        let all: Vec<Page> = (0..64).map(page).collect();
        assert_eq!(read(&all, 1, 9).await, [i[0], i[1], i[5], i[7]]);
        assert_eq!(read(&all, 3, 3).await, [i[0], i[2], i[3]]);
        assert_eq!(read(&all, 3, 5).await, [i[0], i[2], i[3], i[1], i[4]]);
        assert_eq!(read(&all, 9, 99).await, [i[0], i[2], i[3], i[6], i[1], i[4], i[5], i[7]]);
    }

    async fn known_records_are_left_out_and_take_no_room(db) {
        let i = db.publish(&[("a", 1), ("b", 2), ("c", 1), ("d", 1), ("e", 2), ("f", 5), ("g", 1)]).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let known = [(1, i[0]), (1, i[3]), (2, i[1]), (5, i[5])].map(|(part, id)| InMemory { part, id });
        let mut read = async |pages: &[Page], per_page, limit| {
            ids(&Db::pending_records(&mut connection, &db.sql, pending(pages, &known, per_page, limit)).await.unwrap())
        };
        assert_eq!(read(&[page(1), page(2), page(5)], 9, 9).await, [i[2], i[6], i[4]]);
        assert_eq!(read(&[page(1), page(2), page(5)], 1, 9).await, [i[2], i[4]]);
        assert_eq!(read(&[page(1), page(2)], 9, 2).await, [i[2], i[6]]);
        assert_eq!(read(&[Page { part: 1, after: i[2] }], 9, 9).await, [i[6]]);
        assert!(read(&[page(5)], 9, 9).await.is_empty());
    }

    async fn only_pending_records_are_pending(db) {
        let i = db.publish(&[("a", 3), ("a", 3), ("a", 3), ("a", 3)]).await;
        let fence = db.own().await;
        let batch = Batch { completed: vec![i[0]], unhandled: vec![i[1]], split_records: vec![i[2]], ..Batch::default() };
        db.settle(&fence, &batch, true).await;
        db.publish_in(60, 3).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let found = Db::pending_records(&mut connection, &db.sql, pending(&[page(3)], &[], 9, 9)).await.unwrap();
        assert_eq!(ids(&found), [i[3]]);
    }

    async fn records_become_due_in_the_order_of_their_times(db) {
        let (late, early, elsewhere) = (db.publish_in(300, 1).await, db.publish_in(100, 2).await, db.publish_in(100, 9).await);
        let middle = db.publish_in(200, 1).await;
        db.publish(&[("now", 1)]).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let mut read = async |parts: &[u16], seconds: i64, limit| {
            let found = Db::due_records(&mut connection, &db.sql, due(parts, &[], seconds * 1_000_000, limit)).await.unwrap();
            ids(&found)
        };
        assert!(read(&[1, 2], 0, 9).await.is_empty());
        assert!(read(&[1, 2], 99, 9).await.is_empty());
        assert_eq!(read(&[1, 2], 101, 9).await, [early]);
        assert_eq!(read(&[1, 2], 301, 9).await, [early, middle, late]);
        assert_eq!(read(&[1, 2], 301, 2).await, [early, middle]);
        assert_eq!(read(&[1], 301, 1).await, [middle]);
        assert_eq!(read(&[9], 301, 9).await, [elsewhere]);
        assert!(read(&[], 301, 9).await.is_empty());
    }

    async fn deliveries_become_due_in_the_order_of_their_times(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("c", 4), ("a", 3)]).await;
        let fence = db.own().await;
        let in_seconds = |mut row: crate::store::DeliveryRow, key: &str, part, seconds: i64| {
            row.key = key.to_owned();
            row.part = part;
            row.due_in = Some(seconds * 1_000_000);
            row
        };
        let new_deliveries = vec![
            in_seconds(scheduled(i[0], "mail"), "a", 3, 300),
            in_seconds(scheduled(i[0], "bill"), "a", 3, 50),
            in_seconds(scheduled(i[1], "mail"), "b", 3, 100),
            in_seconds(scheduled(i[2], "mail"), "c", 4, 200),
            waiting(i[3], "mail"),
        ];
        db.settle(&fence, &Batch { split_records: i.clone(), new_deliveries, ..Batch::default() }, false).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let mut read = async |parts: &[u16], handlers: &[&str], seconds: i64, limit| {
            let micros = seconds * 1_000_000;
            let due = Db::due_deliveries(&mut connection, &db.sql, due(parts, handlers, micros, limit)).await.unwrap();
            let ids: Vec<i64> = due.iter().map(|due| due.id).collect();
            let read = Db::load_deliveries(&mut connection, &db.sql, &ids).await.unwrap();
            let due: Vec<_> = due.iter().map(|due| (due.record_id, &*due.handler)).collect();
            assert_eq!(due, names(&read));
            read
        };
        assert!(read(&[3, 4], &["mail", "bill"], 49, 9).await.is_empty());
        let both = read(&[3, 4], &["bill", "mail"], 301, 9).await;
        assert_eq!(names(&both), [(i[0], "bill"), (i[1], "mail"), (i[2], "mail"), (i[0], "mail")]);
        assert_eq!(names(&read(&[3, 4], &["mail"], 301, 2).await), [(i[1], "mail"), (i[2], "mail")]);
        assert_eq!(names(&read(&[4], &["mail"], 301, 9).await), [(i[2], "mail")]);
        assert!(read(&[3, 4], &[], 301, 9).await.is_empty());
        assert!(read(&[3, 4], &["Mail", "ma"], 301, 9).await.is_empty());
        assert!(read(&[], &["mail"], 301, 9).await.is_empty());

        // Only the one of lane `a` has another behind it.
        let followed: Vec<bool> = both.iter().map(|delivery| delivery.followed).collect();
        assert_eq!(followed, [false, false, false, true]);
        let first = &both[0];
        assert!(first.blocking && !first.waiting);
        assert_eq!((first.attempt.number, first.attempt.failure_count), (2, 1));
        assert_eq!(first.attempt.first_failed_at.unwrap().as_microsecond(), 1_700_000_000_123_456);
        assert_eq!((first.fetched.part, &*first.fetched.record.key), (3, "a"));
    }

    async fn the_next_due_is_the_nearest_of_records_and_deliveries(db) {
        let mut connection = db.pool.acquire().await.unwrap();
        let none = Db::next_due(&mut connection, &db.sql, due(&[1, 3], &["mail"], 0, 0)).await.unwrap();
        assert_eq!(none, None);
        drop(connection);
        let i = db.publish(&[("a", 3)]).await;
        db.publish_in(100, 1).await;
        let fence = db.own().await;
        let batch = Batch { split_records: i.clone(), new_deliveries: vec![scheduled(i[0], "mail")], ..Batch::default() };
        db.settle(&fence, &batch, false).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let mut next = async |parts: &[u16], handlers: &[&str], offset| {
            let next = Db::next_due(&mut connection, &db.sql, due(parts, handlers, offset, 0)).await.unwrap();
            // In seconds; the statements before took less than five.
            next.map(|micros| -(-micros).div_euclid(5_000_000) * 5)
        };
        assert_eq!(next(&[1, 3], &["mail"], 0).await, Some(10));
        assert_eq!(next(&[1, 3], &["mail"], 50_000_000).await, Some(-40));
        assert_eq!(next(&[1, 3], &["other"], 0).await, Some(100));
        assert_eq!(next(&[1, 3], &[], 0).await, Some(100));
        assert_eq!(next(&[3], &["mail", "other"], 0).await, Some(10));
        assert_eq!(next(&[3], &["other"], 0).await, None);
        assert_eq!(next(&[2], &["mail"], 0).await, None);
        assert_eq!(next(&[], &["mail"], 0).await, None);
    }

    async fn a_time_that_was_given_is_kept(db) {
        let mut connection = db.pool.acquire().await.unwrap();
        let mut new = record("old", 1);
        new.due = Due::At(jiff::Timestamp::from_second(1_000_000_000).unwrap());
        let id = Db::insert(&mut connection, &db.sql, &new).await.unwrap().unwrap();
        let found = Db::due_records(&mut connection, &db.sql, due(&[1], &[], 0, 9)).await.unwrap();
        assert_eq!(ids(&found), [id]);
        let next = Db::next_due(&mut connection, &db.sql, due(&[1], &[], 0, 0)).await.unwrap();
        assert!(next.unwrap() < -365 * 24 * 3600 * 1_000_000, "{next:?}");
    }

    async fn paused_handlers_are_listed(db) {
        let mut connection = db.pool.acquire().await.unwrap();
        assert!(Operator::<Db>::new(&mut connection, &db.names).paused().await.unwrap().is_empty());
        drop(connection);
        db.run("insert into outbox_pause (handler, paused_at) select 'mail', created_at from outbox_record").await;
        db.publish(&[("a", 1)]).await;
        db.run("insert into outbox_pause (handler, paused_at) select 'mail', created_at from outbox_record").await;
        let mut connection = db.pool.acquire().await.unwrap();
        assert_eq!(Operator::<Db>::new(&mut connection, &db.names).paused().await.unwrap(), ["mail"]);
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_names_the_transactions_that_are_writing() {
    use sqlx::Postgres;

    let db = super::database::postgres().await;
    let mut connection = db.pool.acquire().await.unwrap();
    let writers = async |connection: &mut sqlx::PgConnection| {
        let writers = Postgres::open_writers(connection, &db.sql).await.unwrap();
        let OpenWriters::Named { names, drawn } = writers else {
            panic!("PostgreSQL knows its writers")
        };
        (names, drawn.unwrap())
    };
    assert_eq!(writers(&mut connection).await, (vec![], 0));

    let mut tx = db.pool.begin().await.unwrap();
    Postgres::insert(&mut tx, &db.sql, &record("a", 1))
        .await
        .unwrap();
    let (first, drawn) = writers(&mut connection).await;
    assert_eq!((first.len(), drawn), (1, 1));
    // Whoever asks is not meant.
    assert_eq!(writers(&mut tx).await, (vec![], 1));
    // Another transaction of the same session has another name.
    tx.rollback().await.unwrap();
    assert_eq!(writers(&mut connection).await, (vec![], 1));
    let mut tx = db.pool.begin().await.unwrap();
    Postgres::insert(&mut tx, &db.sql, &record("a", 1))
        .await
        .unwrap();
    let (second, drawn) = writers(&mut connection).await;
    assert_eq!((second.len(), drawn), (1, 2));
    assert_ne!(second, first);
}

/// Who may write the table need not be allowed to look at its sequence.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn without_a_right_to_the_sequence_nothing_is_said_of_drawn_ids() {
    use sqlx::Postgres;

    let db = super::database::postgres().await;
    db.publish(&[("a", 1)]).await;
    let role = format!("plain_{}", uuid::Uuid::now_v7().simple());
    let mut tx = db.pool.begin().await.unwrap();
    for sql in [
        format!("create role {role}"),
        format!("grant all on outbox_record to {role}"),
        format!("set local role {role}"),
    ] {
        sqlx::query(crate::store::trusted(sql))
            .execute(&mut *tx)
            .await
            .unwrap();
    }
    let writers = Postgres::open_writers(&mut tx, &db.sql).await.unwrap();
    let nothing = OpenWriters::Named {
        names: vec![],
        drawn: None,
    };
    assert_eq!(writers, nothing);
}

/// However much waits for its time: what is due is found without a look at it.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_does_not_walk_what_is_due_later() {
    use sqlx::Postgres;

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
    let before = walked(&mut connection).await;
    let records = Postgres::due_records(&mut connection, sql, due(&[1], &[], 0, 10));
    assert!(records.await.unwrap().is_empty());
    let deliveries = Postgres::due_deliveries(&mut connection, sql, due(&[1], &["h"], 0, 10));
    assert!(deliveries.await.unwrap().is_empty());
    let walked = walked(&mut connection).await - before;
    assert!(walked < 100, "{walked} rows were walked");
}

/// One key may hold most of the table: what is asked about others does not walk through it. The
/// planner, which knows how much is of that key, must not think that the primary key is as good.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_does_not_walk_what_is_of_one_key_for_another() {
    use sqlx::Postgres;

    use crate::store::{LaneName, RunnableOrder};

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
    let before = walked(&mut connection).await;

    let pages: Vec<Page> = (0..64).map(|part| Page { part, after: 0 }).collect();
    let records = Postgres::pending_records(&mut connection, sql, pending(&pages, &[], 4, 64));
    assert_eq!(records.await.unwrap().len(), 4);
    let cold = LaneName {
        part: 1,
        key: "cold".to_owned(),
        handler: "h".to_owned(),
    };
    let cold = [cold];
    let lanes = Postgres::lane_heads(&mut connection, sql, &cold, 4);
    assert_eq!(lanes.await.unwrap().len(), 1);
    let mut operator = Operator::<Postgres>::new(&mut connection, &db.names);
    assert!(operator.oldest_pending(64).await.unwrap().is_some());
    let read = walked(&mut connection).await - before;
    assert!(read < 1000, "{read} rows were walked");

    for expected in [RunnableOrder::OldestFirst, RunnableOrder::EveryLane] {
        let before = walked(&mut connection).await;
        let runnable = Postgres::runnable_lanes(&mut connection, sql, &[1], &["h"], expected, 10);
        assert_eq!(runnable.await.unwrap().len(), 2);
        // Goes through all that waits, and for each to the first of its lane alone.
        let read = walked(&mut connection).await - before;
        assert!(read < 100_000, "{expected:?}: {read} rows were walked");
    }
}

/// How many entries of indexes and rows of tables were walked in this database so far.
#[cfg(feature = "postgres")]
async fn walked(connection: &mut sqlx::PgConnection) -> i64 {
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

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn sqlite_writes_in_order() {
    let db = super::database::sqlite().await;
    let mut connection = db.pool.acquire().await.unwrap();
    let writers = sqlx::Sqlite::open_writers(&mut connection, &db.sql)
        .await
        .unwrap();
    assert_eq!(writers, OpenWriters::Serial);
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn mysql_does_not_know_its_writers() {
    let db = super::database::mysql().await;
    let mut connection = db.pool.acquire().await.unwrap();
    let writers = sqlx::MySql::open_writers(&mut connection, &db.sql)
        .await
        .unwrap();
    let OpenWriters::Unnamed { clock } = writers else {
        panic!("{writers:?}")
    };
    let off = clock.duration_since(crate::outbox::clock::Clock::now(
        &crate::outbox::clock::SystemClock,
    ));
    assert!(off.abs().as_mins() < 60, "{off}");
}
