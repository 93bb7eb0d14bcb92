//! Exported records are put back.

use std::time::Duration;

use outbox::{
    Error, Metadata, Outbox, OutboxEvent, Registry, Scheduled, State,
    operations::{Change, DeliveryStatus, Inspected, RecordStatus, RestoreError},
    outbox_handler,
};
use outbox_tests::on_each_database;
use serde::{Deserialize, Serialize};

use crate::rows::{KEY, delivered, in_seconds, number, publish, run};

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "restored.step", key = key)]
struct Step {
    key: String,
    n: u32,
}

/// The handled steps with their attempts.
type Seen = std::sync::Arc<std::sync::Mutex<Vec<(u32, u32)>>>;

#[outbox_handler(id = "restored-step")]
async fn handle(step: Step, meta: &Metadata, State(seen): State<Seen>) {
    seen.lock().unwrap().push((step.n, meta.attempt()));
}

/// The record as it comes back from its JSON text, which is one line.
fn through_json(record: &Inspected) -> Inspected {
    let json = serde_json::to_string(record).unwrap();
    assert_eq!(json.lines().count(), 1);
    serde_json::from_str(&json).unwrap()
}

/// Waits until the handler has seen so many steps.
async fn seen_at_least(seen: &Seen, count: usize) {
    let waiting = async {
        while seen.lock().unwrap().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .unwrap();
}

macro_rules! delete {
    ($db:ident, $id:expr) => {
        for (table, column) in [
            ("delivery", "record_id"),
            ("failure", "record_id"),
            ("record", "id"),
        ] {
            run!(
                $db,
                format!("delete from outbox_{table} where {column} = {}", $id)
            );
        }
    };
}

macro_rules! refused {
    ($db:ident, $record:expr) => {
        match $db.outbox.operations().restore($record).await {
            Err(Error::Restore(error)) => error,
            other => panic!("{other:?}"),
        }
    };
}

on_each_database! {
    async fn a_restored_record_is_the_exported_one(db) {
        let operations = db.outbox.operations();
        let id = publish(&db, KEY).await;
        for (handler, status, blocking) in [("b", "failed", true), ("a", "retrying", false), ("c", "completed", false), ("d", "waiting", true)] {
            delivered!(db, id, handler, status, blocking);
        }
        run!(db, format!("update outbox_delivery set failed_at = {0}, finished_at = {0} where handler <> 'd'", in_seconds(&db, -5)));
        run!(db, format!("insert into outbox_failure (record_id, handler, attempt, failed_at, kind, fingerprint, error) \
            values ({id}, 'b', 3, {}, 'timed_out', 'f', 'zu spät')", in_seconds(&db, -7)));
        let mut tx = db.pool.begin().await.unwrap();
        let mut ids = vec![id];
        for json in ["{\n  \"big\": 12345678901234567890.10,\n \"a\": \"\\n\"}", "null", "\"text\""] {
            let sent = db.outbox.schedule_raw("order.raw", json).key(KEY).version(7).header("tenant", "ACME é").max_retries(3)
                .dedup_key(format!("{KEY}{json}")).delay(Duration::from_secs(60)).send(&mut tx).await.unwrap();
            let Scheduled::Published { record_id } = sent else { panic!("{sent:?}") };
            ids.push(record_id);
        }
        tx.commit().await.unwrap();
        for (record, status) in [("pending", ""), ("unhandled", ""), ("completed", "completed_at"), ("discarded", "completed_at")] {
            let id = publish(&db, KEY).await;
            let ended = if status.is_empty() { String::new() } else { format!(", completed_at = {}", in_seconds(&db, -3)) };
            run!(db, format!("update outbox_record set status = '{record}'{ended} where id = {id}"));
            ids.push(id);
        }
        for id in ids {
            let mut exported = operations.inspect(id).await.unwrap().unwrap();
            // JSON on one line means the same as JSON on several.
            exported.record.payload = exported.record.payload.replace('\n', " ");
            let read = through_json(&exported);
            assert_eq!(read, exported);
            assert_eq!(refused!(db, &read), RestoreError::Exists { record_id: id });
            let part = number!(db, format!("select cast(part as {}) from outbox_record where id = {id}", if database::NOW.starts_with("utc") { "signed" } else { "bigint" }));
            delete!(db, id);
            operations.may_restore(&read).await.unwrap();
            operations.restore(&read).await.unwrap();
            assert_eq!(operations.inspect(id).await.unwrap().as_ref(), Some(&exported));
            let rows = number!(db, format!("select count(*) from outbox_record r where r.id = {id} and r.part = {part} \
                and not exists (select 1 from outbox_delivery d where d.record_id = r.id and d.part <> r.part)"));
            assert_eq!(rows, 1, "it is in its partition");
            assert_eq!(refused!(db, &read), RestoreError::Exists { record_id: id });
        }
        // The next records get other ids, also after an id that the database has not given.
        let mut far = operations.inspect(id).await.unwrap().unwrap();
        far.record.id += 1000;
        for delivery in &mut far.deliveries {
            delivery.id += 1000;
        }
        operations.restore(&far).await.unwrap();
        let newest = far.record.id;
        for n in 1..=3 {
            assert!(publish(&db, "after").await >= newest + n);
        }
        delivered!(db, newest + 1, "b", "failed", false);
        assert!(number!(db, "select max(id) from outbox_delivery".to_owned()) > far.deliveries[3].id);
    }

    async fn a_record_in_an_impossible_state_is_refused(db) {
        let id = publish(&db, KEY).await;
        for (handler, status, blocking) in [("a", "failed", true), ("b", "retrying", false)] {
            delivered!(db, id, handler, status, blocking);
        }
        let operations = db.outbox.operations();
        let good = operations.inspect(id).await.unwrap().unwrap();
        delete!(db, id);
        type Change = fn(&mut Inspected);
        let wrong: [(Change, &str); 14] = [
            (|r| r.deliveries.clear(), "it is split and has no unfinished delivery"),
            (|r| r.status = RecordStatus::Pending, "it is pending and has deliveries"),
            (|r| r.status = RecordStatus::Completed, "it is completed and has an unfinished delivery"),
            (|r| { r.deliveries.clear(); r.status = RecordStatus::Scheduled; }, "it is scheduled and has no due time"),
            (|r| { r.deliveries.clear(); r.status = RecordStatus::Discarded; }, "it is discarded and has no `completed_at`"),
            (|r| r.deliveries[1].due_at = None, "for handler `b` is retrying and has no due time"),
            (|r| r.deliveries[1].status = DeliveryStatus::Waiting, "for handler `b` is waiting and does not block its lane"),
            (|r| r.deliveries[0].status = DeliveryStatus::Completed, "for handler `a` is finished and blocks its lane"),
            (|r| r.deliveries[0].attempt = 0, "for handler `a` has attempt 0"),
            (|r| r.deliveries[0].handler = "b".to_owned(), "two deliveries for handler `b`"),
            (|r| r.deliveries[0].handler = String::new(), "cannot be stored"),
            (|r| r.record.id = 0, "its id is not from 1"),
            (|r| r.record.event = "x".repeat(256), "a name that no event can have"),
            (|r| r.record.key = "x".repeat(256), "its key has more than 255 bytes"),
        ];
        for (change, expected) in wrong {
            let mut record = good.clone();
            change(&mut record);
            let error = refused!(db, &record);
            assert!(matches!(error, RestoreError::Impossible { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert_eq!(number!(db, "select count(*) from outbox_record".to_owned()), 0);

        // Rows that exist.
        let mut tx = db.pool.begin().await.unwrap();
        let sent = db.outbox.schedule_raw("e", "{}").dedup_key("once").send(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        let Scheduled::Published { record_id } = sent else { panic!("{sent:?}") };
        let mut record = good.clone();
        record.dedup_key = Some("once".to_owned());
        assert_eq!(refused!(db, &record), RestoreError::DedupKeyExists { record_id: id });
        delivered!(db, record_id, "a", "failed", false);
        let mut record = good.clone();
        record.deliveries[1].id = number!(db, "select max(id) from outbox_delivery".to_owned());
        assert_eq!(refused!(db, &record), RestoreError::DeliveryExists { record_id: id, handler: "b".to_owned() });
        assert_eq!(number!(db, "select count(*) from outbox_record".to_owned()), 1);
        // Without its id, it is the last of its lane.
        record.deliveries[1].id = 0;
        operations.restore(&record).await.unwrap();
        assert_eq!(number!(db, format!("select count(*) from outbox_delivery where record_id = {id}")), 2);
    }

    async fn a_dispatcher_finds_restored_records(db) {
        let seen = Seen::default();
        let registry = Registry::builder().handler::<handle>().state(std::sync::Arc::clone(&seen));
        let outbox = Outbox::builder(db.pool.clone()).registry(registry).build().await.unwrap();
        let operations = outbox.operations();
        let publish = async |key: &str, n: u32| {
            let mut tx = db.pool.begin().await.unwrap();
            let sent = outbox.schedule(&Step { key: key.to_owned(), n }).send(&mut tx).await.unwrap();
            tx.commit().await.unwrap();
            let Scheduled::Published { record_id } = sent else { panic!("{sent:?}") };
            record_id
        };
        let mut exported = Vec::new();
        for n in 1..=3 {
            let id = publish("a", n).await;
            if n == 2 {
                delivered!(db, id, "restored-step", "failed", true);
            }
            if n == 3 {
                delivered!(db, id, "restored-step", "waiting", true);
            }
            exported.push(through_json(&operations.inspect(id).await.unwrap().unwrap()));
            delete!(db, id);
        }
        let dispatcher = outbox.start().await.unwrap();
        // The watermark of the partition is now above the exported ids.
        publish("a", 4).await;
        seen_at_least(&seen, 1).await;
        operations.restore(&exported[0]).await.unwrap();
        seen_at_least(&seen, 2).await;
        // A dispatcher owns the lane.
        for record in &exported[1..] {
            assert_eq!(refused!(db, record), RestoreError::Owned { record_id: record.record.id });
        }
        // The failed delivery waits for a person. The waiting one runs at once, and does not wait for it.
        operations.restore(&exported[1].clone().unblocked()).await.unwrap();
        operations.restore(&exported[2].clone().unblocked()).await.unwrap();
        seen_at_least(&seen, 3).await;
        publish("a", 5).await;
        seen_at_least(&seen, 4).await;
        assert_eq!(operations.replay_record(exported[1].record.id).await.unwrap(), Change::Applied);
        seen_at_least(&seen, 5).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(*seen.lock().unwrap(), [(4, 1), (1, 1), (3, 4), (5, 1), (2, 5)]);
    }

    async fn a_restored_delivery_blocks_its_lane_again(db) {
        let seen = Seen::default();
        let registry = Registry::builder().handler::<handle>().state(std::sync::Arc::clone(&seen));
        let outbox = Outbox::builder(db.pool.clone()).registry(registry).build().await.unwrap();
        let operations = outbox.operations();
        let mut exported = Vec::new();
        for n in 1..=3 {
            let mut tx = db.pool.begin().await.unwrap();
            let sent = outbox.schedule(&Step { key: "a".to_owned(), n }).send(&mut tx).await.unwrap();
            tx.commit().await.unwrap();
            let Scheduled::Published { record_id } = sent else { panic!("{sent:?}") };
            match n {
                1 => delivered!(db, record_id, "restored-step", "failed", true),
                2 => delivered!(db, record_id, "restored-step", "waiting", true),
                _ => continue,
            };
            exported.push(through_json(&operations.inspect(record_id).await.unwrap().unwrap()));
            delete!(db, record_id);
        }
        // In the other order: the ids of the deliveries decide their places in the lane.
        for record in exported.iter().rev() {
            operations.restore(record).await.unwrap();
        }
        let dispatcher = outbox.start().await.unwrap();
        let waiting = "select count(*) from outbox_delivery where status = 'waiting'";
        let parked = async {
            while database::number(&db.pool, waiting).await < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), parked).await.unwrap();
        assert!(seen.lock().unwrap().is_empty());
        assert_eq!(operations.replay_record(exported[0].record.id).await.unwrap(), Change::Applied);
        seen_at_least(&seen, 3).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(*seen.lock().unwrap(), [(1, 5), (2, 4), (3, 1)]);
    }
}
