//! The test cases that section 45 of the reference for retried transactions requires.

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
    async fn a_retryable_failure_is_followed_by_a_successful_second_attempt(db) {
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
        // The first attempt was rolled back before the second started.
        assert_eq!(database::number(&db.pool, "select count(*) from notes").await, 1);
    }

    async fn the_closure_is_not_called_after_the_last_attempt(db) {
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

    async fn a_failure_that_is_not_retryable_is_not_retried(db) {
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
                clock.advance(Duration::from_millis(9_900)); // 100 ms are left: 50 ms for the delay, 50 ms for an attempt
                Err::<(), _>(Oops::Deadlock)
            }).await.unwrap_err();
        assert_eq!((error.attempts(), error.stopped()), (1, Stopped::Deadline));
        assert!(matches!(error.cause(), Cause::Closure(Oops::Deadlock)), "the cause is kept");
        assert_eq!((calls.into_inner(), scene.clock.slept().len()), (1, 0));
        assert_eq!(scene.counted.of("skipped_deadline Slow"), 1);
    }

    async fn a_cancellation_during_the_delay_ends_the_run(db) {
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
                                // The run notices the signal during its delay, after this attempt has ended.
                                let sender = stop.lock().unwrap().take().unwrap();
                                tokio::spawn(async move {
                                    tokio::task::yield_now().await;
                                    sender.send(()).unwrap();
                                });
                Err::<(), _>(Oops::Deadlock)
            });
        let ended = tokio::time::timeout(Duration::from_secs(10), run).await;
        let error = ended.expect("the run to end").unwrap_err();
        assert_eq!((error.attempts(), error.stopped()), (1, Stopped::Cancelled));
        assert_eq!(calls.into_inner(), 1);
    }

    async fn a_repeated_command_returns_the_result_of_the_committed_one(db) {
        database::execute(&db.pool, NOTES).await;
        let scene = Scene::of(&db);
        let calls = AtomicU32::new(0);
        for _ in 0..2 {
            // The second run stands for a caller that did not get the answer to the first.
            let number = scene.transactions.transaction("Note").command_id("c-1").run(async |mut tx| {
                sqlx::query(NOTE).execute(&mut *tx).await?;
                Ok::<_, Oops>(calls.fetch_add(1, Ordering::Relaxed) + 41)
            }).await.unwrap();
            assert_eq!(number, 41);
        }
        assert_eq!(calls.into_inner(), 1);
        assert_eq!(database::number(&db.pool, "select count(*) from notes").await, 1);
    }

    async fn a_repeated_command_writes_no_second_row_and_no_second_event(db) {
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

    async fn attempts_and_their_ends_are_counted(db) {
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
async fn a_handler_runs_only_after_the_retried_transaction_has_committed() {
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

/// A run that is dropped during its delay makes no further attempt.
#[tokio::test]
async fn a_run_that_is_dropped_during_its_delay_ends() {
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
    let ended = tokio::time::timeout(Duration::from_millis(100), run).await;
    assert!(ended.is_err());
    assert_eq!(calls.into_inner(), 1);
}
