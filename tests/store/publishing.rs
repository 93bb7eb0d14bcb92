//! Publishing writes an event as a row in the caller's transaction.

use std::time::Duration;

use outbox::{Error, OutboxEvent, Scheduled, error::Field};
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

use outbox_tests::on_each_database;

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id, version = 3, validate = has_text)]
struct OrderCreated {
    order_id: String,
    text: String,
}

#[derive(Debug, thiserror::Error)]
#[error("the text is missing")]
struct NoText;

fn has_text(event: &OrderCreated) -> Result<(), NoText> {
    if event.text.is_empty() {
        return Err(NoText);
    }
    Ok(())
}

fn order(id: impl Into<Id>, text: impl Into<String>) -> OrderCreated {
    OrderCreated {
        order_id: id.into().0,
        text: text.into(),
    }
}

/// An id from a text or a number.
struct Id(String);

impl From<&str> for Id {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

impl From<i32> for Id {
    fn from(id: i32) -> Self {
        Self(id.to_string())
    }
}

/// A text with characters outside of ASCII and with characters that need escaping.
const TEXT: &str = "Grüße 🚀 \"quoted\" \\ 'single' \u{1} 日本語 %s ?1 $1";

/// Two transactions use the same dedup key at once. The second waits for the first, and its answer
/// depends on the end of the first. SQLite has one writer at a time, so the test does not apply.
macro_rules! one_of_two_concurrent_publishes_is_written {
    ($($database:ident)*) => {$(
        #[tokio::test]
        async fn $database() {
            let db = outbox_tests::database::$database::fresh().await;
            for first_commits in [true, false] {
                let key = format!("once/{first_commits}");
                let mut first = db.pool.begin().await.unwrap();
                let event = order(1, "first");
                let sent = db.outbox.schedule(&event).dedup_key(&key).send(&mut first).await.unwrap();
                assert!(matches!(sent, Scheduled::Published { .. }));

                let (outbox, pool) = (db.outbox.clone(), db.pool.clone());
                let second = tokio::spawn(async move {
                    let mut second = pool.begin().await.unwrap();
                    let event = order(1, "second");
                    let sent = outbox.schedule(&event).dedup_key(&key).send(&mut second).await.unwrap();
                    second.commit().await.unwrap();
                    sent
                });
                // The second statement normally reaches the database in this time. If it does not,
                                // the answer is the same.
                tokio::time::sleep(Duration::from_millis(100)).await;
                if first_commits {
                    first.commit().await.unwrap();
                    assert_eq!(second.await.unwrap(), Scheduled::Duplicate);
                } else {
                    first.rollback().await.unwrap();
                    assert!(matches!(second.await.unwrap(), Scheduled::Published { .. }));
                }
            }
            let count: i64 = sqlx::query_scalar("select count(*) from outbox_record").fetch_one(&db.pool).await.unwrap();
            assert_eq!(count, 2);
        }
    )*};
}

mod one_of_two_concurrent_publishes_is_written {
    use std::time::Duration;

    use outbox::Scheduled;

    use super::order;

    one_of_two_concurrent_publishes_is_written!(postgres mysql);
}

on_each_database! {
    async fn a_committed_event_is_stored_and_a_rolled_back_one_is_not(db) {
        let mut tx = db.pool.begin().await.unwrap();
        db.outbox.publish(&mut tx, &order("gone", "x")).await.unwrap();
        tx.rollback().await.unwrap();

        let mut tx = db.pool.begin().await.unwrap();
        db.outbox.publish(&mut tx, &order("ключ 7", TEXT)).await.unwrap();
        let uncommitted: i64 = sqlx::query_scalar("select count(*) from outbox_record").fetch_one(&mut *tx).await.unwrap();
        assert_eq!(uncommitted, 1);
        tx.commit().await.unwrap();

        let sql = format!("select {}, event, version, status, payload from outbox_record", database::KEY);
        let row: (String, String, i64, String, String) = sqlx::query_as(AssertSqlSafe(sql)).fetch_one(&db.pool).await.unwrap();
        assert_eq!((&*row.0, &*row.1, row.2, &*row.3), ("ключ 7", "order.created", 3, "pending"));
        let stored: OrderCreated = serde_json::from_str(&row.4).unwrap();
        assert_eq!(stored.text, TEXT);

        let sql = format!("select {} from outbox_record", database::SECONDS_OLD);
        let age: i64 = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&db.pool).await.unwrap();
        assert!((0..60).contains(&age), "created {age} s ago by the database's clock");
    }

