//! Handlers that take a `Tx`: the database keeps their effects exactly once.

use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use outbox::{
    Config, Error, HandlerError, Metadata, Outbox, Registry, State, Tx, outbox_handler,
    registry::Problem,
};
use outbox_tests::effects::{Effect, TABLE};
use sqlx::{MySql, Postgres, Sqlite};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::scene::{eventually, quick};

/// How often each handler was invoked.
#[derive(Clone, Default)]
struct Calls {
    transactional: Arc<AtomicU32>,
    plain: Arc<AtomicU32>,
}

/// The handlers and tests of one database. `effect` fails after its write in the first two
/// attempts.
macro_rules! handlers {
    ($($database:ident on $Db:ty,)*) => {$(
        mod $database {
            use super::*;

            #[outbox_handler(id = "effect")]
            pub(super) async fn effect(
                event: Effect,
                meta: &Metadata,
                State(calls): State<Calls>,
                mut tx: Tx<'_, $Db>,
            ) -> Result<(), HandlerError> {
                calls.transactional.fetch_add(1, Ordering::Relaxed);
                event.write_sql().execute(&mut *tx).await?;
                match meta.attempt() {
                    ..=2 => Err("after the write".into()),
                    _ => Ok(()),
                }
            }

            #[outbox_handler(id = "falls-back", fallback = instead)]
            pub(super) async fn falls_back(_: Effect) -> Result<(), HandlerError> {
                Err(HandlerError::permanent("never"))
            }

            async fn instead(event: Effect, mut tx: Tx<'_, $Db>) -> Result<(), sqlx::Error> {
                event.write_sql().execute(&mut *tx).await?;
                Ok(())
            }

            #[tokio::test]
            async fn a_failed_attempt_leaves_nothing_and_a_successful_one_exactly_one_effect() {
                let db = outbox_tests::database::$database::fresh().await;
                sqlx::query(TABLE).execute(&db.pool).await.unwrap();
                for others in [0, 1] {
                    let calls = Calls::default();
                    let mut registry = Registry::builder().handler::<effect>().state(calls.clone());
                    if others > 0 {
                        registry = registry.handler::<plain>();
                    }
                    let outbox = Outbox::builder(db.pool.clone()).registry(registry)
                        .retry_policy(quick(9)).build().await.unwrap();
                    let mut tx = db.pool.begin().await.unwrap();
                    for n in 0..20 {
                        let key = (n % 3).to_string();
                        outbox.publish(&mut tx, &Effect { key, n: n + 100 * others }).await.unwrap();
                    }
                    tx.commit().await.unwrap();
                    let dispatcher = outbox.start().await.unwrap();
                    done(&db.pool).await;
                    dispatcher.shutdown().await.unwrap();
                    let made = calls.transactional.load(Ordering::Relaxed);
                    match stringify!($database) {
                        // The dispatcher repeats an attempt after a deadlock with its own writer.
                        "mysql" => assert!((60..70).contains(&made), "{made}"),
                        _ => assert_eq!(made, 60),
                    }
                    assert_eq!(i64::from(calls.plain.load(Ordering::Relaxed)), 20 * others);
                }
                let mut written: Vec<i64> = sqlx::query_scalar("select n from effect")
                    .fetch_all(&db.pool).await.unwrap();
                written.sort_unstable();
                let expected: Vec<i64> = (0..20).chain(100..120).collect();
                assert_eq!(written, expected);
            }

            #[tokio::test]
            async fn a_fallback_may_take_the_transaction_too() {
                let db = outbox_tests::database::$database::fresh().await;
                sqlx::query(TABLE).execute(&db.pool).await.unwrap();
                let outbox = Outbox::builder(db.pool.clone())
                    .registry(Registry::builder().handler::<falls_back>()).build().await.unwrap();
                let mut tx = db.pool.begin().await.unwrap();
                outbox.publish(&mut tx, &Effect { key: "a".to_owned(), n: 1 }).await.unwrap();
                tx.commit().await.unwrap();
                let dispatcher = outbox.start().await.unwrap();
                done(&db.pool).await;
                dispatcher.shutdown().await.unwrap();
                let written: Vec<i64> = sqlx::query_scalar("select n from effect").fetch_all(&db.pool).await.unwrap();
                assert_eq!(written, [1]);
            }

            #[outbox_handler(id = "at-once")]
            async fn at_once(event: Effect, mut tx: Tx<'_, $Db>) -> Result<(), sqlx::Error> {
                event.write_sql().execute(&mut *tx).await?;
                Ok(())
            }

                        /// A process that is killed at any moment therefore leaves one effect.
                        #[tokio::test]
            async fn an_effect_and_its_completion_are_never_seen_apart() {
                let db = outbox_tests::database::$database::fresh().await;
                sqlx::query(TABLE).execute(&db.pool).await.unwrap();
                let outbox = Outbox::builder(db.pool.clone())
                    .registry(Registry::builder().handler::<at_once>())
                    .retry_policy(quick(9)).build().await.unwrap();
                let mut tx = db.pool.begin().await.unwrap();
                for n in 0..300 {
                    outbox.publish(&mut tx, &Effect { key: (n % 30).to_string(), n }).await.unwrap();
                }
                tx.commit().await.unwrap();
                let dispatcher = outbox.start().await.unwrap();
                // One statement reads both counts from the same snapshot.
                let both = "select (select count(*) from effect),
                    (select count(*) from outbox_record where status = 'completed')";
                eventually("all effects", async || {
                    let (effects, completed): (i64, i64) =
                        sqlx::query_as(both).fetch_one(&db.pool).await.unwrap();
                    assert_eq!(effects, completed);
                    completed == 300
                }).await;
                dispatcher.shutdown().await.unwrap();
            }

            /// Ends the transaction in its first attempt, as a database does after a deadlock.
            #[outbox_handler(id = "ends-transaction")]
            async fn ends_transaction(event: Effect, meta: &Metadata, mut tx: Tx<'_, $Db>) -> Result<(), HandlerError> {
                event.write_sql().execute(&mut *tx).await?;
                if meta.attempt() == 1 {
                    sqlx::query("rollback").execute(&mut *tx).await?;
                }
                Ok(())
            }

            #[tokio::test]
            async fn a_transaction_that_the_database_ended_completes_no_record() {
                let db = outbox_tests::database::$database::fresh().await;
                sqlx::query(TABLE).execute(&db.pool).await.unwrap();
                let outbox = Outbox::builder(db.pool.clone())
                    .registry(Registry::builder().handler::<ends_transaction>())
                    .retry_policy(quick(0)).build().await.unwrap();
                let mut tx = db.pool.begin().await.unwrap();
                outbox.publish(&mut tx, &Effect { key: "a".to_owned(), n: 1 }).await.unwrap();
                tx.commit().await.unwrap();
                let dispatcher = outbox.start().await.unwrap();
                done(&db.pool).await;
                dispatcher.shutdown().await.unwrap();
                let written: Vec<i64> = sqlx::query_scalar("select n from effect").fetch_all(&db.pool).await.unwrap();
                assert_eq!(written, [1]);
            }

            #[tokio::test]
            async fn a_process_killed_between_write_and_completion_leaves_one_effect() {
                let db = outbox_tests::database::$database::fresh().await;
                sqlx::query(TABLE).execute(&db.pool).await.unwrap();
                let mut tx = db.pool.begin().await.unwrap();
                db.outbox.publish(&mut tx, &Effect { key: "a".to_owned(), n: 7 }).await.unwrap();
                tx.commit().await.unwrap();
                kill_after_its_write(&db.url()).await;
                let mut config = Config::default();
                config.poll_interval = Duration::from_millis(200);
                let calls = Calls::default();
                let outbox = Outbox::builder(db.pool.clone()).config(config)
                    .registry(Registry::builder().handler::<effect>().state(calls.clone()))
                    .retry_policy(quick(9)).build().await.unwrap();
                let dispatcher = outbox.start().await.unwrap();
                done(&db.pool).await;
                dispatcher.shutdown().await.unwrap();
                let written: Vec<i64> = sqlx::query_scalar("select n from effect").fetch_all(&db.pool).await.unwrap();
                assert_eq!(written, [7]);
                assert!(calls.transactional.load(Ordering::Relaxed) >= 3);
            }

            async fn done(pool: &sqlx::Pool<$Db>) {
                eventually("all records to be completed", async || {
                    let open: i64 = sqlx::query_scalar("select count(*) from outbox_record where status <> 'completed'")
                        .fetch_one(pool).await.unwrap();
                    open == 0
                }).await;
            }
        }
    )*};
}

