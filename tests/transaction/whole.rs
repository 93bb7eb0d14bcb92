//! A transaction is retried as a whole or not at all, and a failed one leaves no changes.

use std::{sync::Arc, task::Poll, time::Duration};

use outbox::transaction::{Isolation, Reason, Stopped};
use outbox_tests::on_each_database;
use tokio::sync::Barrier;

use crate::scene::{Oops, Scene, stubborn};

const TABLE: &str = "create table pair (id bigint primary key, n bigint not null)";
const ROWS: &str = "insert into pair values (1, 0), (2, 0)";

/// Polls the future `times` times and drops it.
async fn polled(times: u32, future: impl Future) {
    let (mut future, mut left) = (std::pin::pin!(future), times);
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        future.as_mut().poll(context).map(|_| ())
    })
    .await;
}

on_each_database! {
    async fn an_error_after_a_write_rolls_the_write_back(db) {
        database::execute(&db.pool, TABLE).await;
        let error = db.outbox.transaction("Pair").run(async |mut tx| {
            sqlx::query(ROWS).execute(&mut *tx).await?;
            Err::<(), _>(Oops::No)
        }).await.unwrap_err();
        assert!(matches!(error.rejection(), Some(Oops::No)));
        assert_eq!(database::number(&db.pool, "select count(*) from pair").await, 0);
    }

    async fn a_dropped_run_is_rolled_back(db) {
        database::execute(&db.pool, TABLE).await;
        let (wrote, written) = tokio::sync::oneshot::channel();
        let wrote = std::sync::Mutex::new(Some(wrote));
        let outbox = db.outbox.clone();
        let task = tokio::spawn(async move {
            outbox.transaction("Pair").run(async |mut tx| {
                sqlx::query(ROWS).execute(&mut *tx).await?;
                wrote.lock().unwrap().take().unwrap().send(()).unwrap();
                std::future::pending::<()>().await;
                Ok::<_, sqlx::Error>(())
            }).await
        });
        written.await.unwrap();
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        // This statement waits for locks that the dropped transaction may still hold.
        database::execute(&db.pool, ROWS).await;
        assert_eq!(database::number(&db.pool, "select count(*) from pair").await, 2);
    }

    async fn a_session_returns_to_the_pool_without_an_open_transaction(db) {
        database::execute(&db.pool, TABLE).await;
        // The test drops the run at each point where it waits, and ends it in each way.
        for n in 0..90 {
            let run = db.outbox.transaction("Pair").run(async |mut tx| {
                                // The statement is not prepared: an sqlx connection to MySQL that is dropped while it
                                // prepares a statement may hang, in plain transactions too.
                sqlx::raw_sql("select 1").execute(&mut *tx).await?;
                match n % 3 {
                    0 => Ok(()),
                    1 => Err(Oops::No),
                    _ => std::future::pending().await,
                }
            });
            let _ = tokio::time::timeout(Duration::from_millis(100), polled(n / 3, run)).await;
        }
        // No connection of the pool has an open transaction, so each of these writes stays.
        let connections: Vec<_> = (0..db.pool.options().get_max_connections())
            .map(|_| db.pool.clone())
            .collect();
        let mut acquired = Vec::new();
        for pool in &connections {
            acquired.push(pool.acquire().await.unwrap());
        }
        for (n, connection) in acquired.iter_mut().enumerate() {
            let insert = format!("insert into pair values ({n}, 0)");
            sqlx::query(sqlx::AssertSqlSafe(insert)).execute(&mut **connection).await.unwrap();
        }
        drop(acquired);
        let written = database::number(&db.pool, "select count(*) from pair").await;
        assert_eq!(written, i64::try_from(connections.len()).unwrap());
    }

    async fn a_transaction_that_the_closure_keeps_is_not_committed(db) {
        database::execute(&db.pool, TABLE).await;
        let kept = std::sync::Mutex::new(None);
        let error = db.outbox.transaction("Pair").run(async |mut tx| {
            sqlx::query(ROWS).execute(&mut *tx).await?;
            *kept.lock().unwrap() = Some(tx);
            Ok::<_, sqlx::Error>(())
        }).await.unwrap_err();
        assert!(error.to_string().contains("kept the transaction"), "{error}");
        drop(kept);
        database::execute(&db.pool, ROWS).await;
        assert_eq!(database::number(&db.pool, "select count(*) from pair").await, 2);
    }

    async fn a_read_only_transaction_does_not_write(db) {
        database::execute(&db.pool, TABLE).await;
        database::execute(&db.pool, ROWS).await;
        let read = db.outbox.transaction("Read").read_only().isolation(Isolation::RepeatableRead);
        let sum: i64 = read.run(async |mut tx| {
            sqlx::query_scalar("select count(*) from pair").fetch_one(&mut *tx).await
        }).await.unwrap();
        assert_eq!(sum, 2);
        let write = db.outbox.transaction("Read").read_only().run(async |mut tx| {
            sqlx::query("update pair set n = 1").execute(&mut *tx).await?;
            Ok::<_, sqlx::Error>(())
        }).await;
        assert_eq!(write.is_ok(), database::ONE_WRITER, "SQLite rolls the write back, the others refuse it");
        assert_eq!(database::number(&db.pool, "select count(*) from pair where n = 1").await, 0);
    }
}

