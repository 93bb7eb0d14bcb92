//! Replaying deliveries and records.

use outbox::operations::{Change, DeliveryStatus, Filter, RecordStatus};

use outbox_tests::on_each_database;

use crate::rows::{
    KEY, OrderPaid, deliver, delivered, in_seconds, number, publish, publish_event, publish_many,
    run,
};

/// The delivery of the handler as it is now, and its due time in seconds after publish.
macro_rules! delivery {
    ($db:ident, $record:expr, $handler:expr) => {{
        let seen = $db
            .outbox
            .operations()
            .inspect($record)
            .await
            .unwrap()
            .unwrap();
        let delivery = seen
            .deliveries
            .into_iter()
            .find(|d| d.handler == $handler)
            .unwrap();
        let due = delivery
            .due_at
            .map(|due| due.duration_since(seen.record.created_at).as_secs());
        (delivery, due)
    }};
}

on_each_database! {
    async fn a_replayed_delivery_has_all_its_retries_again(db) {
        let (id, other) = (publish(&db, KEY).await, publish(&db, KEY).await);
        delivered!(db, id, "charge-card", "failed", true);
        delivered!(db, id, "send-mail", "failed", false);
        delivered!(db, other, "charge-card", "waiting", true);
        let operations = db.outbox.operations();
        assert_eq!(operations.replay(id, "charge-card").await.unwrap(), Change::Applied);

        let (delivery, due) = delivery!(db, id, "charge-card");
        assert_eq!((delivery.status, delivery.attempt, delivery.failure_count), (DeliveryStatus::Retrying, 5, 0));
        assert_eq!((delivery.first_failed_at, delivery.finished_at), (None, None));
        assert!((0..60).contains(&due.unwrap()), "{due:?}");
        // The delivery still blocks its lane.
        assert!(delivery.blocking);
        assert_eq!(operations.replay(other, "charge-card").await.unwrap(), Change::Conflict(DeliveryStatus::Waiting.into()));
        // The delivery of the other handler is unchanged.
        let (delivery, _) = delivery!(db, id, "send-mail");
        assert_eq!((delivery.status, delivery.attempt, delivery.blocking), (DeliveryStatus::Failed, 4, false));

        // A second replay finds it due already and changes nothing.
        assert_eq!(operations.replay(id, "charge-card").await.unwrap(), Change::Applied);
        let (delivery, _) = delivery!(db, id, "charge-card");
        assert_eq!((delivery.attempt, delivery.status), (5, DeliveryStatus::Retrying));
    }

    async fn replay_makes_a_retrying_delivery_due_now_and_changes_nothing_else(db) {
        let id = publish(&db, KEY).await;
        delivered!(db, id, "charge-card", "retrying", true);
        assert!(delivery!(db, id, "charge-card").1.unwrap() >= 3600);
        assert_eq!(db.outbox.operations().replay(id, "charge-card").await.unwrap(), Change::Applied);
        let (delivery, due) = delivery!(db, id, "charge-card");
        assert!((0..60).contains(&due.unwrap()), "{due:?}");
        assert_eq!((delivery.status, delivery.attempt, delivery.failure_count), (DeliveryStatus::Retrying, 4, 3));
        assert!(delivery.first_failed_at.is_some() && delivery.blocking);
    }

    async fn a_refused_replay_returns_the_status(db) {
        let operations = db.outbox.operations();
        let id = publish(&db, KEY).await;
        assert_eq!(operations.replay(id, "a").await.unwrap(), Change::Conflict(RecordStatus::Pending.into()));
        assert_eq!(operations.replay_record(id).await.unwrap(), Change::Conflict(RecordStatus::Pending.into()));
        for (handler, status) in [("a", "waiting"), ("b", "completed"), ("c", "discarded")] {
            delivered!(db, id, handler, status, true);
        }
        assert_eq!(operations.replay(id, "a").await.unwrap(), Change::Conflict(DeliveryStatus::Waiting.into()));
        assert_eq!(operations.replay(id, "b").await.unwrap(), Change::Conflict(DeliveryStatus::Completed.into()));
        assert_eq!(operations.replay(id, "c").await.unwrap(), Change::Conflict(DeliveryStatus::Discarded.into()));
        assert_eq!(operations.replay_record(id).await.unwrap(), Change::Conflict(RecordStatus::Split.into()));
        for missing in ["A", "unknown", "a\0b"] {
            assert_eq!(operations.replay(id, missing).await.unwrap(), Change::NotFound);
        }
        assert_eq!(operations.replay(id + 1, "a").await.unwrap(), Change::NotFound);
        assert_eq!(operations.replay_record(id + 1).await.unwrap(), Change::NotFound);
        let unchanged = number!(db, "select count(*) from outbox_delivery where attempt = 4 and due_at is null".to_owned());
        assert_eq!(unchanged, 3);
    }

    async fn replay_of_a_record_applies_to_its_unfinished_deliveries(db) {
        let (id, delayed) = (publish(&db, KEY).await, publish(&db, KEY).await);
        for (handler, status) in [("a", "waiting"), ("b", "retrying"), ("c", "failed"), ("d", "completed")] {
            delivered!(db, id, handler, status, true);
        }
        let operations = db.outbox.operations();
        assert_eq!(operations.replay_record(id).await.unwrap(), Change::Applied);
                let record = operations.inspect(id).await.unwrap().unwrap();
                let deliveries: Vec<_> = record.deliveries.iter().map(|d| (d.status, d.attempt, d.due_at.is_some())).collect();
        let (waiting, retrying, completed) = (DeliveryStatus::Waiting, DeliveryStatus::Retrying, DeliveryStatus::Completed);
        assert_eq!(deliveries, [(waiting, 4, false), (retrying, 4, true), (retrying, 5, true), (completed, 4, false)]);

        run!(db, format!("update outbox_record set status = 'scheduled', due_at = {} where id = {delayed}", in_seconds(&db, 9000)));
        assert_eq!(operations.replay_record(delayed).await.unwrap(), Change::Applied);
        let seen = operations.inspect(delayed).await.unwrap().unwrap();
        assert_eq!(seen.status, RecordStatus::Scheduled);
        assert!(seen.due_at.unwrap().duration_since(seen.record.created_at).as_secs() < 60);
    }

    async fn replay_all_works_in_batches(db) {
        publish_many(&db, KEY, 1203).await;
        run!(db, deliver(&db, "1 = 1", "charge-card", "failed", true));
        let last = number!(db, "select max(id) from outbox_record".to_owned());
        run!(db, format!("update outbox_delivery set fingerprint = 'other' where record_id > {last} - 2"));
        run!(db, format!("update outbox_delivery set status = 'retrying', due_at = {} where record_id = {last}", in_seconds(&db, 9000)));
        let operations = db.outbox.operations();
        let due = || format!("select count(*) from outbox_delivery where status = 'retrying' and due_at <= {}", in_seconds(&db, 0));

        // One transaction replays 500 deliveries, so this takes three.
        let declined = Filter::new().status(DeliveryStatus::Failed).fingerprint("declined");
        assert_eq!(operations.replay_all(&declined).await.unwrap(), 1201);
        assert_eq!(operations.replay_all(&declined).await.unwrap(), 0);
        assert_eq!(number!(db, due()), 1201);
        let replayed = number!(db, "select count(*) from outbox_delivery where attempt = 5 and failure_count = 0".to_owned());
        assert_eq!(replayed, 1201);

        // Without a status, a filter selects failed deliveries and no retrying ones.
        assert_eq!(operations.replay_all(&Filter::new().fingerprint("other")).await.unwrap(), 1);
        assert_eq!(number!(db, due()), 1202);
        for status in [DeliveryStatus::Waiting, DeliveryStatus::Completed] {
            assert_eq!(operations.replay_all(&Filter::new().status(status)).await.unwrap(), 0);
        }
        let retrying = Filter::new().status(DeliveryStatus::Retrying).fingerprint("other");
        assert_eq!(operations.replay_all(&retrying).await.unwrap(), 2);
        assert_eq!(number!(db, due()), 1203);
    }

    async fn replay_by_event_applies_to_the_records_of_that_event_only(db) {
        // The same key and handler: only the event tells the records apart.
        let mut of_event = [Vec::new(), Vec::new()];
        for _ in 0..3 {
            of_event[0].push(publish(&db, KEY).await);
            of_event[1].push(publish_event(&db, &OrderPaid { order_id: KEY.to_owned() }).await);
        }
        run!(db, deliver(&db, "1 = 1", "charge-card", "failed", true));
        let operations = db.outbox.operations();
        for other in ["order.pai", "order.paid.late", "Order.Paid", "order.%", ""] {
            assert_eq!(operations.replay_all(&Filter::new().event(other)).await.unwrap(), 0, "{other}");
        }
        assert_eq!(operations.replay_all(&Filter::new().event("order.paid")).await.unwrap(), 3);
        for (ids, status, attempt) in [(&of_event[1], DeliveryStatus::Retrying, 5), (&of_event[0], DeliveryStatus::Failed, 4)] {
            for id in ids {
                let record = operations.inspect(*id).await.unwrap().unwrap();
                assert_eq!((record.deliveries[0].status, record.deliveries[0].attempt), (status, attempt), "{}", record.record.event);
            }
        }
        assert_eq!(operations.replay_all(&Filter::new().event("order.paid")).await.unwrap(), 0);
    }

    async fn replay_all_makes_scheduled_records_due_now(db) {
        publish_many(&db, KEY, 3).await;
        run!(db, format!("update outbox_record set status = 'scheduled', due_at = {}", in_seconds(&db, 9000)));
        publish(&db, KEY).await;
        let operations = db.outbox.operations();
        assert_eq!(operations.replay_all(&Filter::new()).await.unwrap(), 0);
        assert_eq!(operations.replay_all(&Filter::new().status(RecordStatus::Scheduled)).await.unwrap(), 3);
        let due = format!("select count(*) from outbox_record where status = 'scheduled' and due_at <= {}", in_seconds(&db, 0));
        assert_eq!(number!(db, due), 3);
    }
}
