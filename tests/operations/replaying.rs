//! Once more, now.

use outbox::operations::{Change, DeliveryStatus, Filter, RecordStatus};

use outbox_tests::on_each_database;

use crate::rows::{KEY, deliver, delivered, in_seconds, number, publish, publish_many, run};

/// The delivery of the handler as it is now, and how many seconds until it is due.
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
    async fn a_failed_delivery_has_all_its_retries_again(db) {
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
        // Its lane goes on waiting behind it.
        assert!(delivery.blocking);
        assert_eq!(operations.replay(other, "charge-card").await.unwrap(), Change::Conflict(DeliveryStatus::Waiting.into()));
        // The other handler's is as it was.
        let (delivery, _) = delivery!(db, id, "send-mail");
        assert_eq!((delivery.status, delivery.attempt, delivery.blocking), (DeliveryStatus::Failed, 4, false));

        // Again: it is due already, and nothing else changes.
        assert_eq!(operations.replay(id, "charge-card").await.unwrap(), Change::Applied);
        let (delivery, _) = delivery!(db, id, "charge-card");
        assert_eq!((delivery.attempt, delivery.status), (5, DeliveryStatus::Retrying));
    }

    async fn a_retry_is_brought_forward_and_stays_what_it_is(db) {
        let id = publish(&db, KEY).await;
        delivered!(db, id, "charge-card", "retrying", true);
        assert!(delivery!(db, id, "charge-card").1.unwrap() >= 3600);
        assert_eq!(db.outbox.operations().replay(id, "charge-card").await.unwrap(), Change::Applied);
        let (delivery, due) = delivery!(db, id, "charge-card");
        assert!((0..60).contains(&due.unwrap()), "{due:?}");
        assert_eq!((delivery.status, delivery.attempt, delivery.failure_count), (DeliveryStatus::Retrying, 4, 3));
        assert!(delivery.first_failed_at.is_some() && delivery.blocking);
    }

    async fn what_cannot_be_replayed_says_what_it_is(db) {
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
        for missing in ["A", "nobody", "a\0b"] {
            assert_eq!(operations.replay(id, missing).await.unwrap(), Change::NotFound);
        }
        assert_eq!(operations.replay(id + 1, "a").await.unwrap(), Change::NotFound);
        assert_eq!(operations.replay_record(id + 1).await.unwrap(), Change::NotFound);
        let unchanged = number!(db, "select count(*) from outbox_delivery where attempt = 4 and due_at is null".to_owned());
        assert_eq!(unchanged, 3);
    }

    async fn a_record_is_replayed_for_all_that_have_not_finished(db) {
        let (id, delayed) = (publish(&db, KEY).await, publish(&db, KEY).await);
        for (handler, status) in [("a", "waiting"), ("b", "retrying"), ("c", "failed"), ("d", "completed")] {
            delivered!(db, id, handler, status, true);
        }
        let operations = db.outbox.operations();
        assert_eq!(operations.replay_record(id).await.unwrap(), Change::Applied);
        let seen = operations.inspect(id).await.unwrap().unwrap();
        let seen: Vec<_> = seen.deliveries.iter().map(|d| (d.status, d.attempt, d.due_at.is_some())).collect();
        let (waiting, retrying, completed) = (DeliveryStatus::Waiting, DeliveryStatus::Retrying, DeliveryStatus::Completed);
        assert_eq!(seen, [(waiting, 4, false), (retrying, 4, true), (retrying, 5, true), (completed, 4, false)]);

        run!(db, format!("update outbox_record set status = 'scheduled', due_at = {} where id = {delayed}", in_seconds(&db, 9000)));
        assert_eq!(operations.replay_record(delayed).await.unwrap(), Change::Applied);
        let seen = operations.inspect(delayed).await.unwrap().unwrap();
        assert_eq!(seen.status, RecordStatus::Scheduled);
        assert!(seen.due_at.unwrap().duration_since(seen.record.created_at).as_secs() < 60);
    }

    async fn many_are_replayed_in_batches(db) {
        publish_many(&db, KEY, 1203).await;
        run!(db, deliver(&db, "1 = 1", "charge-card", "failed", true));
        let last = number!(db, "select max(id) from outbox_record".to_owned());
        run!(db, format!("update outbox_delivery set fingerprint = 'other' where record_id > {last} - 2"));
        run!(db, format!("update outbox_delivery set status = 'retrying', due_at = {} where record_id = {last}", in_seconds(&db, 9000)));
        let operations = db.outbox.operations();
        let due = || format!("select count(*) from outbox_delivery where status = 'retrying' and due_at <= {}", in_seconds(&db, 0));

        // 500 in a transaction: this is three.
        let declined = Filter::new().status(DeliveryStatus::Failed).fingerprint("declined");
        assert_eq!(operations.replay_all(&declined).await.unwrap(), 1201);
        assert_eq!(operations.replay_all(&declined).await.unwrap(), 0);
        assert_eq!(number!(db, due()), 1201);
        let again = number!(db, "select count(*) from outbox_delivery where attempt = 5 and failure_count = 0".to_owned());
        assert_eq!(again, 1201);

        // Without a status: what has failed, and not what is retried anyway.
        assert_eq!(operations.replay_all(&Filter::new().fingerprint("other")).await.unwrap(), 1);
        assert_eq!(number!(db, due()), 1202);
        for useless in [DeliveryStatus::Waiting, DeliveryStatus::Completed] {
            assert_eq!(operations.replay_all(&Filter::new().status(useless)).await.unwrap(), 0);
        }
        let retrying = Filter::new().status(DeliveryStatus::Retrying).fingerprint("other");
        assert_eq!(operations.replay_all(&retrying).await.unwrap(), 2);
        assert_eq!(number!(db, due()), 1203);
    }

    async fn delayed_records_are_brought_forward_all_at_once(db) {
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
