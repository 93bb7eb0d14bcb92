//! Discarding a delivery or a whole record.

use outbox::operations::{Change, DeliveryStatus, Filter, Precision, RecordStatus};

use outbox_tests::on_each_database;

use crate::rows::{KEY, deliver, delivered, number, publish, publish_many, run};

/// The statuses of the record and of its deliveries.
macro_rules! statuses {
    ($db:ident, $record:expr) => {{
        let found = $db
            .outbox
            .operations()
            .inspect($record)
            .await
            .unwrap()
            .unwrap();
        let of_deliveries: Vec<DeliveryStatus> =
            found.deliveries.iter().map(|d| d.status).collect();
        (found.status, of_deliveries)
    }};
}

on_each_database! {
    async fn the_next_delivery_of_the_lane_becomes_due(db) {
        // A lane of the same handler with another key. Below: the same key with another handler.
        let other = publish(&db, "other").await;
        delivered!(db, other, "charge-card", "waiting", true);
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(publish(&db, KEY).await);
        }
        delivered!(db, ids[0], "charge-card", "failed", true);
        delivered!(db, ids[0], "send-mail", "waiting", true);
        for id in &ids[1..] {
            delivered!(db, id, "charge-card", "waiting", true);
        }
        delivered!(db, ids[1], "send-mail", "waiting", true);
        // All are in one partition: only key and handler distinguish these lanes.
        run!(db, "update outbox_delivery set part = 1".to_owned());

        let operations = db.outbox.operations();
        assert_eq!(operations.discard(ids[0], "charge-card").await.unwrap(), Change::Applied);
        let (waiting, retrying, discarded) = (DeliveryStatus::Waiting, DeliveryStatus::Retrying, DeliveryStatus::Discarded);
        // The record stays split, because the delivery of the other handler is open.
        assert_eq!(statuses!(db, ids[0]), (RecordStatus::Split, vec![discarded, waiting]));
        assert_eq!(statuses!(db, ids[1]), (RecordStatus::Split, vec![retrying, waiting]));
        assert_eq!(statuses!(db, ids[2]), (RecordStatus::Split, vec![waiting]));
        assert_eq!(statuses!(db, other), (RecordStatus::Split, vec![waiting]));
                let first = operations.inspect(ids[0]).await.unwrap().unwrap();
                let delivery = &first.deliveries[0];
                assert!(!delivery.blocking && delivery.finished_at.is_some() && delivery.due_at.is_none());
        let next = operations.inspect(ids[1]).await.unwrap().unwrap();
        let next_due = next.deliveries[0].due_at.unwrap().duration_since(next.record.created_at).as_secs();
        assert!((0..60).contains(&next_due) && next.deliveries[0].blocking, "{next:?}");
        assert_eq!(next.deliveries[0].attempt, 4);

        // A delivery from the middle of the lane: the delivery before it still blocks the lane.
        assert_eq!(operations.discard(ids[2], "charge-card").await.unwrap(), Change::Applied);
        assert_eq!(statuses!(db, ids[2]), (RecordStatus::Discarded, vec![discarded]));
        assert_eq!(statuses!(db, ids[3]), (RecordStatus::Split, vec![waiting]));
        assert_eq!(operations.discard(ids[1], "charge-card").await.unwrap(), Change::Applied);
        assert_eq!(statuses!(db, ids[3]), (RecordStatus::Split, vec![retrying]));
    }

    async fn a_failed_delivery_stays_failed_when_the_one_before_it_is_discarded(db) {
        let (first, second, third) = (publish(&db, KEY).await, publish(&db, KEY).await, publish(&db, KEY).await);
        delivered!(db, first, "a", "failed", true);
        delivered!(db, second, "a", "failed", true);
        delivered!(db, third, "a", "waiting", true);
        assert_eq!(db.outbox.operations().discard(first, "a").await.unwrap(), Change::Applied);
        assert_eq!(statuses!(db, second).1, [DeliveryStatus::Failed]);
        assert_eq!(statuses!(db, third).1, [DeliveryStatus::Waiting]);
    }

    async fn a_record_is_discarded_with_its_last_delivery(db) {
        let id = publish(&db, KEY).await;
        for (handler, status) in [("a", "retrying"), ("b", "failed"), ("c", "completed")] {
            delivered!(db, id, handler, status, false);
        }
        let operations = db.outbox.operations();
        assert_eq!(operations.discard(id, "a").await.unwrap(), Change::Applied);
        assert_eq!(operations.inspect(id).await.unwrap().unwrap().status, RecordStatus::Split);
        assert_eq!(operations.discard(id, "a").await.unwrap(), Change::Conflict(DeliveryStatus::Discarded.into()));
        assert_eq!(operations.discard(id, "c").await.unwrap(), Change::Conflict(DeliveryStatus::Completed.into()));
        assert_eq!(operations.discard(id, "b").await.unwrap(), Change::Applied);
        let seen = operations.inspect(id).await.unwrap().unwrap();
        assert_eq!(seen.status, RecordStatus::Discarded);
        assert!(seen.completed_at.unwrap().duration_since(seen.record.created_at).as_secs().abs() < 60);
        assert_eq!(operations.discard(id, "unknown").await.unwrap(), Change::Conflict(RecordStatus::Discarded.into()));
        assert_eq!(operations.discard_record(id).await.unwrap(), Change::Conflict(RecordStatus::Discarded.into()));
    }

    async fn a_whole_record_is_discarded_in_any_unfinished_state(db) {
        let operations = db.outbox.operations();
        for status in ["pending", "scheduled", "unhandled"] {
            let id = publish(&db, KEY).await;
            run!(db, format!("update outbox_record set status = '{status}' where id = {id}"));
            assert_eq!(operations.discard_record(id).await.unwrap(), Change::Applied);
            let seen = operations.inspect(id).await.unwrap().unwrap();
            assert_eq!((seen.status, seen.completed_at.is_some()), (RecordStatus::Discarded, true));
        }
        let id = publish(&db, KEY).await;
        run!(db, format!("update outbox_record set status = 'completed' where id = {id}"));
        assert_eq!(operations.discard_record(id).await.unwrap(), Change::Conflict(RecordStatus::Completed.into()));
        assert_eq!(operations.discard_record(id + 1).await.unwrap(), Change::NotFound);
        assert_eq!(operations.discard(id + 1, "a").await.unwrap(), Change::NotFound);

        let (split, behind) = (publish(&db, KEY).await, publish(&db, KEY).await);
        assert_eq!(operations.discard(split, "a").await.unwrap(), Change::Conflict(RecordStatus::Pending.into()));
        for (handler, status) in [("a", "failed"), ("b", "retrying"), ("c", "waiting"), ("d", "completed")] {
            delivered!(db, split, handler, status, true);
            delivered!(db, behind, handler, "waiting", true);
        }
        assert_eq!(operations.discard(split, "unknown").await.unwrap(), Change::NotFound);
        run!(db, "update outbox_delivery set blocking = false where status = 'completed'".to_owned());
        assert_eq!(operations.discard_record(split).await.unwrap(), Change::Applied);
        let (discarded, retrying) = (DeliveryStatus::Discarded, DeliveryStatus::Retrying);
        assert_eq!(statuses!(db, split), (RecordStatus::Discarded, vec![discarded, discarded, discarded, DeliveryStatus::Completed]));
        // The lane of `d` was not blocked, so its delivery does not change.
        assert_eq!(statuses!(db, behind).1[..3], [retrying, retrying, retrying]);
    }

    async fn discard_all_works_in_batches(db) {
        publish_many(&db, KEY, 1203).await;
        run!(db, deliver(&db, "1 = 1", "charge-card", "failed", true));
        let last = number!(db, "select max(id) from outbox_record".to_owned());
        run!(db, deliver(&db, &format!("id = {last}"), "send-mail", "retrying", true));
        // One more record in the lane of the last one.
        let behind = publish(&db, &format!("{KEY}1202")).await;
        delivered!(db, behind, "charge-card", "waiting", true);
        let operations = db.outbox.operations();
        assert_eq!(operations.discard_all(&Filter::new()).await.unwrap(), 1203);
        assert_eq!(number!(db, "select count(*) from outbox_record where status = 'discarded'".to_owned()), 1202);
        assert_eq!(statuses!(db, last), (RecordStatus::Split, vec![DeliveryStatus::Discarded, DeliveryStatus::Retrying]));
        assert_eq!(statuses!(db, behind).1, [DeliveryStatus::Retrying]);
        assert_eq!(operations.discard_all(&Filter::new().status(RecordStatus::Discarded)).await.unwrap(), 0);

        publish_many(&db, KEY, 502).await;
        let pending = Filter::new().status(RecordStatus::Pending);
        assert_eq!(operations.discard_all(&pending.clone().key(format!("{KEY}7"))).await.unwrap(), 1);
        assert_eq!(operations.discard_all(&pending).await.unwrap(), 501);
        let counts = operations.counts(Precision::Exact).await.unwrap();
        assert_eq!((counts.pending, counts.failed, counts.retrying), (0, 0, 2));
    }

    async fn the_second_of_two_concurrent_discards_closes_the_record(db) {
        for round in 0..25 {
            let id = publish(&db, &format!("{KEY}{round}")).await;
            delivered!(db, id, "a", "failed", true);
            delivered!(db, id, "b", "retrying", true);
            let discards = ["a", "b"].map(|handler| {
                let outbox = db.outbox.clone();
                tokio::spawn(async move { outbox.operations().discard(id, handler).await.unwrap() })
            });
            for discard in discards {
                assert_eq!(discard.await.unwrap(), Change::Applied);
            }
            assert_eq!(statuses!(db, id).0, RecordStatus::Discarded, "in round {round}");
        }
    }

    async fn the_second_of_two_concurrent_discards_in_a_lane_makes_the_next_delivery_due(db) {
        for round in 0..25 {
            let mut ids = Vec::new();
            for status in ["failed", "failed", "waiting"] {
                let id = publish(&db, &format!("{KEY}{round}")).await;
                delivered!(db, id, "a", status, true);
                ids.push(id);
            }
            let discards = [ids[0], ids[1]].map(|id| {
                let outbox = db.outbox.clone();
                tokio::spawn(async move { outbox.operations().discard(id, "a").await.unwrap() })
            });
            for discard in discards {
                assert_eq!(discard.await.unwrap(), Change::Applied);
            }
            assert_eq!(statuses!(db, ids[2]).1, [DeliveryStatus::Retrying], "in round {round}");
        }
    }

    async fn only_one_of_several_concurrent_discards_of_a_delivery_applies(db) {
        let id = publish(&db, KEY).await;
        delivered!(db, id, "a", "failed", true);
        let discards = [(); 4].map(|()| {
            let outbox = db.outbox.clone();
            tokio::spawn(async move { outbox.operations().discard(id, "a").await.unwrap() })
        });
        let mut applied = 0;
        for discard in discards {
            match discard.await.unwrap() {
                Change::Applied => applied += 1,
                other => assert_eq!(other, Change::Conflict(DeliveryStatus::Discarded.into())),
            }
        }
        assert_eq!(applied, 1);
    }
}
