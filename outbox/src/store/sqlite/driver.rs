//! The driver functions in which SQLite differs from other databases.

use sqlx::{
    Row as _, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use crate::store::{
    Database, DeliverySql, Driver, FetchSql, LeaseSql, OpenWriters, PublishSql, Role, SchemaSql,
    SettleSql, Statements,
};

impl Database for Sqlite {}

impl Driver for Sqlite {}

impl SchemaSql for Sqlite {}

impl LeaseSql for Sqlite {}

impl DeliverySql for Sqlite {}

impl PublishSql for Sqlite {
    async fn inserted_id(
        connection: &mut SqliteConnection,
        query: Query<'static, Self, SqliteArguments>,
    ) -> Result<Option<i64>, sqlx::Error> {
        let row: Option<SqliteRow> = query.fetch_optional(connection).await?;
        row.map(|row| row.try_get(0)).transpose()
    }

    #[cfg(feature = "testing")]
    async fn stamp(
        connection: &mut SqliteConnection,
        names: &crate::store::TableNames,
        event_id: uuid::Uuid,
        at: i64,
    ) -> Result<(), sqlx::Error> {
        super::testing::stamp(connection, names, event_id, at).await
    }
}

impl FetchSql for Sqlite {
    /// SQLite has one writer at a time. A transaction gets its ids only after it has become the writer.
    async fn open_writers(
        _: &mut SqliteConnection,
        _: &Statements,
    ) -> Result<OpenWriters, sqlx::Error> {
        Ok(OpenWriters::Serial)
    }
}

impl SettleSql for Sqlite {
    /// When SQLite flushes to the disk is a setting of the whole connection pool.
    async fn configure(_: &mut SqliteConnection, _: Role) -> Result<(), sqlx::Error> {
        Ok(())
    }
}
