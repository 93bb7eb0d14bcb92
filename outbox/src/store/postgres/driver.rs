//! What PostgreSQL does in its own way.

use sqlx::{
    PgConnection, Postgres, Row as _,
    postgres::{PgArguments, PgRow},
    query::Query,
};

use crate::store::{
    Database, DeliverySql, Driver, FetchSql, LeaseSql, OpenWriters, PublishSql, SchemaSql,
    SettleSql, Statements, call::rows, columns::Cells as _,
};

impl Database for Postgres {}

impl Driver for Postgres {}

impl SchemaSql for Postgres {}

impl LeaseSql for Postgres {}

impl DeliverySql for Postgres {}

impl PublishSql for Postgres {
    async fn inserted_id(
        connection: &mut PgConnection,
        query: Query<'static, Self, PgArguments>,
    ) -> Result<Option<i64>, sqlx::Error> {
        let row: Option<PgRow> = query.fetch_optional(connection).await?;
        row.map(|row| row.try_get(0)).transpose()
    }
}

impl FetchSql for Postgres {
    async fn open_writers(
        connection: &mut PgConnection,
        sql: &Statements,
    ) -> Result<OpenWriters, sqlx::Error> {
        let (mut names, mut drawn) = (Vec::new(), None);
        for row in rows::<Self>(connection, sql.open_writers.call()).await? {
            drawn = row.optional_number(0)?;
            names.extend(row.optional_text(1)?.map(str::to_owned));
        }
        Ok(OpenWriters::Named { names, drawn })
    }
}

impl SettleSql for Postgres {
    async fn configure(connection: &mut PgConnection, _settles: bool) -> Result<(), sqlx::Error> {
        // A plan that was made while the table was empty would be kept when it is full.
        sqlx::query("set plan_cache_mode = force_custom_plan")
            .execute(connection)
            .await
            .map(drop)
    }
}