macro_rules! after_a_deadlock {
    ($($database:ident)*) => {$(
        mod $database {
            use super::*;
            use outbox_tests::database::$database as database;

                        /// The closure ignores a deadlock: it repeats the failed statement and continues. The
                        /// whole transaction is rolled back, with its writes before and after the deadlock.
            #[tokio::test]
            async fn a_closure_cannot_retry_a_single_statement() {
                let db = database::fresh().await;
                database::execute(&db.pool, TABLE).await;
                database::execute(&db.pool, ROWS).await;
                database::execute(&db.pool, "create table audit (id bigint)").await;
                let scene = Scene::of(&db);
                let meet = Arc::new(Barrier::new(2));
                let run = |mine: i64, other: i64| {
                    let (transactions, meet) = (scene.transactions.clone(), Arc::clone(&meet));
                    async move {
                        transactions.transaction("Stubborn").policy(stubborn()).run(async |mut tx| {
                            let add = |id: i64| sqlx::AssertSqlSafe(format!("update pair set n = n + 1 where id = {id}"));
                            let note = |id: i64| sqlx::AssertSqlSafe(format!("insert into audit values ({id})"));
                            sqlx::query(note(mine)).execute(&mut *tx).await?;
                            sqlx::query(add(mine)).execute(&mut *tx).await?;
                            if tx.attempt() == 1 {
                                meet.wait().await;
                            }
                            if sqlx::query(add(other)).execute(&mut *tx).await.is_err() {
                                let _ = sqlx::query(add(other)).execute(&mut *tx).await;
                                let _ = sqlx::query(note(100 + mine)).execute(&mut *tx).await;
                            }
                            Ok::<_, sqlx::Error>(())
                        }).await
                    }
                };
                let (first, second) = tokio::join!(run(1, 2), run(2, 1));
                let failed = match (first, second) {
                    (Ok(()), Err(error)) | (Err(error), Ok(())) => error,
                    both => panic!("one must fail by the deadlock: {both:?}"),
                };
                assert_eq!((failed.reason(), failed.stopped()), (Reason::Aborted, Stopped::NotRetryable));
                assert!(!failed.outcome_is_unknown());
                assert_eq!(database::number(&db.pool, "select count(*) from audit").await, 1);
                assert_eq!(database::number(&db.pool, "select count(*) from pair where n = 1").await, 2);
            }
        }
    )*};
}

mod victims {
    use super::*;

    after_a_deadlock!(postgres mysql);
}
