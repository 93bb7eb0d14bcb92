//! When deliveries failed: in lists, filters and counts.

use std::time::Duration;

use outbox::operations::{DeliveryStatus, Filter, Order, Paging, Precision, RecordStatus};
use outbox_tests::on_each_database;

use crate::rows::{
    OrderPaid, deliver, delivered, in_seconds, publish, publish_event, publish_many, run,
};

/// Sets the time of the last failure of a record's deliveries.
macro_rules! failed_ago {
    ($db:ident, $record:expr, $seconds:expr) => {
        run!(
            $db,
            format!(
                "update outbox_delivery set failed_at = {} where record_id = {}",
                in_seconds(&$db, -$seconds),
                $record
            )
        )
    };
}

/// The record ids of all pages with one item each.
macro_rules! in_order {
    ($db:ident, $filter:expr, $paging:expr) => {{
        let (mut paging, mut ids) = ($paging.ordered_by(Order::Failed), Vec::new());
        loop {
            let page = $db
                .outbox
                .operations()
                .list(&$filter, paging)
                .await
                .unwrap();
            ids.extend(page.items.iter().map(|item| item.record_id));
            let Some(next) = page.next else { break ids };
            // The cursor passes through text, as in a URL.
            paging = paging.after(next.to_string().parse().unwrap());
        }
    }};
}

