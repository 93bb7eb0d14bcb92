//! The driver functions in which PostgreSQL differs from other databases.

use sqlx::{
    PgConnection, Postgres, Row as _,
    postgres::{PgArguments, PgRow},
    query::Query,
};

use crate::store::{
    Database, DeliverySql, Driver, FetchSql, LeaseSql, OpenWriters, PublishSql, Role, SchemaSql,
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
        let (mut transactions, mut highest_drawn) = (Vec::new(), None);
        for row in rows::<Self>(connection, sql.open_writers.call()).await? {
            highest_drawn = row.optional_number(0)?;
            transactions.extend(row.optional_text(1)?.map(str::to_owned));
        }
        Ok(OpenWriters::Named {
            transactions,
            highest_drawn,
        })
    }
}

impl SettleSql for Postgres {
    async fn configure(connection: &mut PgConnection, _: Role) -> Result<(), sqlx::Error> {
        // PostgreSQL would keep a plan that it made for an empty table after the table has grown.
        sqlx::query("set plan_cache_mode = force_custom_plan")
            .execute(connection)
            .await
            .map(drop)
    }
}
