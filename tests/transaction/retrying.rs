//! The reference's list of what has to be tested (its section 45), case by case.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use outbox::{
    OutboxEvent, outbox_handler,
    testing::Kit,
    transaction::{Cause, Deadline, Reason, Stopped},
};
use outbox_tests::{database::Fresh, on_each_database};

use crate::scene::{EndlessSleep, FastClock, Oops, Scene, policy};

/// A table to write to.
const NOTES: &str = "create table notes (id bigint not null, text varchar(100))";
const NOTE: &str = "insert into notes (id) values (1)";

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "transaction.mail", key = to)]
struct Mail {
    to: u32,
}

on_each_database! {
    async fn a_retryable_failure_first_and_success_second(db) {
        database::execute(&db.pool, NOTES).await;
        let (scene, calls) = (Scene::of(&db), AtomicU32::new(0));
        let attempt = scene.transactions.transaction("Note").policy(policy()).run(async |mut tx| {
            calls.fetch_add(1, Ordering::Relaxed);
            sqlx::query(NOTE).execute(&mut *tx).await?;
            if tx.attempt() == 1 {
                return Err(Oops::Deadlock);
            }
            Ok(tx.attempt())
        }).await.unwrap();
        assert_eq!((attempt, calls.into_inner()), (2, 2));
        assert_eq!(scene.clock.slept(), [Duration::from_millis(50)]);
        // The first attempt was undone before the second began.
        assert_eq!(database::number(&db.pool, "select count(*) from notes").await, 1);
    }

    async fn a_retryable_failure_exhausted_and_the_callback_not_called_after(db) {
        database::execute(&db.pool, NOTES).await;
        let (scene, calls) = (Scene::of(&db), AtomicU32::new(0));
        let error = scene.transactions.transaction("Note").policy(policy()).run(async |mut tx| {
            calls.fetch_add(1, Ordering::Relaxed);
            sqlx::query(NOTE).execute(&mut *tx).await?;
            Err::<(), _>(Oops::Deadlock)
        }).await.unwrap_err();
        assert_eq!((error.attempts(), error.stopped(), error.reason()), (3, Stopped::Attempts, Reason::Deadlock));
        assert!(matches!(error.rejection(), Some(Oops::Deadlock)));
        assert_eq!(error.to_string(), "transaction `Note` failed after 3 attempts (deadlock): no attempts are left");
        assert_eq!(calls.into_inner(), 3);
        assert_eq!(scene.clock.slept(), [50, 100].map(Duration::from_millis));
        assert_eq!(database::number(&db.pool, "select count(*) from notes").await, 0);
    }

    async fn a_nonretryable_failure_is_not_retried(db) {
        database::execute(&db.pool, "create table once (id bigint primary key)").await;
        let (scene, calls) = (Scene::of(&db), AtomicU32::new(0));
        let error = scene.transactions.transaction("Once").policy(policy()).run(async |mut tx| {
            calls.fetch_add(1, Ordering::Relaxed);
            for _ in 0..2 {
                sqlx::query("insert into once values (1)").execute(&mut *tx).await?;
            }
            Ok::<_, Oops>(())
        }).await.unwrap_err();
        assert_eq!((error.attempts(), error.stopped()), (1, Stopped::NotRetryable));
        assert_eq!(error.reason(), Reason::UniqueViolation);
        let rejected = scene.transactions.transaction("Once").run(async |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(Oops::No)
        }).await.unwrap_err();
        assert!(matches!(rejected.into_cause(), Cause::Closure(Oops::No)));
        assert_eq!(calls.into_inner(), 2);
        assert_eq!(database::number(&db.pool, "select count(*) from once").await, 0);
    }

    async fn the_deadline_prevents_a_retry(db) {
        let (scene, calls) = (Scene::of(&db), AtomicU32::new(0));
        let clock = &scene.clock;
        let error = scene.transactions.transaction("Slow")
            .policy(policy())
            .deadline(Deadline::after(Duration::from_secs(10)))
            .run(async |_| {
                calls.fetch_add(1, Ordering::Relaxed);
                clock.advance(Duration::from_millis(9_900)); // 100 ms left; it takes 50 and 50
                Err::<(), _>(Oops::Deadlock)
            }).await.unwrap_err();
        assert_eq!((error.attempts(), error.stopped()), (1, Stopped::Deadline));
        assert!(matches!(error.cause(), Cause::Closure(Oops::Deadlock)), "the cause is kept");
        assert_eq!((calls.into_inner(), scene.clock.slept().len()), (1, 0));
        assert_eq!(scene.counted.of("skipped_deadline Slow"), 1);
    }

    async fn an_interrupted_sleep_ends_the_run(db) {
        let scene = Scene::of(&db);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let stop = std::sync::Mutex::new(Some(stop));
        let calls = AtomicU32::new(0);
        let run = scene.transactions.clone().clock(EndlessSleep).transaction("Stop")
            .policy(policy())
            .cancel_on(async { stopped.await.unwrap() })
            .run(async |tx| {
                calls.fetch_add(1, Ordering::Relaxed);
                drop(tx);
                // Seen as soon as it sleeps: this attempt is over by then.
                let stop = stop.lock().unwrap().take().unwrap();
                tokio::spawn(async move {
                    tokio::task::yield_now().await;
                    stop.send(()).unwrap();
                });
                Err::<(), _>(Oops::Deadlock)
            });
        let stopped = tokio::time::timeout(Duration::from_secs(10), run).await;
        let error = stopped.expect("it sleeps for ever").unwrap_err();
        assert_eq!((error.attempts(), error.stopped()), (1, Stopped::Cancelled));
        assert_eq!(calls.into_inner(), 1);
    }

    async fn idempotency_returns_the_previous_result_after_a_simulated_commit(db) {
        database::execute(&db.pool, NOTES).await;
        let scene = Scene::of(&db);
        let calls = AtomicU32::new(0);
        for _ in 0..2 {
            // The answer to the first never reached the caller, who asks again.
            let number = scene.transactions.transaction("Note").command_id("c-1").run(async |mut tx| {
                sqlx::query(NOTE).execute(&mut *tx).await?;
                Ok::<_, Oops>(calls.fetch_add(1, Ordering::Relaxed) + 41)
            }).await.unwrap();
            assert_eq!(number, 41);
        }
        assert_eq!(calls.into_inner(), 1);
        assert_eq!(database::number(&db.pool, "select count(*) from notes").await, 1);
    }

    async fn a_duplicate_audit_or_outbox_entry_is_not_created(db) {
        database::execute(&db.pool, NOTES).await;
        let scene = Scene::of(&db);
        for _ in 0..2 {
            scene.transactions.transaction("Note").policy(policy()).command_id("c-1").run(async |mut tx| {
                sqlx::query(NOTE).execute(&mut *tx).await?;
                db.outbox.publish(&mut tx, &Mail { to: 1 }).await?;
                if tx.attempt() == 1 {
                    return Err(Oops::Deadlock);
                }
                Ok(())
            }).await.unwrap();
        }
        assert_eq!(database::number(&db.pool, "select count(*) from notes").await, 1);
        assert_eq!(database::number(&db.pool, "select count(*) from outbox_record").await, 1);
    }

    async fn metrics_are_emitted(db) {
        let scene = Scene::of(&db);
        scene.transactions.transaction("First").policy(policy()).run(async |tx| {
            if tx.attempt() == 1 { Err(Oops::Deadlock) } else { Ok(()) }
        }).await.unwrap();
        scene.transactions.transaction("Second").policy(policy().max_attempts(2)).run(async |_| {
            Err::<(), _>(Oops::Deadlock)
        }).await.unwrap_err();
        assert_eq!(scene.counted.all(), [
            "deadlock First", "retry First deadlock", "success First 2",
            "deadlock Second", "retry Second deadlock", "deadlock Second", "exhausted Second deadlock",
        ]);
    }
}

