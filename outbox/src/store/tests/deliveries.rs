//! The statements on blocking deliveries and their lanes.

use super::{
    completed,
    database::{lane, names},
    on_each_database, p, retrying, waiting,
};
use crate::record::{DeliveryStatus, Partition};
use crate::store::{Batch, DeliveryRow, DeliverySql as _, LaneName, RunnableOrder};

/// Lane (3, a, mail) has four deliveries, lane (3, a, bill) has one that does not block, and the first
/// delivery of lane (4, b, mail) is waiting.
fn parked(i: &[i64]) -> Batch {
    let free = DeliveryRow {
        blocking: false,
        ..retrying(i[0], "bill")
    };
    let other = |row: DeliveryRow| DeliveryRow {
        partition: p(4),
        key: "b".to_owned(),
        ..row
    };
    Batch {
        split_records: i.to_vec(),
        new_deliveries: vec![
            retrying(i[0], "mail"),
            free,
            waiting(i[1], "mail"),
            other(waiting(i[4], "mail")),
            waiting(i[2], "mail"),
            other(waiting(i[5], "mail")),
            waiting(i[3], "mail"),
        ],
        ..Batch::default()
    }
}

const RECORDS: [(&str, u16); 6] = [("a", 3), ("a", 3), ("a", 3), ("a", 3), ("b", 4), ("b", 4)];