    async fn publish_accepts_a_connection_without_a_transaction(db) {
        let mut connection = db.pool.acquire().await.unwrap();
        db.outbox.publish(&mut connection, &order(1, "x")).await.unwrap();
        let count: i64 = sqlx::query_scalar("select count(*) from outbox_record").fetch_one(&db.pool).await.unwrap();
        assert_eq!(count, 1);
    }

    async fn many_events_are_written_in_their_order(db) {
        let events: Vec<OrderCreated> = (0..3000).map(|n| order(n % 7, format!("{n} {TEXT}"))).collect();
        let mut tx = db.pool.begin().await.unwrap();
        db.outbox.publish_all(&mut tx, &events).await.unwrap();
        db.outbox.publish_all::<OrderCreated>(&mut tx, &[]).await.unwrap();
        tx.commit().await.unwrap();

        let sql = format!("select {}, payload from outbox_record order by id", database::KEY);
        let rows: Vec<(String, String)> = sqlx::query_as(AssertSqlSafe(sql)).fetch_all(&db.pool).await.unwrap();
        assert_eq!(rows.len(), events.len());
        for ((key, payload), event) in rows.iter().zip(&events) {
            let stored: OrderCreated = serde_json::from_str(payload).unwrap();
            assert_eq!((key, &stored.text), (&event.order_id, &event.text));
        }
        let one: Vec<u8> = sqlx::query_scalar("select event_id from outbox_record order by id limit 1").fetch_one(&db.pool).await.map(|id: uuid::Uuid| id.into_bytes().to_vec()).unwrap();
        assert_eq!(uuid::Uuid::from_slice(&one).unwrap().get_version_num(), 7);
        let different: i64 = sqlx::query_scalar("select count(distinct event_id) from outbox_record").fetch_one(&db.pool).await.unwrap();
        assert_eq!(different, 3000);
    }

    async fn both_ways_of_publishing_give_the_same_partition(db) {
        let mut tx = db.pool.begin().await.unwrap();
        db.outbox.publish(&mut tx, &order("Hello, world!", "x")).await.unwrap();
        db.outbox.publish_all(&mut tx, &[order("Hello, world!", "x")]).await.unwrap();
        tx.commit().await.unwrap();
        // murmur3 of the key is 0xc0363e43, which modulo 64 is 3.
        let count: i64 = sqlx::query_scalar("select count(*) from outbox_record where part = 3").fetch_one(&db.pool).await.unwrap();
        assert_eq!(count, 2);
    }

    async fn a_repeated_dedup_key_writes_nothing_and_leaves_the_transaction_usable(db) {
        let send = async |connection: &mut _, key: &str| {
            db.outbox.schedule(&order(1, "x")).dedup_key(key).send(connection).await.unwrap()
        };
        let mut tx = db.pool.begin().await.unwrap();
        assert!(matches!(send(&mut tx, "once").await, Scheduled::Published { .. }));
        assert_eq!(send(&mut tx, "once").await, Scheduled::Duplicate);
        // The database compares keys as bytes: case and trailing spaces count.
        assert!(matches!(send(&mut tx, "Once").await, Scheduled::Published { .. }));
        assert!(matches!(send(&mut tx, "once ").await, Scheduled::Published { .. }));
        db.outbox.publish(&mut tx, &order(2, "after the duplicate")).await.unwrap();
        tx.commit().await.unwrap();

        let mut tx = db.pool.begin().await.unwrap();
        assert_eq!(send(&mut tx, "once").await, Scheduled::Duplicate);
        tx.commit().await.unwrap();
        let count: i64 = sqlx::query_scalar("select count(*) from outbox_record").fetch_one(&db.pool).await.unwrap();
        assert_eq!(count, 4);
    }

