//! Due times by the database's clock, and the number of retries of a record.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use outbox::{
    Config, Outbox, Registry,
    clock::{Clock as _, ManualClock, SystemClock},
};
use outbox_tests::on_each_database;

use crate::scene::{Scene, eventually, first, publish, quick, step};

on_each_database! {
    async fn records_are_due_by_the_clock_of_the_database(db) {
        let scene = Scene::new();
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        let later = database::texts(&db.pool, &database::text_in(1)).await[0].parse().unwrap();
        let past = database::texts(&db.pool, &database::text_in(-3600)).await[0].parse().unwrap();
        let never = database::texts(&db.pool, &database::text_in(3600)).await[0].parse().unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        let delayed = step("delayed", 1);
        let sent = outbox.schedule(&delayed).delay(Duration::from_secs(1)).send(&mut tx).await;
        assert!(sent.is_ok());
        for (key, at) in [("later", later), ("past", past), ("never", never)] {
            let event = step(key, 1);
            assert!(outbox.schedule(&event).at(at).send(&mut tx).await.is_ok());
        }
        tx.commit().await.unwrap();
        outbox.wake();
        // The loop reads the seen records first and the records that are not due after that. A
        // record in both lists was handled before it was due.
        let select_not_due = format!("select {} from outbox_record where due_at > {}", database::KEY, database::NOW);
        loop {
            let seen = scene.seen();
            let not_due = database::texts(&db.pool, &select_not_due).await;
            assert!(seen.iter().all(|seen| !not_due.contains(&seen.key)), "{seen:?} {not_due:?}");
            if not_due == ["never"] {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        scene.seen_at_least(3).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.seen()[0].key, "past");
        assert!(scene.steps("first", "never").is_empty());
        assert!(scene.seen().iter().all(|seen| seen.attempt == 1));
    }

    async fn an_application_clock_that_is_wrong_by_an_hour_changes_no_due_time(db) {
        let hour = SignedDuration::from_hours(1);
        for wrong in [hour, -hour] {
            let clock = ManualClock::at(SystemClock.now() + wrong);
            let scene = Scene::with(|_, meta| match meta.attempt() {
                1 => Err("once".into()),
                _ => Ok(()),
            });
            let outbox = scene.outbox(&db.pool).clock(clock).build().await.unwrap();
            let dispatcher = outbox.start().await.unwrap();
            let now: Timestamp = database::texts(&db.pool, &database::text_in(0)).await[0].parse().unwrap();
            let mut tx = db.pool.begin().await.unwrap();
            let (soon, at, never) = (step("soon", 1), step("at", 1), step("never", 1));
            let delay = Duration::from_millis(20);
            assert!(outbox.schedule(&soon).delay(delay).send(&mut tx).await.is_ok());
            assert!(outbox.schedule(&at).at(now).send(&mut tx).await.is_ok());
            let later = now + SignedDuration::from_mins(30);
            assert!(outbox.schedule(&never).at(later).send(&mut tx).await.is_ok());
            tx.commit().await.unwrap();
            scene.seen_at_least(2).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            dispatcher.shutdown().await.unwrap();
            // Each had two attempts: the delay of a retry follows the database's clock too.
            assert_eq!(scene.attempts("first", "soon", 1), [1, 2]);
            assert_eq!(scene.attempts("first", "at", 1), [1, 2]);
            assert!(scene.attempts("first", "never", 1).is_empty());
            let created = format!("select {} from outbox_record", database::SECONDS_OLD);
            assert!(database::number(&db.pool, &created).await < 60);
        }
    }

    async fn a_delayed_record_waits_behind_the_failed_record_of_its_lane(db) {
        let scene = Scene::with(|event, _| match event.n {
            1 => Err("never".into()),
            _ => Ok(()),
        });
        let outbox = scene.outbox(&db.pool).retry_policy(quick(0)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "a", [1]).await;
        // On a busy machine the delayed record could be due before the dispatcher reads the first.
        let failed = "select count(*) from outbox_delivery where status = 'failed'";
        eventually("the failure", async || database::number(&db.pool, failed).await == 1).await;
        let mut tx = db.pool.begin().await.unwrap();
        let event = step("a", 2);
        let sent = outbox.schedule(&event).delay(Duration::from_millis(20)).send(&mut tx).await;
        assert!(sent.is_ok());
        tx.commit().await.unwrap();
        let waiting = "select count(*) from outbox_delivery where status in ('failed', 'waiting')";
        eventually("both in the lane", async || database::number(&db.pool, waiting).await == 2).await;
        dispatcher.shutdown().await.unwrap();
        assert!(scene.attempts("first", "a", 2).is_empty());
    }

    async fn the_retry_limit_of_a_record_wins_over_the_policy(db) {
        for (policy, own, attempts) in [(u32::MAX, 0, vec![1]), (0, 2, vec![1, 2, 3])] {
            let scene = Scene::with(|_, _| Err("never".into()));
            let outbox = scene.outbox(&db.pool).retry_policy(quick(policy)).build().await.unwrap();
            let dispatcher = outbox.start().await.unwrap();
            let mut tx = db.pool.begin().await.unwrap();
            let event = step(own, own);
            assert!(outbox.schedule(&event).max_retries(own).send(&mut tx).await.is_ok());
            tx.commit().await.unwrap();
            let failed = format!("select count(*) from outbox_delivery where status = 'failed' and {} = '{own}'", database::KEY);
            eventually("a failure", async || database::number(&db.pool, &failed).await == 1).await;
            dispatcher.shutdown().await.unwrap();
            assert_eq!(scene.attempts("first", &own.to_string(), own), attempts);
        }
    }

    async fn a_pinned_retry_limit_holds_under_another_configuration(db) {
        let json = r#"{ "retry": { "max-retries": 2, "pin-at-schedule": true } }"#;
        let config: Config = serde_json::from_str(json).unwrap();
        let publisher = Outbox::builder(db.pool.clone())
            .registry(Registry::builder().allow_empty())
            .config(config).build().await.unwrap();
        publish(&publisher, &db.pool, "pinned", [1]).await;

        let scene = Scene::with(|_, _| Err("never".into()));
        let json = r#"{ "retry": { "max-retries": 5, "policy": "fixed", "fixed": { "delay": 5 } } }"#;
        let mut config: Config = serde_json::from_str(json).unwrap();
        config.poll_interval = Duration::from_millis(500);
        let registry = Registry::builder().handler::<first>().state(scene.clone());
        let builder = Outbox::builder(db.pool.clone()).registry(registry).config(config);
        let outbox = builder.build().await.unwrap();
        publish(&outbox, &db.pool, "not pinned", [1]).await;
        let dispatcher = outbox.start().await.unwrap();
        let failed = "select count(*) from outbox_delivery where status = 'failed'";
        eventually("two failures", async || database::number(&db.pool, failed).await == 2).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.attempts("first", "pinned", 1), [1, 2, 3]);
        assert_eq!(scene.attempts("first", "not pinned", 1), [1, 2, 3, 4, 5, 6]);
    }
}
