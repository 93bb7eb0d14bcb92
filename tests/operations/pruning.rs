//! Deletion of finished records.

use std::time::Duration;

use outbox_tests::on_each_database;

use crate::rows::{KEY, deliver, delivered, in_seconds, number, publish, publish_many, run};

const HOUR: Duration = Duration::from_secs(3600);

on_each_database! {
    async fn prune_deletes_only_records_that_finished_long_ago(db) {
        publish_many(&db, KEY, 2300).await;
        let first = number!(db, "select min(id) from outbox_record".to_owned());
        let old = in_seconds(&db, -9000);
        run!(db, format!("update outbox_record set created_at = {old}"));
        // Every fifth record has a delivery and a failure.
        run!(db, deliver(&db, &format!("(id - {first}) % 5 = 0"), "a", "completed", false));
        run!(db, format!("insert into outbox_failure (record_id, handler, attempt, failed_at, kind, fingerprint, error)
select record_id, handler, 1, {old}, 'error', 'f', 'e' from outbox_delivery"));
        run!(db, format!("update outbox_record set status = 'completed', completed_at = {old}"));
        run!(db, format!("update outbox_record set status = 'discarded' where id = {}", first + 1));

        // Records that must stay, because they are unfinished or finished recently.
        for (offset, status) in [(10, "pending"), (20, "scheduled"), (30, "unhandled"), (40, "split")] {
            run!(db, format!("update outbox_record set status = '{status}' where id = {}", first + offset));
        }
        run!(db, format!("update outbox_record set completed_at = {} where id = {}", in_seconds(&db, -100), first + 50));
        run!(db, format!("update outbox_record set completed_at = null where id = {}", first + 60));
        // A completed record with a failed delivery should not exist. If it does, it must stay.
        run!(db, deliver(&db, &format!("id = {}", first + 71), "b", "failed", true));
        let kept_deliveries = number!(db, format!("select count(*) from outbox_delivery where record_id - {first} in (10, 20, 30, 40, 50, 60, 71)"));
        let kept_failures = number!(db, format!("select count(*) from outbox_failure where record_id - {first} in (10, 20, 30, 40, 50, 60, 71)"));
        assert!(kept_deliveries > 1 && kept_failures > 0);

        assert_eq!(db.outbox.operations().prune(HOUR).await.unwrap(), 2300 - 7);
        let left: Vec<i64> = sqlx::query_scalar("select id from outbox_record order by id").fetch_all(&db.pool).await.unwrap();
        assert_eq!(left, [10, 20, 30, 40, 50, 60, 71].map(|offset| first + offset));
        assert_eq!(number!(db, "select count(*) from outbox_delivery".to_owned()), kept_deliveries);
        assert_eq!(number!(db, "select count(*) from outbox_failure".to_owned()), kept_failures);
        assert_eq!(db.outbox.operations().prune(HOUR).await.unwrap(), 0);
    }

    async fn prune_finds_an_old_record_among_recent_ones(db) {
        // Before the old record there are a recent one and more than a batch of unfinished ones.
        let recent = publish(&db, KEY).await;
        publish_many(&db, KEY, 1500).await;
        run!(db, format!("update outbox_record set created_at = {} where id > {recent}", in_seconds(&db, -9000)));
        let old = publish(&db, KEY).await;
        run!(db, format!("update outbox_record set status = 'completed', completed_at = {} where id = {recent}", in_seconds(&db, 0)));
        run!(db, format!("update outbox_record set status = 'completed', created_at = {past}, completed_at = {past} where id = {old}", past = in_seconds(&db, -9000)));
        delivered!(db, old, "a", "discarded", false);
        assert_eq!(db.outbox.operations().prune(HOUR).await.unwrap(), 1);
        assert_eq!(number!(db, "select count(*) from outbox_record".to_owned()), 1501);
        assert_eq!(number!(db, "select count(*) from outbox_delivery".to_owned()), 0);

        // The longest age deletes nothing, the age 0 deletes every finished record.
        assert_eq!(db.outbox.operations().prune(Duration::MAX).await.unwrap(), 0);
        assert_eq!(db.outbox.operations().prune(Duration::ZERO).await.unwrap(), 1);
    }

    async fn a_dedup_key_can_be_used_again_after_its_record_is_deleted(db) {
        use outbox::Scheduled;
        let event = crate::rows::OrderCreated { order_id: KEY.to_owned() };
        let send = async || {
            let mut tx = db.pool.begin().await.unwrap();
            let sent = db.outbox.schedule(&event).dedup_key("once").send(&mut tx).await.unwrap();
            tx.commit().await.unwrap();
            sent
        };
        assert!(matches!(send().await, Scheduled::Published { .. }));
        run!(db, format!("update outbox_record set status = 'completed', completed_at = {}", in_seconds(&db, -1)));
        assert_eq!(send().await, Scheduled::Duplicate);
        assert_eq!(db.outbox.operations().prune(Duration::ZERO).await.unwrap(), 1);
        assert!(matches!(send().await, Scheduled::Published { .. }));
    }
}
