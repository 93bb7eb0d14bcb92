//! What SQLite does in its own way.

use sqlx::{
    Row as _, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use crate::store::{
    Database, DeliverySql, Driver, FetchSql, LeaseSql, OpenWriters, PublishSql, SchemaSql,
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
    /// There is one writer at a time, and it draws its ids after it has become that.
    async fn open_writers(
        _: &mut SqliteConnection,
        _: &Statements,
    ) -> Result<OpenWriters, sqlx::Error> {
        Ok(OpenWriters::Serial)
    }
}

impl SettleSql for Sqlite {
    /// How soon SQLite writes to its disk is a setting of the whole connection pool.
    async fn configure(_: &mut SqliteConnection, _: bool) -> Result<(), sqlx::Error> {
        Ok(())
    }
}
