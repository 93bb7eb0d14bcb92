//! A transaction is tried again as a whole or not at all, and nothing of a failed one stays.

use std::{sync::Arc, task::Poll, time::Duration};

use outbox::transaction::{Isolation, Reason, Stopped};
use outbox_tests::on_each_database;
use tokio::sync::Barrier;

use crate::scene::{Oops, Scene, stubborn};

const TABLE: &str = "create table pair (id bigint primary key, n bigint not null)";
const ROWS: &str = "insert into pair values (1, 0), (2, 0)";

/// Polls the future so many times and drops it.
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
    async fn a_closure_that_returns_an_error_after_writing_leaves_nothing_behind(db) {
        database::execute(&db.pool, TABLE).await;
        let error = db.outbox.transaction("Pair").run(async |mut tx| {
            sqlx::query(ROWS).execute(&mut *tx).await?;
            Err::<(), _>(Oops::No)
        }).await.unwrap_err();
        assert!(matches!(error.rejection(), Some(Oops::No)));
        assert_eq!(database::number(&db.pool, "select count(*) from pair").await, 0);
    }

    async fn a_dropped_future_rolls_back(db) {
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
        // Waits for the locks of the dropped one, if it still has any.
        database::execute(&db.pool, ROWS).await;
        assert_eq!(database::number(&db.pool, "select count(*) from pair").await, 2);
    }

    async fn a_session_goes_back_to_the_pool_as_it_was(db) {
        database::execute(&db.pool, TABLE).await;
        // Dropped at each point where it waits for something, and ended in each way.
        for n in 0..90 {
            let run = db.outbox.transaction("Pair").run(async |mut tx| {
                // Not prepared: dropped while it prepares a statement, a connection of sqlx to MySQL
                // may be stuck, in plain transactions too.
                sqlx::raw_sql("select 1").execute(&mut *tx).await?;
                match n % 3 {
                    0 => Ok(()),
                    1 => Err(Oops::No),
                    _ => std::future::pending().await,
                }
            });
            let _ = tokio::time::timeout(Duration::from_millis(100), polled(n / 3, run)).await;
        }
        // Outside of any transaction, on each connection there is: what is written stays.
        let connections: Vec<_> = (0..db.pool.options().get_max_connections())
            .map(|_| db.pool.clone())
            .collect();
        let mut held = Vec::new();
        for pool in &connections {
            held.push(pool.acquire().await.unwrap());
        }
        for (n, connection) in held.iter_mut().enumerate() {
            let insert = format!("insert into pair values ({n}, 0)");
            sqlx::query(sqlx::AssertSqlSafe(insert)).execute(&mut **connection).await.unwrap();
        }
        drop(held);
        let written = database::number(&db.pool, "select count(*) from pair").await;
        assert_eq!(written, i64::try_from(connections.len()).unwrap());
    }

    async fn a_transaction_that_is_kept_is_not_committed(db) {
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

    async fn read_only_does_not_write(db) {
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
        assert_eq!(write.is_ok(), database::ONE_WRITER, "SQLite undoes it, the others refuse");
        assert_eq!(database::number(&db.pool, "select count(*) from pair where n = 1").await, 0);
    }
}

macro_rules! after_a_deadlock {
    ($($database:ident)*) => {$(
        mod $database {
            use super::*;
            use outbox_tests::database::$database as database;

            /// A closure that repeats the statement that was the victim of a deadlock, and goes
            /// on as if nothing had happened: nothing that it wrote stays, before or after.
            #[tokio::test]
            async fn a_statement_cannot_be_retried_by_itself() {
                let db = database::fresh().await;
                database::execute(&db.pool, TABLE).await;
                database::execute(&db.pool, ROWS).await;
                database::execute(&db.pool, "create table audit (who bigint)").await;
                let scene = Scene::of(&db);
                let meet = Arc::new(Barrier::new(2));
                let run = |mine: i64, other: i64| {
                    let (transactions, meet) = (scene.transactions.clone(), Arc::clone(&meet));
                    async move {
                        transactions.transaction("Stubborn").policy(stubborn()).run(async |mut tx| {
                            let add = |id: i64| sqlx::AssertSqlSafe(format!("update pair set n = n + 1 where id = {id}"));
                            let note = |who: i64| sqlx::AssertSqlSafe(format!("insert into audit values ({who})"));
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
                    both => panic!("one has to be the victim: {both:?}"),
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
