//! Counts, lists, and all data of one record.

use std::{collections::BTreeSet, time::Duration};

use outbox::operations::{Change, Counts, DeliveryStatus, Filter, Paging, Precision, RecordStatus};

use outbox_tests::on_each_database;

use crate::rows::{
    KEY, OrderPaid, deliver, delivered, in_seconds, number, publish, publish_event, publish_many,
    run,
};

/// The record ids of all pages, and the number of pages.
macro_rules! all_pages {
    ($db:ident, $filter:expr, $paging:expr) => {{
        let (mut paging, mut ids, mut pages) = ($paging, Vec::new(), 0);
        loop {
            let page = $db
                .outbox
                .operations()
                .list(&$filter, paging)
                .await
                .unwrap();
            pages += 1;
            ids.extend(page.items.iter().map(|item| item.record_id));
            let Some(next) = page.next else {
                break (ids, pages);
            };
            // The cursor passes through text, as in a URL.
            paging = paging.after(next.to_string().parse().unwrap());
        }
    }};
}

macro_rules! listed {
    ($db:ident, $filter:expr) => {
        all_pages!($db, $filter, Paging::oldest(1000)).0
    };
}

on_each_database! {
    async fn an_empty_outbox_gives_empty_answers(db) {
        let operations = db.outbox.operations();
        let mut none = Counts::default();
        none.exact = true;
        for precision in [Precision::Exact, Precision::Estimated] {
            assert_eq!(operations.counts(precision).await.unwrap(), none);
            let events = operations.counts_by_event(precision).await.unwrap();
            let errors = operations.counts_by_error(precision).await.unwrap();
            assert!(events.items.is_empty() && errors.items.is_empty() && events.exact && errors.exact);
        }
        assert_eq!(operations.newest_record_id().await.unwrap(), 0);
        assert_eq!(operations.oldest_pending_age().await.unwrap(), None);
        assert!(operations.blocked_lanes(10).await.unwrap().is_empty());
        assert!(operations.paused().await.unwrap().is_empty());
        assert_eq!(operations.inspect(1).await.unwrap(), None);
        for filter in [Filter::new(), Filter::new().status(DeliveryStatus::Failed), Filter::new().key("a\0b")] {
            let page = operations.list(&filter, Paging::newest(0)).await.unwrap();
            assert!(page.items.is_empty() && page.next.is_none());
            assert_eq!(operations.replay_all(&filter).await.unwrap(), 0);
            assert_eq!(operations.discard_all(&filter).await.unwrap(), 0);
        }
        assert_eq!(operations.prune(Duration::ZERO).await.unwrap(), 0);
    }

    async fn each_record_is_counted_once_by_its_status(db) {
        publish_many(&db, "k", 8).await;
        let paid = publish_event(&db, &OrderPaid { order_id: KEY.to_owned() }).await;
        let first = number!(db, "select min(id) from outbox_record".to_owned());
        run!(db, format!("update outbox_record set status = 'scheduled' where id = {}", first + 2));
        run!(db, format!("update outbox_record set status = 'unhandled' where id = {}", first + 3));
        run!(db, format!("update outbox_record set status = 'completed' where id = {}", first + 4));
        run!(db, format!("update outbox_record set status = 'discarded' where id in ({}, {})", first + 5, first + 6));
        for (handler, status) in [("a", "waiting"), ("b", "retrying"), ("c", "failed"), ("d", "completed"), ("e", "discarded")] {
            delivered!(db, first + 7, handler, status, false);
        }
        delivered!(db, paid, "c", "failed", true);

        // With few rows an estimate is exact.
            for precision in [Precision::Exact, Precision::Estimated] {
            let counts = db.outbox.operations().counts(precision).await.unwrap();
            let by_status = [counts.pending, counts.scheduled, counts.unhandled, counts.waiting, counts.retrying, counts.failed, counts.completed, counts.discarded];
            assert_eq!(by_status, [2, 1, 1, 1, 1, 2, 1, 2]);

            let events = db.outbox.operations().counts_by_event(precision).await.unwrap();
            let seen: Vec<_> = events.items.iter().map(|e| (&*e.event, [e.pending, e.scheduled, e.unhandled, e.waiting, e.retrying, e.failed])).collect();
            assert_eq!(seen, [("order.created", [2, 1, 1, 1, 1, 1]), ("order.paid", [0, 0, 0, 0, 0, 1])]);
            assert!(counts.exact && events.exact);
        }
        assert_eq!(db.outbox.operations().newest_record_id().await.unwrap(), paid);
    }

    async fn failures_are_grouped_by_error_and_handler(db) {
        let mut ids = Vec::new();
        for n in 0..5 {
            ids.push(publish(&db, &format!("{KEY}{n}")).await);
        }
        for id in &ids[..3] {
            delivered!(db, id, "charge-card", "failed", true);
        }
        // The newest failure of a group gives its text.
        run!(db, format!("update outbox_delivery set error = 'Karte abgelehnt: 9 €', error_kind = 'permanent' where record_id = {}", ids[2]));
        delivered!(db, ids[3], "send-mail", "failed", false);
        run!(db, format!("update outbox_delivery set fingerprint = null, error = null, error_kind = null where record_id = {}", ids[3]));
        // A retrying delivery is not counted.
        delivered!(db, ids[4], "charge-card", "retrying", true);

        for precision in [Precision::Exact, Precision::Estimated] {
            let errors = db.outbox.operations().counts_by_error(precision).await.unwrap();
            assert!(errors.exact);
            let seen: Vec<_> = errors.items.iter().map(|e| (&*e.fingerprint, &*e.handler, &*e.kind, &*e.error, e.count, e.oldest_record_id, e.newest_record_id)).collect();
            assert_eq!(seen, [
                ("declined", "charge-card", "permanent", "Karte abgelehnt: 9 €", 3, ids[0], ids[2]),
                ("", "send-mail", "", "", 1, ids[3], ids[3]),
            ]);
        }
    }

    async fn the_age_of_the_oldest_pending_record_is_by_the_database_s_clock(db) {
        publish_many(&db, KEY, 200).await;
        let (done, old) = (publish(&db, "done").await, publish(&db, "old").await);
        run!(db, format!("update outbox_record set created_at = {} where id = {old}", in_seconds(&db, -100)));
        run!(db, format!("update outbox_record set created_at = {}, status = 'completed' where id = {done}", in_seconds(&db, -9000)));
        // All partitions have completed records, so `old` is not the first row of its partition.
        run!(db, format!("update outbox_record set status = 'completed' where id < {done}"));
        let age = db.outbox.operations().oldest_pending_age().await.unwrap().unwrap();
        assert!((100..160).contains(&age.as_secs()), "{age:?}");
        run!(db, format!("update outbox_record set status = 'split' where id = {old}"));
        assert_eq!(db.outbox.operations().oldest_pending_age().await.unwrap(), None);
    }

    async fn pages_have_every_record_once(db) {
        publish_many(&db, KEY, 250).await;
        let pending = Filter::new().status(RecordStatus::Pending);
        let (oldest, pages) = all_pages!(db, pending, Paging::oldest(100));
        assert_eq!((oldest.len(), pages), (250, 3));
        assert!(oldest.is_sorted_by(|a, b| a < b));
        let (mut newest, _) = all_pages!(db, pending, Paging::newest(7));
        newest.reverse();
        assert_eq!(newest, oldest);
        // A page that holds exactly the rest is the last one.
        assert_eq!(all_pages!(db, Filter::new(), Paging::newest(250)).1, 1);
        // A limit outside of the allowed range is changed to the nearest allowed one.
        assert_eq!(all_pages!(db, Filter::new(), Paging::newest(0)).1, 250);
        assert_eq!(all_pages!(db, Filter::new(), Paging::newest(u32::MAX)).1, 1);

        run!(db, deliver(&db, "1 = 1", "a", "failed", true));
        run!(db, deliver(&db, "1 = 1", "b", "failed", true));
        let failed = Filter::new().status(DeliveryStatus::Failed);
        let (twice, pages) = all_pages!(db, failed, Paging::newest(100));
        assert_eq!((twice.len(), pages), (500, 5));
        assert_eq!(twice.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(), oldest);
    }

    async fn each_filter_selects_the_matching_records(db) {
        let (a, b) = (publish(&db, KEY).await, publish(&db, "b").await);
        let paid = publish_event(&db, &OrderPaid { order_id: KEY.to_owned() }).await;
        let late = publish(&db, "late").await;
        run!(db, format!("update outbox_record set created_at = {} where id in ({late}, {b})", in_seconds(&db, -500)));
        delivered!(db, a, "charge-card", "failed", true);
        delivered!(db, b, "charge-card", "retrying", true);
        delivered!(db, paid, "send-mail", "failed", true);
        run!(db, format!("update outbox_delivery set fingerprint = 'other' where record_id = {paid}"));

        assert_eq!(listed!(db, Filter::new()), [a, b, paid, late]);
        assert_eq!(listed!(db, Filter::new().key(KEY)), [a, paid]);
        assert_eq!(listed!(db, Filter::new().key("B")), [0; 0]);
        assert_eq!(listed!(db, Filter::new().event("order.paid")), [paid]);
        assert_eq!(listed!(db, Filter::new().handler("charge-card")), [a, b]);
        assert_eq!(listed!(db, Filter::new().fingerprint("other")), [paid]);
        assert_eq!(listed!(db, Filter::new().older_than(Duration::from_secs(400))), [b, late]);
        assert_eq!(listed!(db, Filter::new().older_than(Duration::MAX)), [0; 0]);
        assert_eq!(listed!(db, Filter::new().status(RecordStatus::Pending)), [late]);
        assert_eq!(listed!(db, Filter::new().status(RecordStatus::Split).key("b")), [b]);

        let failed = || Filter::new().status(DeliveryStatus::Failed);
        assert_eq!(listed!(db, failed()), [a, paid]);
        assert_eq!(listed!(db, failed().key(KEY)), [a, paid]);
        assert_eq!(listed!(db, failed().event("order.created")), [a]);
        assert_eq!(listed!(db, failed().handler("send-mail")), [paid]);
        assert_eq!(listed!(db, failed().fingerprint("declined")), [a]);
        assert_eq!(listed!(db, failed().fingerprint("declined").handler("send-mail")), [0; 0]);
        let retrying = Filter::new().status(DeliveryStatus::Retrying);
        assert_eq!(listed!(db, retrying.clone().older_than(Duration::from_secs(400))), [b]);
        assert_eq!(listed!(db, retrying.clone().older_than(Duration::from_secs(600))), [0; 0]);

        // The fields of a delivery in a list.
        let page = db.outbox.operations().list(&failed().handler("charge-card"), Paging::newest(5)).await.unwrap();
        let item = &page.items[0];
        assert_eq!((&*item.event, &*item.key, item.status), ("order.created", KEY, RecordStatus::Split));
        let delivery = item.delivery.as_ref().unwrap();
        assert_eq!((&*delivery.handler, delivery.status, delivery.blocking), ("charge-card", DeliveryStatus::Failed, true));
        assert_eq!((delivery.attempt, delivery.failure_count), (4, 3));
        assert_eq!((delivery.kind.as_deref(), delivery.error.as_deref()), (Some("error"), Some("card declined: 7")));
    }

    async fn inspect_returns_all_data_of_one_record(db) {
        let mut tx = db.pool.begin().await.unwrap();
        let event = OrderPaid { order_id: KEY.to_owned() };
        let sent = db.outbox.schedule(&event).header("tenant", KEY).max_retries(9).send(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        let outbox::Scheduled::Published { record_id } = sent else { unreachable!() };
        delivered!(db, record_id, "b", "failed", true);
        delivered!(db, record_id, "a", "retrying", false);
        for (handler, attempt) in [("b", 2), ("b", 10), ("a", 1)] {
            run!(db, format!("insert into outbox_failure (record_id, handler, attempt, failed_at, kind, fingerprint, error)
values ({record_id}, '{handler}', {attempt}, {}, 'timed_out', 'f{attempt}', 'zu spät: {attempt}')", in_seconds(&db, -5)));
        }

        let seen = db.outbox.operations().inspect(record_id).await.unwrap().unwrap();
        assert_eq!((seen.record.id, &*seen.record.event, &*seen.record.key), (record_id, "order.paid", KEY));
        assert_eq!(seen.record.payload, serde_json::to_string(&event).unwrap());
        assert_eq!((seen.record.headers["tenant"].as_str(), seen.record.max_retries, seen.record.version), (KEY, Some(9), 1));
        assert_eq!((seen.status, seen.due_at, seen.completed_at), (RecordStatus::Split, None, None));
        let deliveries: Vec<_> = seen.deliveries.iter().map(|d| (&*d.handler, d.status, d.blocking, d.due_at.is_some())).collect();
        assert_eq!(deliveries, [("b", DeliveryStatus::Failed, true, false), ("a", DeliveryStatus::Retrying, false, true)]);
        // The times are relative to the creation of the record, within a minute.
        let started = seen.record.created_at;
        let due = seen.deliveries[1].due_at.unwrap().duration_since(started).as_secs();
        assert!((3600..3660).contains(&due), "{due}");
        let failed = seen.deliveries[0].first_failed_at.unwrap().duration_since(started).as_secs();
        assert!((-60..0).contains(&failed), "{failed}");
        let failures: Vec<_> = seen.failures.iter().map(|f| (&*f.handler, f.attempt, &*f.kind, &*f.fingerprint, &*f.error)).collect();
        assert_eq!(failures, [("a", 1, "timed_out", "f1", "zu spät: 1"), ("b", 2, "timed_out", "f2", "zu spät: 2"), ("b", 10, "timed_out", "f10", "zu spät: 10")]);
        assert!(seen.failures[0].failed_at.duration_since(started).as_secs().abs() < 60);
    }

    async fn blocked_lanes_are_listed_with_their_first_delivery(db) {
        let mut of_key = Vec::new();
        for _ in 0..3 {
            of_key.push(publish(&db, KEY).await);
        }
        delivered!(db, of_key[0], "charge-card", "failed", true);
        delivered!(db, of_key[1], "charge-card", "waiting", true);
        delivered!(db, of_key[2], "charge-card", "waiting", true);
        // The only delivery of its lane.
        delivered!(db, of_key[2], "send-mail", "retrying", true);
        // Neither of these deliveries blocks its lane.
        let (waiting, failed) = (publish(&db, "waiting").await, publish(&db, "not blocking").await);
        delivered!(db, waiting, "charge-card", "waiting", true);
        delivered!(db, failed, "charge-card", "failed", false);

        let lanes = db.outbox.operations().blocked_lanes(10).await.unwrap();
        assert_eq!(lanes.len(), 2, "{lanes:?}");
        let (first, second) = (&lanes[0], &lanes[1]);
        assert_eq!((&*first.key, &*first.handler, first.record_id, first.status), (KEY, "charge-card", of_key[0], DeliveryStatus::Failed));
        assert_eq!((first.waiting, first.attempt, first.due_in, first.error.as_deref()), (2, 4, None, Some("card declined: 7")));
        assert_eq!((&*second.handler, second.record_id, second.status, second.waiting), ("send-mail", of_key[2], DeliveryStatus::Retrying, 0));
        let due = second.due_in.unwrap().as_secs();
        assert!((3500..=3600).contains(&due), "{due}");
        assert_eq!(db.outbox.operations().blocked_lanes(0).await.unwrap().len(), 1);

        run!(db, format!("update outbox_delivery set due_at = {} where status = 'retrying'", in_seconds(&db, -50)));
        assert_eq!(db.outbox.operations().blocked_lanes(2).await.unwrap()[1].due_in, Some(Duration::ZERO));
    }

    async fn handlers_are_paused_and_resumed(db) {
        let operations = db.outbox.operations();
        assert_eq!(operations.resume("mail").await.unwrap(), Change::NotFound);
        assert_eq!(operations.pause("send-mail").await.unwrap(), Change::Applied);
        assert_eq!(operations.pause("send-mail").await.unwrap(), Change::Applied);
        assert_eq!(operations.pause(KEY).await.unwrap(), Change::Applied);
        for bad in ["", "a\0b", &"x".repeat(256)] {
            assert_eq!(operations.pause(bad).await.unwrap(), Change::NotFound);
            assert_eq!(operations.resume(bad).await.unwrap(), Change::NotFound);
        }
        assert_eq!(operations.paused().await.unwrap(), [KEY, "send-mail"]);
        assert_eq!(operations.resume(KEY).await.unwrap(), Change::Applied);
        assert_eq!(operations.paused().await.unwrap(), ["send-mail"]);
    }

}