static MAILS: AtomicU32 = AtomicU32::new(0);

#[outbox_handler(id = "transaction-mail")]
async fn mail(_: Mail) {
    MAILS.fetch_add(1, Ordering::Relaxed);
}

#[tokio::test]
async fn an_external_side_effect_is_not_invoked_inside_the_retry_callback() {
    let kit = Kit::new(|builder| builder.handler::<mail>()).await.unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    let transactions =
        outbox::transaction::Transactions::new(kit.pool().clone()).clock(FastClock::default());
    transactions
        .transaction("Approve")
        .policy(policy())
        .run(async |mut tx| {
            kit.outbox().publish(&mut tx, &Mail { to: 7 }).await?;
            match calls.fetch_add(1, Ordering::Relaxed) {
                0 | 1 => Err(Oops::Deadlock),
                _ => Ok(()),
            }
        })
        .await
        .unwrap();
    assert_eq!(MAILS.load(Ordering::Relaxed), 0, "not before the commit");
    kit.run_until_idle().await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert_eq!(MAILS.load(Ordering::Relaxed), 1);
}

/// A future that is dropped while it sleeps does nothing more.
#[tokio::test]
async fn a_dropped_sleep_is_the_end() {
    let db: Fresh<sqlx::Sqlite> = outbox_tests::database::sqlite::fresh().await;
    let scene = Scene::of(&db);
    let calls = AtomicU32::new(0);
    let transactions = scene.transactions.clone().clock(EndlessSleep);
    let run = transactions
        .transaction("Stop")
        .policy(policy())
        .run(async |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(Oops::Deadlock)
        });
    let cut = tokio::time::timeout(Duration::from_millis(100), run).await;
    assert!(cut.is_err());
    assert_eq!(calls.into_inner(), 1);
}
