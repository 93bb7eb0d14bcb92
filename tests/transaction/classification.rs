//! Real errors of the databases, and the reason that each is classified as.

use std::time::Duration;

use outbox::transaction::{Cause, Reason, TxRetry};
use outbox_tests::on_each_database;

use crate::scene::{Oops, Scene};

/// The reason with which a transaction of this statement fails.
macro_rules! reason {
    ($db:ident, $sql:expr) => {{
        let run = $db.outbox.transaction("Try").run(async |mut tx| {
            sqlx::query(sqlx::AssertSqlSafe($sql.to_owned()))
                .execute(&mut *tx)
                .await?;
            Ok::<_, Oops>(())
        });
        let error = run.await.unwrap_err();
        assert_eq!(error.attempts(), 1, "{error:?}");
        error.reason()
    }};
}

const TABLES: [&str; 3] = [
    "create table parent (id bigint primary key)",
    "create table child (id bigint primary key, parent bigint not null, n bigint,
        constraint positive check (n > 0), foreign key (parent) references parent (id))",
    "insert into parent values (1)",
];

on_each_database! {
    async fn each_mistake_has_its_own_reason_and_is_not_retried(db) {
        for sql in TABLES {
            database::execute(&db.pool, sql).await;
        }
        assert_eq!(reason!(db, "insert into parent values (1)"), Reason::UniqueViolation);
        assert_eq!(reason!(db, "insert into child values (1, 99, 1)"), Reason::ForeignKeyViolation);
        assert_eq!(reason!(db, "insert into child values (1, 1, -1)"), Reason::CheckViolation);
        assert_eq!(reason!(db, "insert into child values (1, null, 1)"), Reason::NotNullViolation);
        assert_eq!(reason!(db, "insert parent into"), Reason::SyntaxError);
        assert_eq!(reason!(db, "insert into nowhere values (1)"), Reason::MissingObject);
        assert_eq!(reason!(db, "update parent set other = 1"), Reason::MissingObject);
    }

    async fn a_full_pool_is_not_retried(db) {
        let pool = db.pool.options().clone()
            .max_connections(1)
            .acquire_timeout(Duration::from_millis(30))
            .connect_with((*db.pool.connect_options()).clone()).await.unwrap();
        let occupied = pool.acquire().await.unwrap();
        let transactions = outbox::transaction::Transactions::new(pool.clone());
        let error = transactions.transaction("Any")
            .policy(TxRetry::background())
            .run(async |_| Ok::<_, Oops>(())).await.unwrap_err();
        assert_eq!((error.reason(), error.attempts()), (Reason::PoolTimeout, 1));
        drop(occupied);
    }
}

/// Timeouts of locks and statements.
macro_rules! timeouts {
    ($($database:ident: $lock:literal, $statement:literal, $slow:literal;)*) => {$(
        mod $database {
            use super::*;
            use outbox_tests::database::$database as database;

            #[tokio::test]
            async fn lock_and_statement_timeouts_have_their_own_reasons_and_the_policy_decides_about_retries() {
                let db = database::fresh().await;
                for sql in TABLES {
                    database::execute(&db.pool, sql).await;
                }
                let mut other = db.pool.begin().await.unwrap();
                sqlx::query("update parent set id = id + 10").execute(&mut *other).await.unwrap();
                for (policy, attempts) in [(TxRetry::interactive(), 1), (TxRetry::background(), 5)] {
                    let scene = Scene::of(&db);
                    let error = scene.transactions.transaction("Wait").policy(policy).run(async |mut tx| {
                        sqlx::query($lock).execute(&mut *tx).await?;
                        sqlx::query("update parent set id = id + 1").execute(&mut *tx).await?;
                        Ok::<_, Oops>(())
                    }).await.unwrap_err();
                    assert_eq!((error.reason(), error.attempts()), (Reason::LockTimeout, attempts));
                    assert_eq!(scene.counted.of("lock_timeout Wait"), attempts as usize);
                }
                other.rollback().await.unwrap();
                let scene = Scene::of(&db);
                let background = scene.transactions.transaction("Slow").policy(TxRetry::background());
                let error = background.run(async |mut tx| {
                    sqlx::query($statement).execute(&mut *tx).await?;
                    sqlx::query($slow).execute(&mut *tx).await?;
                    Ok::<_, Oops>(())
                }).await.unwrap_err();
                assert_eq!((error.reason(), error.attempts()), (Reason::StatementTimeout, 1));
            }
        }
    )*};
}

