//! The statements that settle batches.

use super::{
    completed, database::ids, every_partition, failure, on_each_database, p, page, pending,
    retrying, waiting, with_old_epochs, with_other_owner,
};
use crate::record::DeliveryStatus;
use crate::store::{Batch, DeliveryRow, Fence, FetchSql as _, LeaseSql as _, Role, SettleSql as _};

/// A batch with every kind of change of records, on three records.
fn mixed(ids: &[i64]) -> Batch {
    Batch {
        completed: vec![ids[0]],
        unhandled: vec![ids[1]],
        split_records: vec![ids[2]],
        new_deliveries: vec![retrying(ids[2], "mail"), waiting(ids[2], "bill")],
        failures: vec![failure(ids[2], 1)],
        ..Batch::default()
    }
}

on_each_database! {
    async fn completed_records_are_deleted(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("c", 4)]).await;
        let fence = db.own().await;
        db.settle(&fence, &Batch { completed: vec![i[2], i[0]], ..Batch::default() }, false).await;
        assert_eq!(db.numbers("select id from outbox_record").await, [i[1]]);
    }

    async fn completed_records_are_kept_if_configured(db) {
        let i = db.publish(&[("a", 3), ("b", 3)]).await;
        let later = db.publish_in(60, 3).await;
        let fence = db.own().await;
        db.settle(&fence, &Batch { completed: vec![later, i[0]], ..Batch::default() }, true).await;
        assert_eq!(db.statuses().await, ["completed", "pending", "completed"]);
        let dated = db.numbers("select id from outbox_record where completed_at is not null order by id").await;
        assert_eq!(dated, [i[0], later]);
    }

    async fn one_batch_can_hold_every_kind_of_change(db) {
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

    async fn a_batch_without_a_valid_lease_changes_nothing(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("a", 3), ("a", 3)]).await;
        let fence = db.own_as(uuid::Uuid::now_v7(), 0).await;
        let row = retrying(i[3], "mail");
        db.settle(&fence, &Batch { split_records: vec![i[3]], new_deliveries: vec![row.clone()], failures: vec![failure(i[3], 1)], ..Batch::default() }, true).await;
        let before = (db.statuses().await, db.deliveries().await);
        let next = db.own().await;
        for stale in [&fence, &with_old_epochs(&next), &with_other_owner(&next)] {
            for keep in [true, false] {
                let mut batch = mixed(&i);
                batch.changed_deliveries = vec![completed(&row)];
                // Attempt 51 would delete the failure of attempt 1.
                batch.failures.push(failure(i[3], 51));
                assert_eq!(db.settle(stale, &batch, keep).await, stale.leases);
                let completed = Batch { completed: i.clone(), ..Batch::default() };
                assert_eq!(db.settle(stale, &completed, keep).await, stale.leases);
                assert_eq!((db.statuses().await, db.deliveries().await), before);
                assert_eq!(db.numbers("select attempt from outbox_failure").await, [1]);
            }
        }
        // With the owner's fence, the same batch is written.
        assert!(db.settle(&next, &mixed(&i), true).await.is_empty());
        assert_eq!(db.statuses().await, ["completed", "unhandled", "split", "split"]);
    }

    async fn a_batch_changes_only_owned_partitions(db) {
        let i = db.publish(&[("a", 3), ("b", 4)]).await;
        let mut fence = db.own().await;
        fence.leases.retain(|lease| lease.partition == p(4));
        db.settle(&fence, &Batch { completed: i.clone(), ..Batch::default() }, true).await;
        assert_eq!(db.statuses().await, ["pending", "completed"]);
        db.settle(&fence, &Batch { unhandled: i.clone(), ..Batch::default() }, true).await;
        assert_eq!(db.statuses().await, ["pending", "completed"]);
        let split = Batch { split_records: vec![i[0]], new_deliveries: vec![retrying(i[0], "mail")], failures: vec![failure(i[0], 1)], ..Batch::default() };
        db.settle(&fence, &split, true).await;
        assert_eq!(db.statuses().await, ["pending", "completed"]);
        assert!(db.deliveries().await.is_empty());
        assert!(db.texts("select handler from outbox_failure").await.is_empty());
    }

    async fn only_lost_leases_of_a_batch_are_refused(db) {
        let i = db.publish(&[("a", 3), ("b", 4), ("c", 3), ("d", 4)]).await;
        let fence = db.own().await;
        let lost = fence.leases.iter().copied().filter(|lease| lease.partition == p(3)).collect();
        let lost = Fence { owner: fence.owner, leases: lost };
        let mut connection = db.pool.acquire().await.unwrap();
        Db::release_leases(&mut connection, &db.sql, &lost, None).await.unwrap();
        drop(connection);
        let completed = Batch { completed: vec![i[0], i[1]], ..Batch::default() };
        assert_eq!(db.settle(&fence, &completed, true).await, lost.leases);
        let unhandled = Batch { unhandled: vec![i[2], i[3]], ..Batch::default() };
        assert_eq!(db.settle(&fence, &unhandled, true).await, lost.leases);
        assert_eq!(db.statuses().await, ["pending", "completed", "pending", "unhandled"]);
        // Records that an earlier try wrote are not refused.
        let completed = Batch { completed: vec![i[1]], ..Batch::default() };
        let owned = Fence { owner: fence.owner, leases: vec![fence.leases[4]] };
        assert!(db.settle(&owned, &completed, true).await.is_empty());
    }

    async fn settling_a_batch_twice_is_the_same_as_once(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("a", 3)]).await;
        let fence = db.own().await;
        db.settle(&fence, &mixed(&i), true).await;
        let once = (db.statuses().await, db.deliveries().await);
        db.settle(&fence, &mixed(&i), true).await;
        assert_eq!((db.statuses().await, db.deliveries().await), once);
        // Finished records do not change again.
        let again = Batch { unhandled: vec![i[0]], completed: vec![i[1], i[2]], ..Batch::default() };
        db.settle(&fence, &again, true).await;
        assert_eq!((db.statuses().await, db.deliveries().await), once);
        assert_eq!(db.numbers("select count(*) from outbox_failure").await, [1]);
    }

    async fn a_record_that_is_split_again_keeps_its_deliveries(db) {
        let i = db.publish(&[("a", 3)]).await;
        let fence = db.own().await;
        let split = |new_deliveries| Batch { split_records: i.clone(), new_deliveries, ..Batch::default() };
        db.settle(&fence, &split(vec![retrying(i[0], "mail")]), false).await;
        db.run("update outbox_record set status = 'pending'").await;
        db.settle(&fence, &split(vec![waiting(i[0], "mail"), waiting(i[0], "bill")]), false).await;
        assert_eq!(db.deliveries().await, [
            format!("{} mail retrying 2/1 blocking it broke: ä", i[0]),
            format!("{} bill waiting 1/0 blocking -", i[0]),
        ]);
    }

    async fn deliveries_get_ids_in_the_order_of_the_rows(db) {
        let i = db.publish(&[("a", 3), ("a", 3), ("a", 3)]).await;
        let fence = db.own().await;
        // The order differs from that of the ids and from that of the list of records.
        let new_deliveries = vec![retrying(i[1], "mail"), waiting(i[2], "mail"), waiting(i[0], "mail")];
        db.settle(&fence, &Batch { split_records: vec![i[2], i[0], i[1]], new_deliveries, ..Batch::default() }, false).await;
        assert_eq!(db.numbers("select record_id from outbox_delivery order by id").await, [i[1], i[2], i[0]]);
    }

    async fn a_delivery_changes_only_if_it_has_its_expected_attempt(db) {
        let i = db.publish(&[("a", 3), ("b", 3)]).await;
        let fence = db.own().await;
        let rows = vec![retrying(i[0], "mail"), retrying(i[1], "mail")];
        db.settle(&fence, &Batch { split_records: i.clone(), new_deliveries: rows, ..Batch::default() }, false).await;
        let changed = |expected_attempt, status| {
            let row = DeliveryRow {
                status, expected_attempt, attempt: 3, failure_count: 2, error: None, blocking: false, due_in: None, ..retrying(i[0], "mail")
            };
            Batch { changed_deliveries: vec![row], ..Batch::default() }
        };
        let unchanged = db.deliveries().await;
        db.settle(&fence, &changed(1, DeliveryStatus::Failed), false).await;
        db.settle(&fence, &changed(3, DeliveryStatus::Failed), false).await;
        assert_eq!(db.deliveries().await, unchanged);
        db.settle(&fence, &changed(2, DeliveryStatus::Failed), false).await;
        // Only this delivery changed. Without a new error, it keeps the old error.
        assert_eq!(db.deliveries().await, [format!("{} mail failed 3/2 free it broke: ä", i[0]), unchanged[1].clone()]);
        assert_eq!(db.numbers("select record_id from outbox_delivery where due_at is null").await, [i[0]]);
        // A late batch does not change a failed delivery.
        db.settle(&fence, &changed(3, DeliveryStatus::Completed), false).await;
        assert_eq!(db.texts("select status from outbox_delivery order by id").await, ["failed", "retrying"]);
    }

    async fn a_delivery_has_the_time_of_its_last_failure(db) {
        let i = db.publish(&[("a", 3)]).await;
        let fence = db.own().await;
        let rows = vec![retrying(i[0], "mail"), waiting(i[0], "bill")];
        db.settle(&fence, &Batch { split_records: i.clone(), new_deliveries: rows, ..Batch::default() }, false).await;
        let failed = "select handler from outbox_delivery where failed_at is not null order by id";
        assert_eq!(db.texts(failed).await, ["mail"]);

        let row = DeliveryRow { attempt: 2, expected_attempt: 1, ..retrying(i[0], "bill") };
        db.settle(&fence, &Batch { changed_deliveries: vec![row], ..Batch::default() }, false).await;
        assert_eq!(db.texts(failed).await, ["mail", "bill"]);
        let in_order = "select handler from outbox_delivery order by failed_at";
        assert_eq!(db.texts(in_order).await, ["mail", "bill"]);

        // A second failure is newer; an end without a failure keeps the time.
        let again = DeliveryRow { attempt: 3, expected_attempt: 2, ..retrying(i[0], "mail") };
        db.settle(&fence, &Batch { changed_deliveries: vec![again], ..Batch::default() }, false).await;
        assert_eq!(db.texts(in_order).await, ["bill", "mail"]);
        let done = completed(&DeliveryRow { attempt: 2, ..retrying(i[0], "bill") });
        db.settle(&fence, &Batch { changed_deliveries: vec![done], ..Batch::default() }, true).await;
        assert_eq!(db.texts(in_order).await, ["bill", "mail"]);
        assert_eq!(db.texts(failed).await, ["mail", "bill"]);
    }

    async fn unhandled_records_are_requeued(db) {
        let i = db.publish(&[("a", 3), ("b", 3), ("c", 4), ("d", 5)]).await;
        let mut fence = db.own().await;
        let partitions = every_partition();
        let mut connection = db.pool.acquire().await.unwrap();
        assert!(Db::unhandled_events(&mut connection, &db.sql, &partitions).await.unwrap().is_empty());
        drop(connection);
        db.settle(&fence, &Batch { unhandled: i.clone(), ..Batch::default() }, false).await;
        db.run(&format!("update outbox_record set event = 'other' where id = {}", i[1])).await;

        let mut connection = db.pool.acquire().await.unwrap();
        let mut events = Db::unhandled_events(&mut connection, &db.sql, &partitions).await.unwrap();
        events.sort();
        assert_eq!(events, ["order.created", "other"]);
        assert_eq!(Db::unhandled_events(&mut connection, &db.sql, &[p(4)]).await.unwrap(), ["order.created"]);
        assert!(Db::unhandled_events(&mut connection, &db.sql, &[]).await.unwrap().is_empty());

        let lost = Db::requeue_unhandled(&mut connection, &db.sql, &with_old_epochs(&fence), "order.created", 9).await.unwrap();
        assert_eq!(lost, 0);
        fence.leases.retain(|lease| lease.partition != p(5));
        let first = Db::requeue_unhandled(&mut connection, &db.sql, &fence, "order.created", 1).await.unwrap();
        assert_eq!(first, 1);
        let found = Db::pending_records(&mut connection, &db.sql, pending(&[page(3), page(4)], &[], 9, 9)).await.unwrap();
        assert_eq!(ids(&found), [i[0]]);
        let rest = Db::requeue_unhandled(&mut connection, &db.sql, &fence, "order.created", 9).await.unwrap();
        assert_eq!(rest, 1);
        drop(connection);
        assert_eq!(db.statuses().await, ["pending", "unhandled", "pending", "unhandled"]);
    }

    async fn settling_works_on_a_configured_connection(db) {
        let i = db.publish(&[("a", 3)]).await;
        let fence = db.own().await;
        let mut connection = db.pool.acquire().await.unwrap();
        Db::configure(&mut connection, Role::Writer).await.unwrap();
        let batch = Batch { completed: i, ..Batch::default() };
        let settled = Db::settle(&mut connection, &db.sql, &fence, &batch, false).await;
        assert!(settled.unwrap().refused.is_empty());
        drop(connection);
        assert!(db.statuses().await.is_empty());
    }
}