on_each_database! {
    async fn only_blocked_lanes_are_returned(db) {
        let i = db.publish(&RECORDS).await;
        db.settle(&db.own().await, &parked(&i), false).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let lanes = [
            lane(3, "a", "mail"), lane(3, "a", "bill"), lane(4, "b", "mail"), lane(4, "a", "mail"), lane(3, "A", "mail"),
            lane(3, "a", "Mail"), lane(3, "a ", "mail"), lane(3, "ä", "mail"),
        ];
        let mut blocked = Db::blocked_among(&mut connection, &db.sql, &lanes).await.unwrap();
        blocked.sort_by_key(|lane| lane.partition);
        assert_eq!(blocked, [lane(3, "a", "mail"), lane(4, "b", "mail")]);
        assert!(Db::blocked_among(&mut connection, &db.sql, &[]).await.unwrap().is_empty());
    }

    async fn only_keys_with_a_blocking_delivery_are_returned(db) {
        let i = db.publish(&RECORDS).await;
        let fence = db.own().await;
        let mut batch = parked(&i);
        db.settle(&fence, &batch, false).await;
        let keys = async |partitions: &[Partition], per_partition| {
            let mut connection = db.pool.acquire().await.unwrap();
            let mut keys = Db::blocking_keys(&mut connection, &db.sql, partitions, per_partition).await.unwrap();
            keys.sort_unstable();
            keys
        };
        let named = |number, key: &str| (p(number), key.to_owned());
        // Each key once, however many of its deliveries block.
        assert_eq!(keys(&[1, 3, 4].map(p), 9).await, [named(3, "a"), named(4, "b")]);
        assert_eq!(keys(&[4].map(p), 9).await, [named(4, "b")]);
        assert!(keys(&[5].map(p), 9).await.is_empty());
        assert!(keys(&[], 9).await.is_empty());

        // Deliveries of another handler, and keys that a collation could treat as equal.
        let more = db.publish(&[("a", 3), ("A", 3), ("a ", 3), ("ä", 3), ("c", 3)]).await;
        batch = Batch {
            split_records: more.clone(),
            new_deliveries: ["a", "A", "a ", "ä"].iter().zip(&more)
                .map(|(key, id)| DeliveryRow { key: (*key).to_owned(), ..waiting(*id, "bill") })
                .collect(),
            ..Batch::default()
        };
        batch.new_deliveries.push(DeliveryRow { key: "c".to_owned(), blocking: false, ..retrying(more[4], "bill") });
        db.settle(&fence, &batch, false).await;
        let all = [named(3, "A"), named(3, "a"), named(3, "a "), named(3, "ä"), named(4, "b")];
        assert_eq!(keys(&[3, 4].map(p), 9).await, all);
        assert_eq!(keys(&[3, 4].map(p), 4).await, all);
        // At most this number of each partition.
        assert_eq!(keys(&[3, 4].map(p), 3).await.iter().filter(|(partition, _)| *partition == p(3)).count(), 3);
        assert_eq!(keys(&[3, 4].map(p), 1).await.len(), 2);
    }

    async fn a_partition_with_free_deliveries_only_is_not_blocked(db) {
        let i = db.publish(&[("a", 3)]).await;
        let free = DeliveryRow { blocking: false, ..retrying(i[0], "mail") };
        db.settle(&db.own().await, &Batch { split_records: i, new_deliveries: vec![free], ..Batch::default() }, false).await;
        let mut connection = db.pool.acquire().await.unwrap();
        assert!(Db::blocking_keys(&mut connection, &db.sql, &[3].map(p), 9).await.unwrap().is_empty());
        assert!(Db::blocked_among(&mut connection, &db.sql, &[lane(3, "a", "mail")]).await.unwrap().is_empty());
    }

    async fn lanes_are_read_from_their_first_delivery(db) {
        let i = db.publish(&RECORDS).await;
        db.settle(&db.own().await, &parked(&i), false).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let both = [lane(4, "b", "mail"), lane(3, "a", "mail"), lane(3, "a", "bill")];
        let found = Db::lane_heads(&mut connection, &db.sql, &both, 3).await.unwrap();
        assert_eq!(names(&found), [(i[4], "mail"), (i[5], "mail"), (i[0], "mail"), (i[1], "mail"), (i[2], "mail")]);
        let has_followers: Vec<bool> = found.iter().map(|delivery| delivery.has_followers).collect();
        // In the second lane, a delivery follows that is beyond the limit.
        assert_eq!(has_followers, [true, false, true, true, true]);
        let waiting: Vec<bool> = found.iter().map(|delivery| delivery.is_waiting).collect();
        assert_eq!(waiting, [true, true, false, true, true]);
        assert!(found.iter().all(|delivery| delivery.blocking));
        assert_eq!(found[0].record.record.key, "b");
        assert_eq!((found[0].attempt.number, found[0].attempt.first_failed_at), (1, None));

        let all = Db::lane_heads(&mut connection, &db.sql, &both[1..], 4).await.unwrap();
        assert_eq!(names(&all).len(), 4);
        assert!(!all[3].has_followers);
        assert!(Db::lane_heads(&mut connection, &db.sql, &[], 4).await.unwrap().is_empty());
        // More lanes than one statement reads.
        let many: Vec<LaneName> = (0..150).map(|n| lane(3, &format!("no {n}"), "mail")).chain(both).collect();
        assert_eq!(Db::lane_heads(&mut connection, &db.sql, &many, 3).await.unwrap(), found);
    }

    async fn a_lane_is_runnable_when_its_first_delivery_waits(db) {
        let fence = db.own().await;
        for order in [RunnableOrder::OldestFirst, RunnableOrder::EveryLane] {
            db.run("delete from outbox_delivery").await;
            let i = db.publish(&RECORDS).await;
            let batch = parked(&i);
            db.settle(&fence, &batch, false).await;
            let mut connection = db.pool.acquire().await.unwrap();
            let first = Db::runnable_lanes(&mut connection, &db.sql, &[3, 4].map(p), &["mail", "bill"], order, 9).await.unwrap();
            // In (3, a, mail) a retrying delivery comes before the waiting ones.
            assert_eq!(first, [lane(4, "b", "mail")]);
            for (partitions, handlers) in [(&[p(3)][..], &["mail"][..]), (&[p(3), p(4)], &["bill"]), (&[p(3), p(4)], &[]), (&[], &["mail"])] {
                let none = Db::runnable_lanes(&mut connection, &db.sql, partitions, handlers, order, 9).await.unwrap();
                assert!(none.is_empty(), "{partitions:?} {handlers:?}");
            }
            drop(connection);

            let over = Batch { changed_deliveries: vec![completed(&batch.new_deliveries[0])], ..Batch::default() };
            db.settle(&fence, &over, false).await;
            let mut connection = db.pool.acquire().await.unwrap();
            let both = Db::runnable_lanes(&mut connection, &db.sql, &[3, 4].map(p), &["mail"], order, 9).await.unwrap();
            // Each lane once, in the order of the ids of their first deliveries.
            assert_eq!(both, [lane(3, "a", "mail"), lane(4, "b", "mail")]);
            let one = Db::runnable_lanes(&mut connection, &db.sql, &[3, 4].map(p), &["mail"], order, 1).await.unwrap();
            assert_eq!(one, [lane(3, "a", "mail")]);
            drop(connection);

            // A failed delivery that blocks its lane comes before them too.
            let blocks = DeliveryRow { status: DeliveryStatus::Failed, blocking: true, ..completed(&batch.new_deliveries[2]) };
            db.settle(&fence, &Batch { changed_deliveries: vec![blocks], ..Batch::default() }, false).await;
            let mut connection = db.pool.acquire().await.unwrap();
            let one = Db::runnable_lanes(&mut connection, &db.sql, &[3, 4].map(p), &["mail"], order, 9).await.unwrap();
            assert_eq!(one, [lane(4, "b", "mail")]);
            drop(connection);
        }
    }
}
