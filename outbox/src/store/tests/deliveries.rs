//! Lanes in which something blocks.

use super::{
    completed,
    database::{lane, names},
    on_each_database, scheduled, waiting,
};
use crate::record::DeliveryStatus;
use crate::store::{Batch, DeliveryRow, DeliverySql as _, LaneName, RunnableOrder};

/// Lane (3, a, mail) with four deliveries, (3, a, bill) with one that blocks nothing, and
/// (4, b, mail) whose first is waiting.
fn parked(i: &[i64]) -> Batch {
    let free = DeliveryRow {
        blocking: false,
        ..scheduled(i[0], "bill")
    };
    let other = |row: DeliveryRow| DeliveryRow {
        part: 4,
        key: "b".to_owned(),
        ..row
    };
    Batch {
        split_records: i.to_vec(),
        new_deliveries: vec![
            scheduled(i[0], "mail"),
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
    async fn blocked_lanes_are_told_from_others(db) {
        let i = db.publish(&RECORDS).await;
        db.settle(&db.own().await, &parked(&i), false).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let asked = [
            lane(3, "a", "mail"), lane(3, "a", "bill"), lane(4, "b", "mail"), lane(4, "a", "mail"), lane(3, "A", "mail"),
            lane(3, "a", "Mail"), lane(3, "a ", "mail"), lane(3, "ä", "mail"),
        ];
        let mut blocked = Db::blocked_among(&mut connection, &db.sql, &asked).await.unwrap();
        blocked.sort_by_key(|lane| lane.part);
        assert_eq!(blocked, [lane(3, "a", "mail"), lane(4, "b", "mail")]);
        assert!(Db::blocked_among(&mut connection, &db.sql, &[]).await.unwrap().is_empty());
    }

    async fn keys_in_which_something_blocks_are_told_from_others(db) {
        let i = db.publish(&RECORDS).await;
        let fence = db.own().await;
        let mut batch = parked(&i);
        db.settle(&fence, &batch, false).await;
        let keys = async |parts: &[u16], per_part| {
            let mut connection = db.pool.acquire().await.unwrap();
            let mut keys = Db::blocking_keys(&mut connection, &db.sql, parts, per_part).await.unwrap();
            keys.sort_unstable();
            keys
        };
        let named = |part: u16, key: &str| (part, key.to_owned());
        // Each once, however much of it blocks.
        assert_eq!(keys(&[1, 3, 4], 9).await, [named(3, "a"), named(4, "b")]);
        assert_eq!(keys(&[4], 9).await, [named(4, "b")]);
        assert!(keys(&[5], 9).await.is_empty());
        assert!(keys(&[], 9).await.is_empty());

        // Of another handler, and keys that some databases would take for the same.
        let more = db.publish(&[("a", 3), ("A", 3), ("a ", 3), ("ä", 3), ("c", 3)]).await;
        batch = Batch {
            split_records: more.clone(),
            new_deliveries: ["a", "A", "a ", "ä"].iter().zip(&more)
                .map(|(key, id)| DeliveryRow { key: (*key).to_owned(), ..waiting(*id, "bill") })
                .collect(),
            ..Batch::default()
        };
        batch.new_deliveries.push(DeliveryRow { key: "c".to_owned(), blocking: false, ..scheduled(more[4], "bill") });
        db.settle(&fence, &batch, false).await;
        let all = [named(3, "A"), named(3, "a"), named(3, "a "), named(3, "ä"), named(4, "b")];
        assert_eq!(keys(&[3, 4], 9).await, all);
        assert_eq!(keys(&[3, 4], 4).await, all);
        // So many of each partition.
        assert_eq!(keys(&[3, 4], 3).await.iter().filter(|(part, _)| *part == 3).count(), 3);
        assert_eq!(keys(&[3, 4], 1).await.len(), 2);
    }

    async fn a_partition_with_free_deliveries_only_is_not_blocked(db) {
        let i = db.publish(&[("a", 3)]).await;
        let free = DeliveryRow { blocking: false, ..scheduled(i[0], "mail") };
        db.settle(&db.own().await, &Batch { split_records: i, new_deliveries: vec![free], ..Batch::default() }, false).await;
        let mut connection = db.pool.acquire().await.unwrap();
        assert!(Db::blocking_keys(&mut connection, &db.sql, &[3], 9).await.unwrap().is_empty());
        assert!(Db::blocked_among(&mut connection, &db.sql, &[lane(3, "a", "mail")]).await.unwrap().is_empty());
    }

    async fn lanes_are_read_from_their_beginning(db) {
        let i = db.publish(&RECORDS).await;
        db.settle(&db.own().await, &parked(&i), false).await;
        let mut connection = db.pool.acquire().await.unwrap();
        let both = [lane(4, "b", "mail"), lane(3, "a", "mail"), lane(3, "a", "bill")];
        let found = Db::lane_heads(&mut connection, &db.sql, &both, 3).await.unwrap();
        assert_eq!(names(&found), [(i[4], "mail"), (i[5], "mail"), (i[0], "mail"), (i[1], "mail"), (i[2], "mail")]);
        let followed: Vec<bool> = found.iter().map(|delivery| delivery.followed).collect();
        // The last of the second lane has one behind it that was not asked for.
        assert_eq!(followed, [true, false, true, true, true]);
        let waiting: Vec<bool> = found.iter().map(|delivery| delivery.waiting).collect();
        assert_eq!(waiting, [true, true, false, true, true]);
        assert!(found.iter().all(|delivery| delivery.blocking));
        assert_eq!(found[0].fetched.record.key, "b");
        assert_eq!((found[0].attempt.number, found[0].attempt.first_failed_at), (1, None));

        let all = Db::lane_heads(&mut connection, &db.sql, &both[1..], 4).await.unwrap();
        assert_eq!(names(&all).len(), 4);
        assert!(!all[3].followed);
        assert!(Db::lane_heads(&mut connection, &db.sql, &[], 4).await.unwrap().is_empty());
        // As many as one statement never has.
        let many: Vec<LaneName> = (0..150).map(|n| lane(3, &format!("no {n}"), "mail")).chain(both).collect();
        assert_eq!(Db::lane_heads(&mut connection, &db.sql, &many, 3).await.unwrap(), found);
    }

    async fn a_lane_is_runnable_when_its_first_delivery_waits(db) {
        let fence = db.own().await;
        for expected in [RunnableOrder::OldestFirst, RunnableOrder::EveryLane] {
            db.run("delete from outbox_delivery").await;
            let i = db.publish(&RECORDS).await;
            let batch = parked(&i);
            db.settle(&fence, &batch, false).await;
            let mut connection = db.pool.acquire().await.unwrap();
            let first = Db::runnable_lanes(&mut connection, &db.sql, &[3, 4], &["mail", "bill"], expected, 9).await.unwrap();
            // In (3, a, mail) a scheduled one stands before those that wait.
            assert_eq!(first, [lane(4, "b", "mail")]);
            for (parts, handlers) in [(&[3][..], &["mail"][..]), (&[3, 4], &["bill"]), (&[3, 4], &[]), (&[], &["mail"])] {
                let none = Db::runnable_lanes(&mut connection, &db.sql, parts, handlers, expected, 9).await.unwrap();
                assert!(none.is_empty(), "{parts:?} {handlers:?}");
            }
            drop(connection);

            let over = Batch { changed_deliveries: vec![completed(&batch.new_deliveries[0])], ..Batch::default() };
            db.settle(&fence, &over, false).await;
            let mut connection = db.pool.acquire().await.unwrap();
            let both = Db::runnable_lanes(&mut connection, &db.sql, &[3, 4], &["mail"], expected, 9).await.unwrap();
            // Each lane once, in the order in which they began to wait.
            assert_eq!(both, [lane(3, "a", "mail"), lane(4, "b", "mail")]);
            let one = Db::runnable_lanes(&mut connection, &db.sql, &[3, 4], &["mail"], expected, 1).await.unwrap();
            assert_eq!(one, [lane(3, "a", "mail")]);
            drop(connection);

            // One that failed for good and still blocks stands before them too.
            let blocks = DeliveryRow { status: DeliveryStatus::Failed, blocking: true, ..completed(&batch.new_deliveries[2]) };
            db.settle(&fence, &Batch { changed_deliveries: vec![blocks], ..Batch::default() }, false).await;
            let mut connection = db.pool.acquire().await.unwrap();
            let one = Db::runnable_lanes(&mut connection, &db.sql, &[3, 4], &["mail"], expected, 9).await.unwrap();
            assert_eq!(one, [lane(4, "b", "mail")]);
            drop(connection);
        }
    }
}
