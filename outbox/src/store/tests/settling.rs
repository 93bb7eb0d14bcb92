//! What became of records.

use super::{
    completed, database::ids, failure, foreign, older, on_each_database, page, pending, scheduled,
    waiting,
};
use crate::record::DeliveryStatus;
use crate::store::{Batch, DeliveryRow, FetchSql as _, SettleSql as _};

/// Everything that a batch can hold, on three records.
fn mixed(ids: &[i64]) -> Batch {
    Batch {
        completed: vec![ids[0]],
        unhandled: vec![ids[1]],
        split_records: vec![ids[2]],
        new_deliveries: vec![scheduled(ids[2], "mail"), waiting(ids[2], "bill")],
        failures: vec![failure(ids[2], 1)],
        ..Batch::default()
    }
}

on_each_database! {
    async fn finished_records_are_deleted(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("c", 4)]).await;
        let fence = db.own().await;
        db.settle(&fence, &Batch { completed: vec![i[2], i[0]], ..Batch::default() }, false).await;
        assert_eq!(db.numbers("select id from outbox_record").await, [i[1]]);
    }

    async fn finished_records_are_kept_if_that_is_wanted(db) {
        let i = db.publish(&[("a", 3), ("b", 3)]).await;
        let later = db.publish_in(60, 3).await;
        let fence = db.own().await;
        db.settle(&fence, &Batch { completed: vec![later, i[0]], ..Batch::default() }, true).await;
        assert_eq!(db.statuses().await, ["completed", "pending", "completed"]);
        let dated = db.numbers("select id from outbox_record where completed_at is not null order by id").await;
        assert_eq!(dated, [i[0], later]);
    }

    async fn a_batch_of_everything(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("a", 3)]).await;
        let fence = db.own().await;
        db.settle(&fence, &mixed(&i), true).await;
        assert_eq!(db.statuses().await, ["completed", "unhandled", "split"]);
        assert_eq!(db.deliveries().await, [
            format!("{} mail retrying 2/1 blocking it broke: ä", i[2]),
            format!("{} bill waiting 1/0 blocking -", i[2]),
        ]);
        assert_eq!(db.texts("select error from outbox_failure").await, ["attempt 1"]);
        let stored = db.texts("select concat(error_kind, ' ', fingerprint) from outbox_delivery where handler = 'mail'").await;
        assert_eq!(stored, ["failed f1"]);
        let undated = db.texts("select handler from outbox_delivery where due_at is null and first_failed_at is null").await;
        assert_eq!(undated, ["bill"]);
    }

    async fn a_batch_of_who_owns_nothing_changes_nothing(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("a", 3), ("a", 3)]).await;
        let fence = db.own_as(uuid::Uuid::now_v7(), 0).await;
        let row = scheduled(i[3], "mail");
        db.settle(&fence, &Batch { split_records: vec![i[3]], new_deliveries: vec![row.clone()], failures: vec![failure(i[3], 1)], ..Batch::default() }, true).await;
        let before = (db.statuses().await, db.deliveries().await);
        let next = db.own().await;
        for stale in [&fence, &older(&next), &foreign(&next)] {
            for keep in [true, false] {
                let mut batch = mixed(&i);
                batch.changed_deliveries = vec![completed(&row)];
                // So late an attempt would make the first one forgotten.
                batch.failures.push(failure(i[3], 51));
                db.settle(stale, &batch, keep).await;
                db.settle(stale, &Batch { completed: i.clone(), ..Batch::default() }, keep).await;
                assert_eq!((db.statuses().await, db.deliveries().await), before);
                assert_eq!(db.numbers("select attempt from outbox_failure").await, [1]);
            }
        }
        // The same batch of the owner does change it all.
        db.settle(&next, &mixed(&i), true).await;
        assert_eq!(db.statuses().await, ["completed", "unhandled", "split", "split"]);
    }

    async fn a_batch_changes_only_the_partitions_that_are_owned(db) {
        let i = db.publish(&[("a", 3), ("b", 4)]).await;
        let mut fence = db.own().await;
        fence.leases.retain(|lease| lease.part == 4);
        db.settle(&fence, &Batch { completed: i.clone(), ..Batch::default() }, true).await;
        assert_eq!(db.statuses().await, ["pending", "completed"]);
        db.settle(&fence, &Batch { unhandled: i.clone(), ..Batch::default() }, true).await;
        assert_eq!(db.statuses().await, ["pending", "completed"]);
        let split = Batch { split_records: vec![i[0]], new_deliveries: vec![scheduled(i[0], "mail")], failures: vec![failure(i[0], 1)], ..Batch::default() };
        db.settle(&fence, &split, true).await;
        assert_eq!(db.statuses().await, ["pending", "completed"]);
        assert!(db.deliveries().await.is_empty());
        assert!(db.texts("select handler from outbox_failure").await.is_empty());
    }

    async fn the_same_batch_twice_is_the_same_as_once(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("a", 3)]).await;
        let fence = db.own().await;
        db.settle(&fence, &mixed(&i), true).await;
        let once = (db.statuses().await, db.deliveries().await);
        db.settle(&fence, &mixed(&i), true).await;
        assert_eq!((db.statuses().await, db.deliveries().await), once);
        // Nor does what is over come back.
        let again = Batch { unhandled: vec![i[0]], completed: vec![i[1], i[2]], ..Batch::default() };
        db.settle(&fence, &again, true).await;
        assert_eq!((db.statuses().await, db.deliveries().await), once);
        assert_eq!(db.numbers("select count(*) from outbox_failure").await, [1]);
    }

    async fn a_record_that_is_split_again_keeps_the_deliveries_that_it_has(db) {
        let i = db.publish(&[("a", 3)]).await;
        let fence = db.own().await;
        let split = |new_deliveries| Batch { split_records: i.clone(), new_deliveries, ..Batch::default() };
        db.settle(&fence, &split(vec![scheduled(i[0], "mail")]), false).await;
        db.run("update outbox_record set status = 'pending'").await;
        db.settle(&fence, &split(vec![waiting(i[0], "mail"), waiting(i[0], "bill")]), false).await;
        assert_eq!(db.deliveries().await, [
            format!("{} mail retrying 2/1 blocking it broke: ä", i[0]),
            format!("{} bill waiting 1/0 blocking -", i[0]),
        ]);
    }

    async fn lanes_go_on_in_the_order_of_the_rows(db) {
        let i = db.publish(&[("a", 3), ("a", 3), ("a", 3)]).await;
        let fence = db.own().await;
        // Neither the order of the ids nor that of the list of records.
        let new_deliveries = vec![scheduled(i[1], "mail"), waiting(i[2], "mail"), waiting(i[0], "mail")];
        db.settle(&fence, &Batch { split_records: vec![i[2], i[0], i[1]], new_deliveries, ..Batch::default() }, false).await;
        assert_eq!(db.numbers("select record_id from outbox_delivery order by id").await, [i[1], i[2], i[0]]);
    }

    async fn a_delivery_changes_only_if_it_is_as_it_was_read(db) {
        let i = db.publish(&[("a", 3), ("b", 3)]).await;
        let fence = db.own().await;
        let rows = vec![scheduled(i[0], "mail"), scheduled(i[1], "mail")];
        db.settle(&fence, &Batch { split_records: i.clone(), new_deliveries: rows, ..Batch::default() }, false).await;
        let changed = |was, status| {
            let row = DeliveryRow {
                status, expected_attempt: was, attempt: 3, failure_count: 2, error: None, blocking: false, due_in: None, ..scheduled(i[0], "mail")
            };
            Batch { changed_deliveries: vec![row], ..Batch::default() }
        };
        let unchanged = db.deliveries().await;
        db.settle(&fence, &changed(1, DeliveryStatus::Failed), false).await;
        db.settle(&fence, &changed(3, DeliveryStatus::Failed), false).await;
        assert_eq!(db.deliveries().await, unchanged);
        db.settle(&fence, &changed(2, DeliveryStatus::Failed), false).await;
        // Only this one, and the error of before stays where there is no new one.
        assert_eq!(db.deliveries().await, [format!("{} mail failed 3/2 free it broke: ä", i[0]), unchanged[1].clone()]);
        assert_eq!(db.numbers("select record_id from outbox_delivery where due_at is null").await, [i[0]]);
        // What has failed is nothing that a late batch could change.
        db.settle(&fence, &changed(3, DeliveryStatus::Completed), false).await;
        assert_eq!(db.texts("select status from outbox_delivery order by id").await, ["failed", "retrying"]);
    }

    async fn unhandled_records_are_put_back(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("c", 4), ("d", 5)]).await;
        let mut fence = db.own().await;
        let parts: Vec<u16> = (0..64).collect();
        let mut connection = db.pool.acquire().await.unwrap();
        assert!(Db::unhandled_events(&mut connection, &db.sql, &parts).await.unwrap().is_empty());
        drop(connection);
        db.settle(&fence, &Batch { unhandled: i.clone(), ..Batch::default() }, false).await;
        db.run(&format!("update outbox_record set event = 'other' where id = {}", i[1])).await;

        let mut connection = db.pool.acquire().await.unwrap();
        let mut events = Db::unhandled_events(&mut connection, &db.sql, &parts).await.unwrap();
        events.sort();
        assert_eq!(events, ["order.created", "other"]);
        assert_eq!(Db::unhandled_events(&mut connection, &db.sql, &[4]).await.unwrap(), ["order.created"]);
        assert!(Db::unhandled_events(&mut connection, &db.sql, &[]).await.unwrap().is_empty());

        let lost = Db::requeue_unhandled(&mut connection, &db.sql, &older(&fence), "order.created", 9).await.unwrap();
        assert_eq!(lost, 0);
        fence.leases.retain(|lease| lease.part != 5);
        let first = Db::requeue_unhandled(&mut connection, &db.sql, &fence, "order.created", 1).await.unwrap();
        assert_eq!(first, 1);
        let found = Db::pending_records(&mut connection, &db.sql, pending(&[page(3), page(4)], &[], 9, 9)).await.unwrap();
        assert_eq!(ids(&found), [i[0]]);
        let rest = Db::requeue_unhandled(&mut connection, &db.sql, &fence, "order.created", 9).await.unwrap();
        assert_eq!(rest, 1);
        drop(connection);
        assert_eq!(db.statuses().await, ["pending", "unhandled", "pending", "unhandled"]);
    }

    async fn settling_works_on_a_relaxed_connection(db) {
        let i = db.publish(&[("a", 3)]).await;
        let fence = db.own().await;
        let mut connection = db.pool.acquire().await.unwrap();
        Db::configure(&mut connection, true).await.unwrap();
        let batch = Batch { completed: i, ..Batch::default() };
        Db::settle(&mut connection, &db.sql, &fence, &batch, false).await.unwrap();
        drop(connection);
        assert!(db.statuses().await.is_empty());
    }
}

