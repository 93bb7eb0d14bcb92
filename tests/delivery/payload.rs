//! Any key, payload and header reaches the handler unchanged.

use std::sync::{Arc, Mutex};

use outbox::{HandlerError, Metadata, OutboxEvent, Registry, Scheduled, State, outbox_handler};
use outbox_tests::on_each_database;
use serde::{Deserialize, Serialize};

use crate::scene::{Scene, eventually, publish, step};

/// An event with any text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "note", key = key)]
pub(crate) struct Note {
    pub(crate) key: String,
    pub(crate) text: String,
}

pub(crate) type Notes = Arc<Mutex<Vec<Note>>>;

/// The first attempt fails, so that the dispatcher reads each note twice: as a record and as a
/// delivery.
#[outbox_handler(id = "notes")]
pub(crate) async fn notes(
    event: Note,
    meta: &Metadata,
    State(notes): State<Notes>,
) -> Result<(), HandlerError> {
    assert_eq!(meta.key(), event.key);
    if meta.attempt() == 1 {
        return Err("once".into());
    }
    notes.lock().expect("a lock").push(event);
    Ok(())
}

fn note(key: &str, text: impl Into<String>) -> Note {
    let (key, text) = (key.to_owned(), text.into());
    Note { key, text }
}

/// The step and the header `ténant` of each attempt.
type Tenants = Arc<Mutex<Vec<(u32, Option<String>)>>>;

/// Keys that differ, but that a collation of a database might take for equal.
const KEYS: [&str; 14] = [
    "a",
    "A",
    "a ",
    " a",
    "\u{e1}",
    "a\u{301}",
    "ключ/鍵/🔑",
    "'; drop table outbox_record; --",
    "\" or 1 = 1 --",
    "%_\\",
    "`key`",
    "{\"a\": [1]}",
    "\t\n\r",
    "?1 $1 :a",
];

on_each_database! {
    async fn an_undecodable_payload_fails_only_its_own_record(db) {
        let scene = Scene::new();
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        let bad = step("bad", 1);
        let Scheduled::Published { record_id } = outbox.schedule(&bad).send(&mut tx).await.unwrap() else {
            panic!("a duplicate, although no other record exists");
        };
        tx.commit().await.unwrap();
        let spoil = format!("update outbox_record set payload = '{{\"key\": 7' where id = {record_id}");
        database::execute(&db.pool, &spoil).await;
        publish(&outbox, &db.pool, "bad", [2]).await;
        publish(&outbox, &db.pool, "good", 1..=3).await;
        let dispatcher = outbox.start().await.unwrap();
        scene.seen_at_least(3).await;
        let failed = "select error_kind from outbox_delivery where status = 'failed'";
        eventually("a failure", async || database::texts(&db.pool, failed).await == ["undecodable"]).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.steps("first", "good"), [1, 2, 3]);
        assert_eq!(scene.tried().len(), 3);
        let reason = &database::texts(&db.pool, "select error from outbox_delivery where status = 'failed'").await[0];
        assert!(reason.contains("line 1"), "{reason}");
    }

    async fn each_key_has_a_lane_of_its_own(db) {
        let scene = Scene::with(|event, meta| match (event.n, meta.attempt()) {
            (2, 1) | (3, 1 | 2) => Err("not yet".into()),
            _ => Ok(()),
        });
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        let longest = ["x".repeat(255), "ä".repeat(127), "x".repeat(254)];
        let keys = || KEYS.into_iter().chain(longest.iter().map(String::as_str));
        for n in 1..=4 {
            for key in keys() {
                publish(&outbox, &db.pool, key, [n]).await;
            }
        }
        scene.seen_at_least(keys().count() * 4).await;
        dispatcher.shutdown().await.unwrap();
        for key in keys() {
            assert_eq!(scene.steps("first", key), [1, 2, 3, 4], "{key:?}");
            assert_eq!(scene.attempts("first", key, 3), [1, 2, 3], "{key:?}");
        }
    }

    async fn any_payload_reaches_the_handler_unchanged(db) {
        let received = Notes::default();
        let registry = Registry::builder().handler::<notes>().state(Arc::clone(&received));
        let outbox = Scene::new().outbox_of(&db.pool, registry).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        let sent = [
            note("empty", ""),
            note("text", "Größe 🦀 \u{202e} \\ \" ' \u{1} \u{7f} \r\n \u{0} '; drop table outbox_record; --"),
            note("a million", "ü".repeat((1024 * 1024 - 100) / 2)),
        ];
        let mut tx = db.pool.begin().await.unwrap();
        for note in &sent {
            outbox.publish(&mut tx, note).await.unwrap();
        }
        tx.commit().await.unwrap();
        eventually("all notes", async || received.lock().unwrap().len() == sent.len()).await;
        dispatcher.shutdown().await.unwrap();
                let arrived = received.lock().unwrap();
                assert!(sent.iter().all(|note| arrived.contains(note)), "{}", arrived.len());
    }

    async fn headers_reach_the_handler_and_a_repeated_dedup_key_is_delivered_once(db) {
        let headers = Tenants::default();
        let received = Arc::clone(&headers);
        let scene = Scene::with(move |event, meta| {
            let tenant = meta.headers().get("ténant").cloned();
            received.lock().unwrap().push((event.n, tenant));
            match (event.n, meta.attempt()) {
                (1, 1) => Err("once".into()),
                _ => Ok(()),
            }
        });
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        let (one, two, three) = (step("a", 1), step("a", 2), step("a", 3));
        let sent = outbox.schedule(&one).header("ténant", "\"Ä\"").dedup_key("Ä'1").send(&mut tx).await.unwrap();
        assert!(matches!(sent, Scheduled::Published { .. }));
        let sent = outbox.schedule(&two).dedup_key("Ä'1").send(&mut tx).await.unwrap();
        assert_eq!(sent, Scheduled::Duplicate);
        outbox.publish(&mut tx, &three).await.unwrap();
        tx.commit().await.unwrap();
        scene.seen_at_least(2).await;
        // The key is also refused after its first record is completed.
        let mut tx = db.pool.begin().await.unwrap();
        let sent = outbox.schedule(&two).dedup_key("Ä'1").send(&mut tx).await.unwrap();
        assert_eq!(sent, Scheduled::Duplicate);
        tx.commit().await.unwrap();
        publish(&outbox, &db.pool, "a", [4]).await;
        scene.seen_at_least(3).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.steps("first", "a"), [1, 3, 4]);
        let tenant = Some("\"Ä\"".to_owned());
        assert_eq!(*headers.lock().unwrap(), [(1, tenant.clone()), (1, tenant), (3, None), (4, None)]);
    }
}
