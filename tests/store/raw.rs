//! Publishing without a Rust type: the same rows, limits and deliveries as with the type.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outbox::{
    Error, Metadata, Outbox, OutboxEvent, Registry, Scheduled, State, error::Field, outbox_handler,
    record::EventError,
};
use outbox_tests::on_each_database;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id, version = 3)]
struct OrderCreated {
    order_id: String,
    cents: i64,
}

/// The orders that the handler got, with the version and the header `tenant`.
type Seen = Arc<Mutex<Vec<(String, i64, u32, Option<String>)>>>;

#[expect(clippy::unwrap_used, reason = "part of a test")]
#[outbox_handler(id = "book-order")]
async fn book_order(order: OrderCreated, meta: &Metadata, State(seen): State<Seen>) {
    let tenant = meta.headers().get("tenant").cloned();
    let one = (order.order_id, order.cents, meta.version(), tenant);
    seen.lock().unwrap().push(one);
}

/// A text with characters outside of ASCII and with characters that need escaping.
const JSON: &str = r#"{ "order_id": "Größe 🚀 \"7\" \\ ?1 $1", "cents": 1250 }"#;
const KEY: &str = "Größe 🚀 \"7\" \\ ?1 $1";

on_each_database! {
    async fn a_raw_event_is_stored_like_its_typed_event(db) {
        let typed: OrderCreated = serde_json::from_str(JSON).unwrap();
        let compact = serde_json::to_string(&typed).unwrap();
        let delay = Duration::from_secs(3600);
        let mut tx = db.pool.begin().await.unwrap();
        let sent = [
            db.outbox.schedule(&typed).header("tenant", "acme").max_retries(5).delay(delay).dedup_key("a").send(&mut tx).await.unwrap(),
            db.outbox.schedule_raw("order.created", &*compact).key(KEY).version(3)
                .header("tenant", "acme").max_retries(5).delay(delay).dedup_key("b").send(&mut tx).await.unwrap(),
        ];
        let again = db.outbox.schedule_raw("order.created", JSON).dedup_key("b").send(&mut tx).await.unwrap();
        assert_eq!(again, Scheduled::Duplicate);
        tx.commit().await.unwrap();
        let mut rows = Vec::new();
        for sent in sent {
            let Scheduled::Published { record_id } = sent else { unreachable!("{sent:?}") };
            let mut row = db.outbox.operations().inspect(record_id).await.unwrap().unwrap();
            let due_in = row.due_at.unwrap().duration_since(row.record.created_at).as_secs();
            assert!((3500..=3600).contains(&due_in), "{due_in}");
            row.record.id = 0;
            row.record.event_id = uuid::Uuid::nil();
            row.record.created_at = outbox_tests::record(&typed).created_at;
            rows.push((row.record, row.status));
        }
        assert_eq!(rows[0], rows[1]);
        let parts = database::number(&db.pool, "select count(distinct part) from outbox_record").await;
        assert_eq!(parts, 1, "the key decides the partition");
    }

    async fn a_raw_event_reaches_the_handler_of_its_type(db) {
        let seen = Seen::default();
        let registry = Registry::builder().handler::<book_order>().state(Arc::clone(&seen));
        let outbox = Outbox::builder(db.pool.clone()).registry(registry).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        let sent = outbox.schedule_raw("order.created", JSON).version(2).header("tenant", "acme").send(&mut tx).await.unwrap();
        assert!(matches!(sent, Scheduled::Published { .. }));
        tx.commit().await.unwrap();
        let delivered = async {
            while seen.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), delivered).await.unwrap();
        dispatcher.shutdown().await.unwrap();
        assert_eq!(*seen.lock().unwrap(), [(KEY.to_owned(), 1250, 2, Some("acme".to_owned()))]);
    }

    async fn a_raw_event_is_refused_before_any_sql(db) {
        let mut tx = db.pool.begin().await.unwrap();
        let (long_key, long_json) = ("ä".repeat(128), format!("\"{}\"", "x".repeat(1024 * 1024)));
        let raw = |name: &str, json: &str| db.outbox.schedule_raw(name, json);
        let refused = [
            raw("order.created", "hello").send(&mut tx).await.unwrap_err(),
            raw("order.created", "{} {}").version(2).send(&mut tx).await.unwrap_err(),
            raw("", "{}").send(&mut tx).await.unwrap_err(),
            raw("order\0created", "{}").send(&mut tx).await.unwrap_err(),
            raw(&"x".repeat(256), "{}").send(&mut tx).await.unwrap_err(),
            raw("order.created", &long_json).send(&mut tx).await.unwrap_err(),
            raw("order.created", "{}").key(&long_key).send(&mut tx).await.unwrap_err(),
            raw("order.created", "{}").dedup_key(&long_key).send(&mut tx).await.unwrap_err(),
            raw("order.created", "{}").header("big", "x".repeat(65 * 1024)).send(&mut tx).await.unwrap_err(),
            raw("order.created", "{}").key("a\0b").send(&mut tx).await.unwrap_err(),
        ];
        let reasons = refused.each_ref().map(|error| match error {
            Error::Event(EventError::NotJson { event, .. }) if event == "order.created" => "not JSON",
            Error::Event(EventError::BadName { .. }) => "name",
            Error::TooLong { field, event, .. } if event == "order.created" => field.as_str(),
            Error::Nul { field: Field::Key, .. } => "NUL",
            _ => "?",
        });
        assert_eq!(reasons, ["not JSON", "not JSON", "name", "name", "name", "payload", "key", "dedup key", "headers", "NUL"], "{refused:?}");
        // The transaction is still usable, and none of these reached it.
        let sent = raw("order.created", "{}").send(&mut tx).await.unwrap();
        assert!(matches!(sent, Scheduled::Published { .. }));
        tx.commit().await.unwrap();
        assert_eq!(database::number(&db.pool, "select count(*) from outbox_record").await, 1);
    }
}