/// After a batch has locked its leases, no other instance can take its partitions before the batch is
/// written. A new owner that had already read its lanes would miss the deliveries that the batch parks.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_new_owner_waits_for_the_end_of_a_batch() {
    type Db = sqlx::Postgres;
    let db = super::database::postgres().await;
    let id = db.publish(&[("a", 3)]).await[0];
    let fence = db.own_as(uuid::Uuid::now_v7(), 0).await;
    let mut blocker = db.pool.begin().await.unwrap();
    sqlx::query("select 1 from outbox_record for update")
        .execute(&mut *blocker)
        .await
        .unwrap();
    let batch = Batch {
        split_records: vec![id],
        new_deliveries: vec![retrying(id, "mail")],
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
        let partitions = every_partition();
        let new_owner = uuid::Uuid::now_v7();
        let taken =
            Db::take_partitions(&mut other, &db.sql, new_owner, &partitions, 60_000_000).await;
        taken.unwrap();
        assert_eq!(db.leases_of(fence.owner).await.len(), 64);
        let reaped = Db::reap_expired(&mut other, &db.sql, fence.owner).await;
        assert!(reaped.is_err(), "the owner was reaped");
        drop(other);
        blocker.rollback().await.unwrap();
    };
    let (settled, ()) = tokio::join!(settle, take_over);
    assert!(settled.unwrap().refused.is_empty());
    let parked = "select count(*) from outbox_delivery";
    assert_eq!(db.numbers(parked).await, [1]);
    let mut other = db.pool.acquire().await.unwrap();
    Db::reap_expired(&mut other, &db.sql, fence.owner)
        .await
        .unwrap();
    assert!(db.leases_of(fence.owner).await.is_empty());
}