    async fn all_options_of_a_schedule_are_stored(db) {
        let mut tx = db.pool.begin().await.unwrap();
        let event = order("own", "x");
        let sent = db.outbox.schedule(&event).key("other").header("tenant", "ACME é").header("tenant", TEXT).max_retries(u32::MAX).send(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        let Scheduled::Published { record_id } = sent else { unreachable!("{sent:?}") };

        let sql = format!("select id, {}, headers, max_retries from outbox_record", database::KEY);
        let row: (i64, String, String, i64) = sqlx::query_as(AssertSqlSafe(sql)).fetch_one(&db.pool).await.unwrap();
        assert_eq!((row.0, &*row.1, row.3), (record_id, "other", i64::from(u32::MAX)));
        let headers: std::collections::BTreeMap<String, String> = serde_json::from_str(&row.2).unwrap();
        assert_eq!(headers["tenant"], TEXT, "the last value of a header wins");
    }

    async fn a_pinned_retry_limit_is_stored_unless_the_record_has_its_own(db) {
        let config = serde_json::from_str(r#"{ "retry": { "max-retries": 8, "pin-at-schedule": true } }"#).unwrap();
        let registry = outbox::Registry::builder().allow_empty();
        let pinning = outbox::Outbox::builder(db.pool.clone()).registry(registry).config(config).build().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        let event = order(1, "x");
        pinning.publish(&mut tx, &event).await.unwrap();
        let sent = pinning.schedule(&event).max_retries(0).send(&mut tx).await.unwrap();
        assert!(matches!(sent, Scheduled::Published { .. }));
        pinning.publish_all(&mut tx, &[order(2, "x")]).await.unwrap();
        db.outbox.publish(&mut tx, &event).await.unwrap();
        tx.commit().await.unwrap();

        let stored: Vec<Option<i64>> = sqlx::query_scalar("select max_retries from outbox_record order by id").fetch_all(&db.pool).await.unwrap();
        // Below zero: a pinned number, which does not win over a handler's own.
        assert_eq!(stored, [Some(-9), Some(0), Some(-9), None]);
    }

    async fn delayed_records_are_scheduled_by_the_database_s_clock(db) {
        let mut tx = db.pool.begin().await.unwrap();
        let event = order(1, "x");
        let at = "2100-01-01T00:00:00.123456Z".parse().unwrap();
        let sent = [
            db.outbox.schedule(&event).delay(Duration::from_secs(3600)).send(&mut tx).await.unwrap(),
            db.outbox.schedule(&event).at(at).send(&mut tx).await.unwrap(),
            db.outbox.schedule(&event).delay(Duration::MAX).send(&mut tx).await.unwrap(),
        ];
        tx.commit().await.unwrap();
        assert!(sent.iter().all(|sent| matches!(sent, Scheduled::Published { .. })));

        let sql = format!("select status, {} from outbox_record order by id", database::SECONDS_UNTIL_DUE);
        let rows: Vec<(String, i64)> = sqlx::query_as(AssertSqlSafe(sql)).fetch_all(&db.pool).await.unwrap();
        assert!(rows.iter().all(|(status, _)| status == "scheduled"), "{rows:?}");
        assert!((3500..=3600).contains(&rows[0].1), "{rows:?}");
        let years = rows[1].1 / (365 * 24 * 3600);
        assert!((60..=80).contains(&years), "{rows:?}");
        assert!(rows[2].1 > 99 * 365 * 24 * 3600, "{rows:?}");
    }

    async fn publish_refuses_long_and_invalid_values_before_any_sql(db) {
        let mut tx = db.pool.begin().await.unwrap();
        let fits = order(1, "x".repeat(1024 * 1024 - 100));
        db.outbox.publish(&mut tx, &fits).await.unwrap();

        let long = "ä".repeat(128);
        let refused = [
            db.outbox.publish(&mut tx, &order(1, "x".repeat(1024 * 1024))).await.unwrap_err(),
            db.outbox.publish(&mut tx, &order(&*long, "x")).await.unwrap_err(),
            db.outbox.schedule(&fits).dedup_key(&long).send(&mut tx).await.unwrap_err(),
            db.outbox.schedule(&fits).header("big", "x".repeat(65 * 1024)).send(&mut tx).await.unwrap_err(),
        ];
        for error in refused {
            assert!(matches!(error, Error::TooLong { .. }), "{error}");
        }
        let nul = db.outbox.publish(&mut tx, &order("a\0b", "x")).await.unwrap_err();
        assert!(matches!(nul, Error::Nul { field: Field::Key, .. }), "{nul}");
        let invalid = db.outbox.publish(&mut tx, &order(1, "")).await.unwrap_err();
        assert!(matches!(invalid, Error::Event(_)), "{invalid}");
        let one_of_many = db.outbox.publish_all(&mut tx, &[order(1, "x"), order(2, "")]).await.unwrap_err();
        assert!(matches!(one_of_many, Error::Event(_)), "{one_of_many}");

        // None of these reached the transaction.
        tx.commit().await.unwrap();
        let count: i64 = sqlx::query_scalar("select count(*) from outbox_record").fetch_one(&db.pool).await.unwrap();
        assert_eq!(count, 1);
    }
}
