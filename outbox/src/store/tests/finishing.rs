//! The end of split records, the history of failures, and renamed handlers.

use super::{completed, failure, on_each_database, p, retrying, waiting, with_old_epochs};
use crate::record::DeliveryStatus;
use crate::store::{Batch, DeliveryRow, HandlerRename, SettleSql as _};

on_each_database! {
    async fn a_split_record_is_completed_with_its_last_delivery(db) {
        let i = db.publish(&[("a", 3), ("a", 3)]).await;
        let fence = db.own().await;
        let rows = [retrying(i[0], "mail"), waiting(i[0], "bill"), retrying(i[1], "mail")];
        for keep in [true, false] {
            db.run("update outbox_record set status = 'pending'").await;
            db.run("delete from outbox_delivery").await;
            let batch = Batch { split_records: i.clone(), new_deliveries: rows.to_vec(), failures: vec![failure(i[0], 1), failure(i[1], 1)], ..Batch::default() };
            db.settle(&fence, &batch, keep).await;
            db.settle(&fence, &Batch { changed_deliveries: vec![completed(&rows[0])], ..Batch::default() }, keep).await;
            assert_eq!(db.statuses().await, ["split", "split"]);
            assert_eq!(db.texts("select status from outbox_delivery order by id").await, ["completed", "waiting", "retrying"]);
            db.settle(&fence, &Batch { changed_deliveries: vec![completed(&rows[1])], ..Batch::default() }, keep).await;
            if keep {
                assert_eq!(db.statuses().await, ["completed", "split"]);
                let dated = db.numbers("select record_id from outbox_delivery where finished_at is not null").await;
                assert_eq!(dated, [i[0], i[0]]);
                let dated = db.numbers("select id from outbox_record where completed_at is not null").await;
                assert_eq!(dated, [i[0]]);
                assert_eq!(db.numbers("select record_id from outbox_failure order by 1").await, i);
            } else {
                for column in ["id from outbox_record", "record_id from outbox_delivery", "record_id from outbox_failure"] {
                    assert_eq!(db.numbers(&format!("select {column}")).await, [i[1]], "{column}");
                }
            }
        }
    }

    async fn two_deliveries_completed_in_one_batch_complete_their_record(db) {
        let i = db.publish(&[("a", 3)]).await;
        let fence = db.own().await;
        let rows = vec![retrying(i[0], "mail"), retrying(i[0], "bill")];
        let changed = rows.iter().map(completed).collect();
        db.settle(&fence, &Batch { split_records: i, new_deliveries: rows, ..Batch::default() }, false).await;
        db.settle(&fence, &Batch { changed_deliveries: changed, ..Batch::default() }, false).await;
        assert!(db.statuses().await.is_empty());
        assert!(db.deliveries().await.is_empty());
    }

    async fn two_concurrent_batches_complete_a_record_together(db) {
        let fence = db.own().await;
        for _ in 0..20 {
            let i = db.publish(&[("a", 3), ("b", 3)]).await;
            let of = |handler| [retrying(i[0], handler), retrying(i[1], handler)];
            let new_deliveries = [of("mail"), of("bill")].concat();
            db.settle(&fence, &Batch { split_records: i.clone(), new_deliveries, ..Batch::default() }, false).await;
            let completes = |handler| Batch { changed_deliveries: of(handler).iter().map(completed).collect(), ..Batch::default() };
            let (mail, bill) = (completes("mail"), completes("bill"));
            tokio::join!(db.settle(&fence, &mail, false), db.settle(&fence, &bill, false));
            assert!(db.statuses().await.is_empty());
        }
    }

    async fn a_failed_delivery_keeps_its_record(db) {
        let i = db.publish(&[("a", 3)]).await;
        let fence = db.own().await;
        let rows = vec![retrying(i[0], "mail"), retrying(i[0], "bill")];
        let failed = DeliveryRow { status: DeliveryStatus::Failed, ..completed(&rows[0]) };
        let done = completed(&rows[1]);
        db.settle(&fence, &Batch { split_records: i, new_deliveries: rows, ..Batch::default() }, false).await;
        db.settle(&fence, &Batch { changed_deliveries: vec![failed], ..Batch::default() }, false).await;
        db.settle(&fence, &Batch { changed_deliveries: vec![done], ..Batch::default() }, false).await;
        assert_eq!(db.statuses().await, ["split"]);
        assert_eq!(db.texts("select status from outbox_delivery order by id").await, ["failed", "completed"]);
    }

    async fn the_last_fifty_failures_are_kept(db) {
        let i = db.publish(&[("a", 3), ("b", 3)]).await;
        let fence = db.own().await;
        let mut row = retrying(i[0], "mail");
        let split = Batch { split_records: i.clone(), new_deliveries: vec![row.clone(), retrying(i[1], "mail")], failures: vec![failure(i[1], 1)], ..Batch::default() };
        db.settle(&fence, &split, false).await;
        for attempt in 1..=53 {
            row = DeliveryRow { attempt: attempt + 1, expected_attempt: row.attempt, ..row };
            let batch = Batch { changed_deliveries: vec![row.clone()], failures: vec![failure(i[0], attempt)], ..Batch::default() };
            db.settle(&fence, &batch, false).await;
        }
        let attempts = db.numbers(&format!("select attempt from outbox_failure where record_id = {} order by attempt", i[0])).await;
        assert_eq!(attempts, (4..=53).collect::<Vec<i64>>());
        // Failures of another record are not deleted.
        assert_eq!(db.numbers(&format!("select attempt from outbox_failure where record_id = {}", i[1])).await, [1]);
        assert_eq!(db.texts("select error from outbox_failure where attempt = 53").await, ["attempt 53"]);
    }

    async fn a_failure_of_a_deleted_delivery_is_not_stored(db) {
        let i = db.publish(&[("a", 3)]).await;
        let fence = db.own().await;
        let row = retrying(i[0], "mail");
        db.settle(&fence, &Batch { split_records: i.clone(), new_deliveries: vec![row.clone()], ..Batch::default() }, false).await;
        db.settle(&fence, &Batch { changed_deliveries: vec![completed(&row)], ..Batch::default() }, false).await;
        db.settle(&fence, &Batch { changed_deliveries: vec![row], failures: vec![failure(i[0], 2)], ..Batch::default() }, false).await;
        assert!(db.numbers("select attempt from outbox_failure").await.is_empty());
    }

    async fn the_deliveries_of_a_renamed_handler_get_its_new_id(db) {
        let i = db.publish(&[("a", 3), ("a", 3), ("a", 3)]).await;
        let mut fence = db.own().await;
        let elsewhere = DeliveryRow { partition: p(4), ..retrying(i[2], "mail") };
        let rows = vec![retrying(i[0], "mail"), retrying(i[1], "mail"), retrying(i[1], "post"), elsewhere];
        db.settle(&fence, &Batch { split_records: i.clone(), new_deliveries: rows, ..Batch::default() }, false).await;
        fence.leases.retain(|lease| lease.partition == p(3));
        let mut connection = db.pool.acquire().await.unwrap();
        Db::rename_handler(&mut connection, &db.sql, &with_old_epochs(&fence), HandlerRename { from: "mail", to: "post" }).await.unwrap();
        drop(connection);
        assert_eq!(db.texts("select handler from outbox_delivery order by id").await, ["mail", "mail", "post", "mail"]);
        let mut connection = db.pool.acquire().await.unwrap();
        Db::rename_handler(&mut connection, &db.sql, &fence, HandlerRename { from: "mail", to: "post" }).await.unwrap();
        drop(connection);
        // Unchanged: a record that has a delivery of the new id, and a partition of another owner.
        assert_eq!(db.texts("select handler from outbox_delivery order by id").await, ["post", "mail", "post", "mail"]);
    }
}
