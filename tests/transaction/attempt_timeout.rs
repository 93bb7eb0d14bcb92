//! An attempt that takes too long: its statement ends on the server, and its connection is usable.

use std::time::Duration;

use outbox::transaction::{Deadline, Reason, Stopped, Transactions, TxRetry};
use tokio::time::{sleep, timeout};

use crate::scene::{Oops, Scene};

const ACCOUNT: &str = "create table account (id bigint primary key, cents bigint not null)";
const FULL: &str = "insert into account values (1, 0)";
const ADD: &str = "update account set cents = cents + 1";
const CENTS: &str = "select cents from account";
/// Far longer than any step of these tests, and far shorter than the lock waits that must end.
const SOON: Duration = Duration::from_secs(10);
const ATTEMPT: Duration = Duration::from_secs(1);

/// How many sessions of the test's database wait for a lock.
const WAITING_POSTGRES: &str = "select count(*) from pg_stat_activity \
    where datname = current_database() and wait_event_type = 'Lock'";
/// The statements that run. `innodb_trx` shows old rows if it is read often.
const WAITING_MYSQL: &str = "select count(*) from information_schema.processlist \
    where db = database() and info like 'update account%'";
/// SQLite has no server to ask: a connection that waits cannot be acquired.
const WAITING_SQLITE: &str = "select 0";

const SLOW_SQLITE: &str = "insert into account with recursive n (i) as \
    (select 10 union all select i + 1 from n) select i, i from n limit 1000000000";

macro_rules! attempt_timeouts {
    ($($database:ident: $waiting:expr, $slow:expr, $seen:expr;)*) => {$(
        mod $database {
            use super::*;
            use outbox_tests::database::$database as database;

            /// A pool of this many connections to a database with one account.
            macro_rules! small_pool {
                ($size:expr) => {{
                    let db = database::fresh().await;
                    database::execute(&db.pool, ACCOUNT).await;
                    database::execute(&db.pool, FULL).await;
                    let options = (*db.pool.connect_options()).clone();
                    let pool = db.pool.options().clone().max_connections($size);
                    (pool.connect_with(options).await.unwrap(), db)
                }};
            }

            /// Waits until as many sessions wait for a lock as `waiting` says.
            macro_rules! until_waiting {
                ($pool:expr, $number:expr) => {
                    let seen = async {
                        while database::number($pool, $waiting).await != $number {
                            sleep(Duration::from_millis(10)).await;
                        }
                    };
                    timeout(SOON, seen).await.unwrap();
                };
            }

            /// Asserts that a connection of the pool is free and usable while others are held.
            macro_rules! assert_usable {
                ($pool:expr) => {
                    let next = Transactions::new($pool.clone());
                    let run = next.transaction("Next").read_only().run(async |mut tx| {
                        let cents: i64 = sqlx::query_scalar(CENTS).fetch_one(&mut *tx).await?;
                        Ok::<_, Oops>(cents)
                    });
                    assert_eq!(timeout(SOON, run).await.unwrap().unwrap(), 0);
                };
            }

            #[tokio::test]
            async fn a_lock_wait_ends_on_the_server() {
                let (pool, db) = small_pool!(2);
                let mut other = pool.begin_with($seen).await.unwrap();
                sqlx::query(ADD).execute(&mut *other).await.unwrap();
                for (limit, deadline, reason, stopped) in [
                    (Some(ATTEMPT), None, Reason::AttemptTimeout, Stopped::NotRetryable),
                    (None, Some(ATTEMPT), Reason::Deadline, Stopped::Deadline),
                ] {
                    let transactions = Transactions::new(pool.clone());
                    let policy = TxRetry::interactive().attempt_timeout(limit);
                    let deadline = Deadline::after(deadline.unwrap_or(SOON));
                    let run = transactions.transaction("Wait").policy(policy).deadline(deadline);
                    let waits = run.run(async |mut tx| {
                        sqlx::query(ADD).execute(&mut *tx).await?;
                        Ok::<_, Oops>(())
                    });
                    let (error, ()) = tokio::join!(timeout(SOON, waits), async {
                        until_waiting!(&db.pool, i64::from($waiting != WAITING_SQLITE));
                    });
                    let error = error.unwrap().unwrap_err();
                    assert_eq!((error.reason(), error.stopped(), error.attempts()), (reason, stopped, 1));
                    assert_eq!(database::number(&db.pool, $waiting).await, 0);
                    assert_usable!(pool);
                }
                other.rollback().await.unwrap();
            }

            #[tokio::test]
            async fn a_lock_wait_ends_when_the_future_is_dropped() {
                let (pool, db) = small_pool!(2);
                let mut other = pool.begin_with($seen).await.unwrap();
                sqlx::query(ADD).execute(&mut *other).await.unwrap();
                let transactions = Transactions::new(pool.clone());
                // SQLite ends the wait at the limit, not when the future is dropped.
                let policy = TxRetry::interactive().attempt_timeout(2 * ATTEMPT);
                let run = transactions.transaction("Wait").policy(policy);
                let waits = run.run(async |mut tx| {
                    sqlx::query(ADD).execute(&mut *tx).await?;
                    Ok::<_, Oops>(())
                });
                timeout(ATTEMPT, waits).await.unwrap_err();
                until_waiting!(&db.pool, 0);
                assert_usable!(pool);
                other.rollback().await.unwrap();
            }

            #[tokio::test]
            async fn a_slow_statement_ends_on_the_server() {
                // The pool has no second connection that could end the statement.
                let (pool, db) = small_pool!(1);
                let transactions = Transactions::new(pool.clone());
                let policy = TxRetry::interactive().attempt_timeout(ATTEMPT);
                let slow = transactions.transaction("Slow").policy(policy).run(async |mut tx| {
                    sqlx::query(ADD).execute(&mut *tx).await?;
                    sqlx::query($slow).execute(&mut *tx).await?;
                    Ok::<_, Oops>(())
                });
                let error = timeout(SOON, slow).await.unwrap().unwrap_err();
                assert_eq!((error.reason(), error.attempts()), (Reason::AttemptTimeout, 1));
                assert_usable!(pool);
                // Nothing of it was committed, and its locks are free.
                let add = transactions.transaction("Add").run(async |mut tx| {
                    sqlx::query(ADD).execute(&mut *tx).await?;
                    Ok::<_, Oops>(())
                });
                timeout(SOON, add).await.unwrap().unwrap();
                assert_eq!(database::number(&db.pool, CENTS).await, 1);
            }

            #[tokio::test]
            async fn a_patient_policy_tries_again() {
                let (pool, db) = small_pool!(2);
                let scene = Scene::on(pool.clone());
                let mut other = pool.begin_with($seen).await.unwrap();
                sqlx::query(ADD).execute(&mut *other).await.unwrap();
                let release = tokio::spawn(async move {
                    sleep(ATTEMPT * 3 / 2).await;
                    other.rollback().await.unwrap();
                });
                let policy = TxRetry::background().attempt_timeout(ATTEMPT).max_attempts(20);
                let run = scene.transactions.transaction("Wait").policy(policy);
                let attempts = run.run(async |mut tx| {
                    sqlx::query(ADD).execute(&mut *tx).await?;
                    Ok::<_, Oops>(tx.attempt())
                });
                assert!(attempts.await.unwrap() >= 2);
                assert!(scene.counted.of("retry Wait attempt_timeout") >= 1);
                release.await.unwrap();
                assert_eq!(database::number(&db.pool, CENTS).await, 1);
            }

            #[tokio::test]
            async fn without_a_connection_it_is_a_timeout_of_the_pool() {
                let (pool, _db) = small_pool!(1);
                let occupied = pool.acquire().await.unwrap();
                let transactions = Transactions::new(pool.clone());
                let policy = TxRetry::background().attempt_timeout(Duration::from_millis(50));
                let run = transactions.transaction("Any").policy(policy);
                let error = run.run(async |_| Ok::<_, Oops>(())).await.unwrap_err();
                assert_eq!((error.reason(), error.attempts()), (Reason::PoolTimeout, 1));
                drop(occupied);
            }
        }
    )*};
}

