//! Migrations: one of many processes creates the tables once, and no older program changes them.

use outbox::{Config, Error, Outbox, OutboxEvent, Registry, error::Operation};
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

use outbox_tests::on_each_database;

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "migrated")]
struct Migrated {}

fn no_handlers() -> outbox::RegistryBuilder {
    Registry::builder().allow_empty()
}

on_each_database! {
    async fn ten_processes_that_start_at_once_create_the_tables_once(_db) {
        let pool = database::empty().await;
        let starts = (0..10).map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { Outbox::builder(pool).registry(no_handlers()).build().await.map(|_| ()) })
        });
        for start in starts.collect::<Vec<_>>() {
            start.await.unwrap().unwrap();
        }
        let versions: Vec<i64> = sqlx::query_scalar("select version from outbox_schema").fetch_all(&pool).await.unwrap();
        assert_eq!(versions, [1]);
    }

    async fn a_newer_schema_is_refused(db) {
        sqlx::query("update outbox_schema set version = 99").execute(&db.pool).await.unwrap();
        let error = db.outbox.migrate().await.unwrap_err();
        assert!(matches!(error, Error::NewerSchema { found: 99, known: 1 }), "{error}");
    }

    async fn the_printed_statements_create_the_same_tables(_db) {
        let pool = database::empty().await;
        let mut by_hand = Config::default();
        by_hand.schema_initialization.enabled = false;
        let outbox = Outbox::builder(pool.clone()).registry(no_handlers()).config(by_hand).build().await.unwrap();

        let mut connection = pool.acquire().await.unwrap();
        // A refused event runs no statement, so it is refused without tables too.
        let refused = outbox.schedule_raw("migrated", "no JSON").send(&mut connection).await.unwrap_err();
        assert!(matches!(refused, Error::Event(_)), "{refused}");
        let too_early = outbox.publish(&mut connection, &Migrated {}).await.unwrap_err();
        assert!(matches!(too_early, Error::Database { operation: Operation::Publish, .. }), "{too_early}");
        for statement in outbox.schema_sql().split(";\n").filter(|statement| !statement.trim().is_empty()) {
            sqlx::query(AssertSqlSafe(statement)).execute(&mut *connection).await.unwrap();
        }
        outbox.publish(&mut connection, &Migrated {}).await.unwrap();
        // A migration after that has nothing to do.
        outbox.migrate().await.unwrap();
        outbox.migrate().await.unwrap();
    }

    async fn tables_have_the_configured_prefix(db) {
        let other = Outbox::builder(db.pool.clone()).registry(no_handlers()).table_prefix("Mail_").build().await.unwrap();
        let mut connection = db.pool.acquire().await.unwrap();
        other.publish(&mut connection, &Migrated {}).await.unwrap();
        let count: i64 = sqlx::query_scalar("select count(*) from outbox_record").fetch_one(&mut *connection).await.unwrap();
        assert_eq!(count, 0);
    }

    async fn an_invalid_table_name_never_reaches_the_database(db) {
        for bad in ["x; drop table outbox_record", "a\"b", "", "schön"] {
            let prefix = Outbox::builder(db.pool.clone()).registry(no_handlers()).table_prefix(bad).build().await.unwrap_err();
            let schema = Outbox::builder(db.pool.clone()).registry(no_handlers()).schema(bad).build().await.unwrap_err();
            assert!(matches!((prefix, schema), (Error::BadName { .. }, Error::BadName { .. })), "{bad}");
        }
    }
}

/// In SQLite a schema is another file, so these tests run on the servers only.
macro_rules! with_own_schema {
    ($($database:ident)*) => {$(
        #[tokio::test]
        async fn $database() {
            let pool = outbox_tests::database::$database::empty().await;
            let schema = format!("mail{}", &uuid::Uuid::now_v7().simple().to_string()[..20]);
            let outbox = Outbox::builder(pool.clone())
                .registry(super::no_handlers())
                .schema(&schema)
                .build()
                .await
                .unwrap();
            let mut connection = pool.acquire().await.unwrap();
            outbox.publish(&mut connection, &super::Migrated {}).await.unwrap();
            let sql = AssertSqlSafe(format!("select count(*) from {schema}.outbox_record"));
            let count: i64 = sqlx::query_scalar(sql).fetch_one(&pool).await.unwrap();
            assert_eq!(count, 1);
        }
    )*};
}

mod migrate_creates_the_configured_schema {
    use outbox::Outbox;
    use sqlx::AssertSqlSafe;

    with_own_schema!(postgres mysql);
}