mod waiting {
    use super::*;

    timeouts! {
        postgres: "set local lock_timeout = '10ms'", "set local statement_timeout = '20ms'", "select pg_sleep(5)";
        mysql: "set innodb_lock_wait_timeout = 1", "set max_statement_time = 0.02",
            "select count(*) from seq_1_to_100000000000 where seq % 7 = 3";
    }
}

mod permission {
    use super::*;
    use outbox_tests::database::postgres as database;

    #[tokio::test]
    async fn a_denied_permission_is_not_retried() {
        let db = database::fresh().await;
        database::execute(&db.pool, TABLES[0]).await;
        let run = db.outbox.transaction("Peek").run(async |mut tx| {
            sqlx::query("set local role pg_monitor")
                .execute(&mut *tx)
                .await?;
            sqlx::query("insert into parent values (1)")
                .execute(&mut *tx)
                .await?;
            Ok::<_, Oops>(())
        });
        let error = run.await.unwrap_err();
        assert_eq!(
            (error.reason(), error.attempts()),
            (Reason::PermissionDenied, 1)
        );
    }
}

/// MySQL has a number for each kind of denied permission.
mod mysql_permission {
    use outbox::transaction::Transactions;
    use outbox_tests::database::mysql as database;
    use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlPoolOptions};

    use super::*;

    /// The number of the server's error and the reason with which a transaction of this statement
    /// fails on a connection with these options.
    async fn refusal(options: MySqlConnectOptions, sql: &str) -> (u16, Reason) {
        let transactions = Transactions::new(MySqlPoolOptions::new().connect_lazy_with(options));
        let run = transactions
            .transaction("Peek")
            .policy(TxRetry::background());
        let error = run
            .run(async |mut tx| {
                let sql = sqlx::AssertSqlSafe(sql.to_owned());
                sqlx::raw_sql(sql).execute(&mut *tx).await?;
                Ok::<_, Oops>(())
            })
            .await
            .unwrap_err();
        assert_eq!(error.attempts(), 1, "{error:?}");
        let source = match error.cause() {
            Cause::Database { source, .. } | Cause::Closure(Oops::Database(source)) => source,
            other => unreachable!("{other:?}"),
        };
        let source = source.as_database_error().unwrap();
        let number = source.downcast_ref::<MySqlDatabaseError>().number();
        (number, error.reason())
    }

    #[tokio::test]
    async fn each_denied_permission_has_the_same_reason_and_is_not_retried() {
        let db = database::fresh().await;
        let name = database::texts(&db.pool, "select database()")
            .await
            .remove(0);
        let user = format!("u{}", &name[name.len() - 12..]);
        for sql in [
            "create table seen (a int, b int)".to_owned(),
            "create table hidden (a int)".to_owned(),
            "create function seven() returns int deterministic return 7".to_owned(),
            format!("create user '{user}'@'%' identified by 'right'"),
            format!("grant select (a) on {name}.seen to '{user}'@'%'"),
        ] {
            let mut connection = db.pool.acquire().await.unwrap();
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
                .execute(&mut *connection)
                .await
                .unwrap();
        }
        let options = (*db.pool.connect_options()).clone().username(&user);
        let right = options.clone().password("right");
        let wrong = options.password("wrong");
        let denied = |number| (number, Reason::PermissionDenied);
        assert_eq!(
            refusal(right.clone(), "insert into hidden values (1)").await,
            denied(1142)
        );
        assert_eq!(
            refusal(right.clone(), "select b from seen").await,
            denied(1143)
        );
        assert_eq!(
            refusal(right.clone(), "set global max_connections = 1000").await,
            denied(1227)
        );
        assert_eq!(refusal(right.clone(), "select seven()").await, denied(1370));
        assert_eq!(
            refusal(right.database("mysql"), "select 1").await,
            denied(1044)
        );
        assert_eq!(refusal(wrong, "select 1").await, denied(1045));
        database::execute(&db.pool, &format!("drop user '{user}'@'%'")).await;
    }
}
