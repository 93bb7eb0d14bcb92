//! A conflict of a handler's transaction with another one is not the fault of the event: the attempt
//! is repeated at once, and uses up no retry.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use outbox::{HandlerError, Metadata, Outbox, Registry, State, Tx, outbox_handler};
use outbox_tests::effects::{Effect, TABLE};
use sqlx::{ConnectOptions as _, MySql, Pool, Postgres, Sqlite};

use crate::scene::{eventually, quick};

/// How many invocations conflict, and the invocations so far.
#[derive(Clone)]
struct Contention {
    conflicts: u32,
    invocations: Arc<AtomicU32>,
    /// The number of the attempt that succeeded.
    succeeded_at: Arc<AtomicU32>,
}

impl Contention {
    fn of(conflicts: u32) -> Self {
        Self {
            conflicts,
            invocations: Arc::default(),
            succeeded_at: Arc::default(),
        }
    }
}

/// The handler and the tests of one database. `conflict` returns an error of the server, as if another
/// transaction had won.
macro_rules! conflicts {
    ($($database:ident on $Db:ty { $conflict:item })*) => {$(
        mod $database {
            use super::*;

            $conflict

            #[outbox_handler(id = "contended")]
            async fn contended(
                event: Effect,
                meta: &Metadata,
                State(contention): State<Contention>,
                State(pool): State<Pool<$Db>>,
                mut tx: Tx<'_, $Db>,
            ) -> Result<(), HandlerError> {
                event.write_sql().execute(&mut *tx).await?;
                if contention.invocations.fetch_add(1, Ordering::Relaxed) < contention.conflicts {
                    conflict(&pool, &mut tx).await?;
                }
                contention.succeeded_at.store(meta.attempt(), Ordering::Relaxed);
                Ok(())
            }

            async fn handle(conflicts: u32) -> (Contention, i64, i64) {
                let db = outbox_tests::database::$database::fresh().await;
                sqlx::query(TABLE).execute(&db.pool).await.unwrap();
                let contention = Contention::of(conflicts);
                let registry = Registry::builder().handler::<contended>();
                let registry = registry.state(contention.clone()).state(db.pool.clone());
                // No retry at all: a conflict that used one up would fail the record.
                let builder = Outbox::builder(db.pool.clone()).registry(registry).retry_policy(quick(0));
                let outbox = builder.build().await.unwrap();
                let dispatcher = outbox.start().await.unwrap();
                let mut tx = db.pool.begin().await.unwrap();
                outbox.publish(&mut tx, &Effect { key: "k".to_owned(), n: 1 }).await.unwrap();
                tx.commit().await.unwrap();
                eventually("a success", async || contention.succeeded_at.load(Ordering::Relaxed) > 0).await;
                dispatcher.shutdown().await.unwrap();
                let number = async |sql| outbox_tests::database::$database::number(&db.pool, sql).await;
                let failures = number("select count(*) from outbox_failure").await;
                (contention, number("select count(*) from effect").await, failures)
            }

            #[tokio::test]
            async fn a_few_conflicts_are_repeated_within_the_first_attempt() {
                let (contention, effects, failures) = handle(4).await;
                assert_eq!(contention.invocations.load(Ordering::Relaxed), 5);
                assert_eq!(contention.succeeded_at.load(Ordering::Relaxed), 1);
                assert_eq!((effects, failures), (1, 0));
            }

            #[tokio::test]
            async fn after_that_the_database_counts_as_unavailable() {
                let (contention, effects, failures) = handle(7).await;
                assert_eq!(contention.invocations.load(Ordering::Relaxed), 8);
                assert_eq!(contention.succeeded_at.load(Ordering::Relaxed), 2);
                assert_eq!((effects, failures), (1, 1));
            }
        }
    )*};
}

conflicts! {
    postgres on Postgres {
        async fn conflict(_: &Pool<Postgres>, tx: &mut Tx<'_, Postgres>) -> Result<(), sqlx::Error> {
            let raise = "do $$ begin raise exception 'contended' using errcode = '40001'; end $$";
            sqlx::raw_sql(raise).execute(&mut **tx).await.map(drop)
        }
    }
    mysql on MySql {
        async fn conflict(_: &Pool<MySql>, tx: &mut Tx<'_, MySql>) -> Result<(), sqlx::Error> {
            let signal = "signal sqlstate '40001' set mysql_errno = 1213, message_text = 'contended'";
            sqlx::raw_sql(signal).execute(&mut **tx).await.map(drop)
        }
    }
    sqlite on Sqlite {
        /// A second connection cannot write while the handler's transaction does.
        async fn conflict(pool: &Pool<Sqlite>, _: &mut Tx<'_, Sqlite>) -> Result<(), sqlx::Error> {
            let options = (*pool.connect_options()).clone().busy_timeout(Duration::ZERO);
            let mut other = options.connect().await?;
            sqlx::query("insert into effect values (2)").execute(&mut other).await.map(drop)
        }
    }
}