attempt_timeouts! {
    postgres: WAITING_POSTGRES, "select pg_sleep(120)", "begin";
    mysql: WAITING_MYSQL, "select sleep(120)", "begin";
    sqlite: WAITING_SQLITE, SLOW_SQLITE, "begin immediate";
}

/// The lower busy timeout holds only while the transaction begins.
#[tokio::test]
async fn sqlite_gets_its_busy_timeout_back() {
    use outbox_tests::database::sqlite as database;

    let db = database::fresh().await;
    let options = (*db.pool.connect_options()).clone();
    let pool = db.pool.options().clone().max_connections(1);
    let pool = pool.connect_with(options).await.unwrap();
    let configured = database::number(&pool, "pragma busy_timeout").await;
    assert_eq!(configured, 30_000);
    let transactions = Transactions::new(pool.clone());
    let policy = || TxRetry::interactive().attempt_timeout(Duration::from_millis(300));
    let inside = transactions.transaction("Begin").policy(policy());
    let inside = inside.run(async |mut tx| {
        let found: i64 = sqlx::query_scalar("pragma busy_timeout")
            .fetch_one(&mut *tx)
            .await?;
        Ok::<_, Oops>(found)
    });
    assert_eq!(inside.await.unwrap(), configured);
    let other = db.pool.begin_with("begin immediate").await.unwrap();
    let waits = transactions.transaction("Begin").policy(policy());
    let error = waits.run(async |_| Ok::<_, Oops>(())).await.unwrap_err();
    assert_eq!(error.reason(), Reason::AttemptTimeout);
    other.rollback().await.unwrap();
    assert_eq!(
        database::number(&pool, "pragma busy_timeout").await,
        configured
    );
}

/// A stopped attempt leaves no setting of its session behind.
#[tokio::test]
async fn mysql_gets_its_autocommit_back() {
    use outbox_tests::database::mysql as database;

    let db = database::fresh().await;
    let options = (*db.pool.connect_options()).clone();
    let pool = db.pool.options().clone().max_connections(1);
    let pool = pool.connect_with(options).await.unwrap();
    let ids = "select cast(connection_id() as signed)";
    let before = database::number(&pool, ids).await;
    let transactions = Transactions::new(pool.clone());
    let policy = TxRetry::interactive().attempt_timeout(Duration::from_millis(300));
    let slow = transactions.transaction("Slow").policy(policy);
    let slow = slow.run(async |mut tx| {
        sqlx::query("select sleep(120)").execute(&mut *tx).await?;
        Ok::<_, Oops>(())
    });
    assert_eq!(slow.await.unwrap_err().reason(), Reason::AttemptTimeout);
    assert_eq!(database::number(&pool, "select @@autocommit").await, 1);
    assert_eq!(
        database::number(&pool, ids).await,
        before,
        "the connection was closed"
    );
}
