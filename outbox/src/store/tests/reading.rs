//! The statements that read pending and due records, due deliveries and open writers.

use super::{
    database::{ids, names, record},
    due, on_each_database, p, page, pending, retrying, waiting,
};
use crate::record::Partition;
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
        assert_eq!(found.partition, p(3));
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
        // Partitions come in the order of the pages.
        assert_eq!(read(&[page(2), page(1), page(9)], 9, 9).await, [i[1], i[4], i[0], i[2], i[3], i[6]]);
        assert_eq!(read(&[page(1), page(2), page(5)], 2, 9).await, [i[0], i[2], i[1], i[4], i[5]]);
        assert_eq!(read(&[page(1), page(2), page(5)], 2, 3).await, [i[0], i[2], i[1]]);
        let middle = Page { partition: p(1), after: i[0] };
        assert_eq!(read(&[middle, page(2)], 9, 9).await, [i[2], i[3], i[6], i[1], i[4]]);
        assert_eq!(read(&[middle], 1, 9).await, [i[2]]);
        let nothing = Page { partition: p(1), after: i[6] };
        assert!(read(&[nothing], 9, 9).await.is_empty());
        // All partitions at once.
        let all: Vec<Page> = (0..64).map(page).collect();
        assert_eq!(read(&all, 1, 9).await, [i[0], i[1], i[5], i[7]]);
        assert_eq!(read(&all, 3, 3).await, [i[0], i[2], i[3]]);
        assert_eq!(read(&all, 3, 5).await, [i[0], i[2], i[3], i[1], i[4]]);
        assert_eq!(read(&all, 9, 99).await, [i[0], i[2], i[3], i[6], i[1], i[4], i[5], i[7]]);
    }

    async fn records_in_memory_are_skipped_and_do_not_count(db) {
        let i = db.publish(&[("a", 1), ("b", 2), ("c", 1), ("d", 1), ("e", 2), ("f", 5), ("g", 1)]).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let in_memory = [(1, i[0]), (1, i[3]), (2, i[1]), (5, i[5])].map(|(number, id)| InMemory { partition: p(number), id });
        let mut read = async |pages: &[Page], per_page, limit| {
            ids(&Db::pending_records(&mut connection, &db.sql, pending(pages, &in_memory, per_page, limit)).await.unwrap())
        };
        assert_eq!(read(&[page(1), page(2), page(5)], 9, 9).await, [i[2], i[6], i[4]]);
        assert_eq!(read(&[page(1), page(2), page(5)], 1, 9).await, [i[2], i[4]]);
        assert_eq!(read(&[page(1), page(2)], 9, 2).await, [i[2], i[6]]);
        assert_eq!(read(&[Page { partition: p(1), after: i[2] }], 9, 9).await, [i[6]]);
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
        let mut read = async |partitions: &[Partition], seconds: i64, limit| {
            let found = Db::due_records(&mut connection, &db.sql, due(partitions, &[], seconds * 1_000_000, limit)).await.unwrap();
            ids(&found)
        };
        assert!(read(&[1, 2].map(p), 0, 9).await.is_empty());
        assert!(read(&[1, 2].map(p), 99, 9).await.is_empty());
        assert_eq!(read(&[1, 2].map(p), 101, 9).await, [early]);
        assert_eq!(read(&[1, 2].map(p), 301, 9).await, [early, middle, late]);
        assert_eq!(read(&[1, 2].map(p), 301, 2).await, [early, middle]);
        assert_eq!(read(&[1].map(p), 301, 1).await, [middle]);
        assert_eq!(read(&[9].map(p), 301, 9).await, [elsewhere]);
        assert!(read(&[], 301, 9).await.is_empty());
    }

    async fn deliveries_become_due_in_the_order_of_their_times(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("c", 4), ("a", 3)]).await;
        let fence = db.own().await;
        let in_seconds = |mut row: crate::store::DeliveryRow, key: &str, number, seconds: i64| {
            row.key = key.to_owned();
            row.partition = p(number);
            row.due_in = Some(seconds * 1_000_000);
            row
        };
        let new_deliveries = vec![
            in_seconds(retrying(i[0], "mail"), "a", 3, 300),
            in_seconds(retrying(i[0], "bill"), "a", 3, 50),
            in_seconds(retrying(i[1], "mail"), "b", 3, 100),
            in_seconds(retrying(i[2], "mail"), "c", 4, 200),
            waiting(i[3], "mail"),
        ];
        db.settle(&fence, &Batch { split_records: i.clone(), new_deliveries, ..Batch::default() }, false).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let mut read = async |partitions: &[Partition], handlers: &[&str], seconds: i64, limit| {
            let micros = seconds * 1_000_000;
            let due = Db::due_deliveries(&mut connection, &db.sql, due(partitions, handlers, micros, limit)).await.unwrap();
            let ids: Vec<i64> = due.iter().map(|due| due.id).collect();
            let read = Db::load_deliveries(&mut connection, &db.sql, &ids).await.unwrap();
            let due: Vec<_> = due.iter().map(|due| (due.record_id, &*due.handler)).collect();
            assert_eq!(due, names(&read));
            read
        };
        assert!(read(&[3, 4].map(p), &["mail", "bill"], 49, 9).await.is_empty());
        let both = read(&[3, 4].map(p), &["bill", "mail"], 301, 9).await;
        assert_eq!(names(&both), [(i[0], "bill"), (i[1], "mail"), (i[2], "mail"), (i[0], "mail")]);
        assert_eq!(names(&read(&[3, 4].map(p), &["mail"], 301, 2).await), [(i[1], "mail"), (i[2], "mail")]);
        assert_eq!(names(&read(&[4].map(p), &["mail"], 301, 9).await), [(i[2], "mail")]);
        assert!(read(&[3, 4].map(p), &[], 301, 9).await.is_empty());
        assert!(read(&[3, 4].map(p), &["Mail", "ma"], 301, 9).await.is_empty());
        assert!(read(&[], &["mail"], 301, 9).await.is_empty());

        // Only the delivery of lane `a` has a follower.
        let has_followers: Vec<bool> = both.iter().map(|delivery| delivery.has_followers).collect();
        assert_eq!(has_followers, [false, false, false, true]);
        let first = &both[0];
        assert!(first.blocking && !first.is_waiting);
        assert_eq!((first.attempt.number, first.attempt.failure_count), (2, 1));
        assert_eq!(first.attempt.first_failed_at.unwrap().as_microsecond(), 1_700_000_000_123_456);
        assert_eq!((first.record.partition, &*first.record.record.key), (p(3), "a"));
    }

    async fn the_next_due_is_the_nearest_of_records_and_deliveries(db) {
        let mut connection = db.pool.acquire().await.unwrap();
        let none = Db::next_due(&mut connection, &db.sql, due(&[1, 3].map(p), &["mail"], 0, 0)).await.unwrap();
        assert_eq!(none, None);
        drop(connection);
        let i = db.publish(&[("a", 3)]).await;
        db.publish_in(100, 1).await;
        let fence = db.own().await;
        let batch = Batch { split_records: i.clone(), new_deliveries: vec![retrying(i[0], "mail")], ..Batch::default() };
        db.settle(&fence, &batch, false).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let mut next = async |partitions: &[Partition], handlers: &[&str], offset| {
            let next = Db::next_due(&mut connection, &db.sql, due(partitions, handlers, offset, 0)).await.unwrap();
            // In seconds, rounded up to five: the statements before took less than five seconds.
            next.map(|micros| -(-micros).div_euclid(5_000_000) * 5)
        };
        assert_eq!(next(&[1, 3].map(p), &["mail"], 0).await, Some(10));
        assert_eq!(next(&[1, 3].map(p), &["mail"], 50_000_000).await, Some(-40));
        assert_eq!(next(&[1, 3].map(p), &["other"], 0).await, Some(100));
        assert_eq!(next(&[1, 3].map(p), &[], 0).await, Some(100));
        assert_eq!(next(&[3].map(p), &["mail", "other"], 0).await, Some(10));
        assert_eq!(next(&[3].map(p), &["other"], 0).await, None);
        assert_eq!(next(&[2].map(p), &["mail"], 0).await, None);
        assert_eq!(next(&[], &["mail"], 0).await, None);
    }

    async fn a_record_is_due_at_its_given_time(db) {
        let mut connection = db.pool.acquire().await.unwrap();
        let mut new = record("old", 1);
        new.due = Due::At(jiff::Timestamp::from_second(1_000_000_000).unwrap());
        let id = Db::insert(&mut connection, &db.sql, &new).await.unwrap().unwrap();
        let found = Db::due_records(&mut connection, &db.sql, due(&[1].map(p), &[], 0, 9)).await.unwrap();
        assert_eq!(ids(&found), [id]);
        let next = Db::next_due(&mut connection, &db.sql, due(&[1].map(p), &[], 0, 0)).await.unwrap();
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
        let OpenWriters::Named {
            transactions,
            highest_drawn,
        } = writers
        else {
            panic!("PostgreSQL names its writers")
        };
        (transactions, highest_drawn.unwrap())
    };
    assert_eq!(writers(&mut connection).await, (vec![], 0));

    let mut tx = db.pool.begin().await.unwrap();
    Postgres::insert(&mut tx, &db.sql, &record("a", 1))
        .await
        .unwrap();
    let (first, drawn) = writers(&mut connection).await;
    assert_eq!((first.len(), drawn), (1, 1));
    // The connection that asks is not listed.
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

/// A role that may write the table need not have the right to read its sequence.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn without_a_right_to_the_sequence_the_highest_drawn_id_is_unknown() {
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
        transactions: vec![],
        highest_drawn: None,
    };
    assert_eq!(writers, nothing);
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn sqlite_commits_ids_in_order() {
    let db = super::database::sqlite().await;
    let mut connection = db.pool.acquire().await.unwrap();
    let writers = sqlx::Sqlite::open_writers(&mut connection, &db.sql)
        .await
        .unwrap();
    assert_eq!(writers, OpenWriters::Serial);
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn mysql_cannot_name_its_writers() {
    let db = super::database::mysql().await;
    let mut connection = db.pool.acquire().await.unwrap();
    let writers = sqlx::MySql::open_writers(&mut connection, &db.sql)
        .await
        .unwrap();
    let OpenWriters::Unnamed { database_time } = writers else {
        panic!("{writers:?}")
    };
    let off = database_time.duration_since(crate::outbox::clock::Clock::now(
        &crate::outbox::clock::SystemClock,
    ));
    assert!(off.abs().as_mins() < 60, "{off}");
}