on_each_database! {
    async fn a_list_is_ordered_by_the_time_of_the_last_failure(db) {
        let mut ids = Vec::new();
        for n in 0..6 {
            ids.push(publish(&db, &format!("k{n}")).await);
        }
        for (n, seconds) in [(0, 50), (1, 300), (2, 10), (3, 100)] {
            delivered!(db, ids[n], "charge-card", "failed", true);
            failed_ago!(db, ids[n], seconds);
        }
        // At the same microsecond as another: the id decides.
        run!(db, format!("update outbox_delivery set failed_at = {} where record_id in ({}, {})", in_seconds(&db, -100), ids[0], ids[3]));
        delivered!(db, ids[4], "charge-card", "retrying", true);
        failed_ago!(db, ids[4], 20);
        // It waits, and never failed.
        delivered!(db, ids[5], "charge-card", "waiting", true);
        run!(db, format!("update outbox_delivery set failed_at = null where record_id = {}", ids[5]));

        let newest = [ids[2], ids[3], ids[0], ids[1]];
        let mut oldest = newest;
        oldest.reverse();
        let failed = Filter::new().status(DeliveryStatus::Failed);
        for limit in [1, 2, 3, 4, 1000] {
            assert_eq!(in_order!(db, failed, Paging::newest(limit)), newest, "{limit}");
            assert_eq!(in_order!(db, failed, Paging::oldest(limit)), oldest, "{limit}");
        }
        // Without a status, the list has deliveries that failed permanently.
        assert_eq!(in_order!(db, Filter::new(), Paging::newest(2)), newest);
        assert_eq!(in_order!(db, Filter::new().status(DeliveryStatus::Retrying), Paging::newest(2)), [ids[4]]);
        assert_eq!(in_order!(db, Filter::new().status(DeliveryStatus::Waiting), Paging::newest(2)), [0; 0]);
        assert_eq!(in_order!(db, Filter::new().status(RecordStatus::Split), Paging::newest(2)), [0; 0]);
        assert_eq!(in_order!(db, failed.clone().key("k3"), Paging::newest(2)), [ids[3]]);
    }

    async fn a_filter_selects_by_the_time_of_the_last_failure(db) {
        let mut ids = Vec::new();
        for (n, seconds) in [30, 900, 9000].into_iter().enumerate() {
            ids.push(publish(&db, "k").await);
            delivered!(db, ids[n], "charge-card", if n == 0 { "retrying" } else { "failed" }, true);
            failed_ago!(db, ids[n], seconds);
        }
        publish(&db, "never failed").await;
        let operations = db.outbox.operations();
        let since = |seconds| Filter::new().failed_since(Duration::from_secs(seconds));
        for (filter, expected) in [
            // Records that have such a delivery.
            (since(600), &ids[..1]),
            (since(1800), &ids[..2]),
            (since(99_000), &ids[..]),
            (since(0), &[][..]),
            (since(1800).status(DeliveryStatus::Failed), &ids[1..2]),
            (since(1800).status(DeliveryStatus::Retrying), &ids[..1]),
            (since(1800).handler("send-mail"), &[]),
        ] {
            let listed = operations.list(&filter, Paging::oldest(9)).await.unwrap();
            let listed: Vec<i64> = listed.items.iter().map(|item| item.record_id).collect();
            assert_eq!(listed, expected, "{filter:?}");
            assert_eq!(operations.count(&filter).await.unwrap(), u64::try_from(expected.len()).unwrap());
        }
        assert_eq!(operations.replay_all(&since(1800)).await.unwrap(), 1);
        let replayed = operations.inspect(ids[1]).await.unwrap().unwrap();
        assert_eq!(replayed.deliveries[0].status, DeliveryStatus::Retrying);
        assert!(replayed.deliveries[0].failed_at.is_some(), "a replay keeps the time");
    }

    async fn events_and_causes_have_the_times_of_their_failures(db) {
        let (mut created, mut paid) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            created.push(publish(&db, "c").await);
        }
        for _ in 0..6 {
            paid.push(publish_event(&db, &OrderPaid { order_id: "p".to_owned() }).await);
        }
        let first = created[0];
        for (record, seconds) in [(first, 40), (created[1], 4000), (created[2], 400), (paid[0], 70)] {
            delivered!(db, record, "charge-card", "failed", true);
            failed_ago!(db, record, seconds);
        }
        run!(db, format!("update outbox_delivery set fingerprint = 'timeout' where record_id = {first}"));
        // A retrying delivery is neither a failed one of the event nor of the cause.
        delivered!(db, created[3], "charge-card", "retrying", true);
        failed_ago!(db, created[3], 1);

        let operations = db.outbox.operations();
        let now = operations.inspect(first).await.unwrap().unwrap().deliveries[0].failed_at.unwrap() + Duration::from_secs(40);
        let ago = |time: Option<jiff::Timestamp>| {
            time.map(|time| (now.duration_since(time).as_secs() + 5) / 10 * 10)
        };
        for precision in [Precision::Exact, Precision::Estimated] {
            let events = operations.counts_by_event(precision).await.unwrap().items;
            let seen: Vec<_> = events.iter().map(|event| (&*event.event, event.failed, event.pending, ago(event.newest_failed_at))).collect();
            // The event with the most unfinished records and deliveries first.
            assert_eq!(seen, [("order.paid", 1, 5, Some(70)), ("order.created", 3, 0, Some(40))]);
            let errors = operations.counts_by_error(precision).await.unwrap().items;
            let seen: Vec<_> = errors.iter().map(|error| (&*error.fingerprint, error.count, ago(error.oldest_failed_at), ago(error.newest_failed_at))).collect();
            assert_eq!(seen, [("declined", 3, Some(4000), Some(70)), ("timeout", 1, Some(40), Some(40))]);
        }
    }

    async fn an_estimate_has_the_newest_failure_whatever_its_id(db) {
        publish_many(&db, "k", 10_050).await;
        run!(db, deliver(&db, "1 = 1", "charge-card", "failed", true));
        // The newest failure has neither a low nor a high id.
        let middle = crate::rows::number!(db, "select min(id) + 5025 from outbox_record".to_owned());
        run!(db, format!("update outbox_delivery set failed_at = {}", in_seconds(&db, -5000)));
        failed_ago!(db, middle, 30);
        let operations = db.outbox.operations();
        let errors = operations.counts_by_error(Precision::Estimated).await.unwrap();
        let events = operations.counts_by_event(Precision::Estimated).await.unwrap();
        assert!(!errors.exact && !events.exact);
        let newest = operations.inspect(middle).await.unwrap().unwrap().deliveries[0].failed_at;
        assert_eq!(errors.items[0].newest_failed_at, newest);
        assert_eq!(events.items[0].newest_failed_at, newest);
    }
}