handlers! {
    sqlite on Sqlite,
    postgres on Postgres,
    mysql on MySql,
}

#[outbox_handler(id = "plain")]
async fn plain(_: Effect, State(calls): State<Calls>) {
    calls.plain.fetch_add(1, Ordering::Relaxed);
}

/// Starts a process whose handler writes and then hangs, and kills it there.
async fn kill_after_its_write(url: &str) {
    let mut victim = tokio::process::Command::new(env!("CARGO_BIN_EXE_victim"))
        .args(["hang", url])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the victim");
    let output = victim.stdout.take().expect("its output");
    let mut lines = BufReader::new(output).lines();
    let read = tokio::time::timeout(Duration::from_secs(30), lines.next_line()).await;
    let line = read.expect("in time").expect("a line");
    assert_eq!(line.as_deref(), Some("written"));
    victim.kill().await.expect("to be killed");
}

#[tokio::test]
async fn a_handler_with_a_transaction_of_another_database_fails_the_build() {
    let pool = sqlx::SqlitePool::connect_lazy("sqlite::memory:").unwrap();
    let registry = Registry::builder()
        .handler::<postgres::effect>()
        .state(Calls::default());
    let error = Outbox::builder(pool)
        .registry(registry)
        .build()
        .await
        .unwrap_err();
    let Error::Registry(error) = error else {
        panic!("{error}")
    };
    assert!(
        matches!(
            error.problems(),
            [Problem::OtherDatabase {
                handler: "effect",
                ..
            }]
        ),
        "{error}"
    );
    assert!(error.to_string().contains("takes a `Tx` of `sqlx_postgres::database::Postgres`, but this outbox is on `sqlx_sqlite::database::Sqlite`"), "{error}");
}