/// A batch that was found to be of the owner is written before somebody else owns its partitions:
/// what it parks would be missed by who has looked already.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn who_takes_over_waits_for_the_end_of_a_batch() {
    use crate::store::LeaseSql as _;

    type Db = sqlx::Postgres;
    let db = super::database::postgres().await;
    let id = db.publish(&[("a", 3)]).await[0];
    let fence = db.own_as(uuid::Uuid::now_v7(), 0).await;
    let mut in_its_way = db.pool.begin().await.unwrap();
    sqlx::query("select 1 from outbox_record for update")
        .execute(&mut *in_its_way)
        .await
        .unwrap();
    let batch = Batch {
        split_records: vec![id],
        new_deliveries: vec![scheduled(id, "mail")],
        ..Batch::default()
    };
    let mut settler = db.pool.acquire().await.unwrap();
    let settle = Db::settle(&mut settler, &db.sql, &fence, &batch, false);
    let take_over = async {
        let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        while db.numbers(waits).await != [1] {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let mut other = db.pool.begin().await.unwrap();
        sqlx::query("set local lock_timeout = '200ms'")
            .execute(&mut *other)
            .await
            .unwrap();
        let parts: Vec<u16> = (0..64).collect();
        let new = uuid::Uuid::now_v7();
        let taken = Db::take_partitions(&mut other, &db.sql, new, &parts, 60_000_000).await;
        taken.unwrap();
        assert_eq!(db.leases_of(fence.owner).await.len(), 64);
        let buried = Db::reap_expired(&mut other, &db.sql, fence.owner).await;
        assert!(buried.is_err(), "it was buried");
        drop(other);
        in_its_way.rollback().await.unwrap();
    };
    let (settled, ()) = tokio::join!(settle, take_over);
    settled.unwrap();
    let parked = "select count(*) from outbox_delivery";
    assert_eq!(db.numbers(parked).await, [1]);
    let mut other = db.pool.acquire().await.unwrap();
    Db::reap_expired(&mut other, &db.sql, fence.owner)
        .await
        .unwrap();
    assert!(db.leases_of(fence.owner).await.is_empty());
}
