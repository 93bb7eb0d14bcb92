//! Instances and leases in PostgreSQL.

use sqlx::{PgConnection, Postgres, SqlStr};
use uuid::Uuid;

use super::{PostgresStatements, signed};
use crate::store::{ClusterView, Fence, LeaseSql, columns::read_all};

impl LeaseSql for Postgres {
    async fn seed_partitions(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        partitions: u16,
    ) -> Result<(), sqlx::Error> {
        let seed = sqlx::query(sql.seed_partitions.clone()).bind(i32::from(partitions));
        seed.execute(connection).await.map(drop)
    }

    async fn heartbeat(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        extend(connection, &sql.heartbeat, owner, micros).await
    }

    async fn renew(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        extend(connection, &sql.renew, owner, micros).await
    }

    async fn leave(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        owner: Uuid,
        frees: bool,
    ) -> Result<(), sqlx::Error> {
        of_instance(connection, &sql.delete_instance, owner).await?;
        if frees {
            of_instance(connection, &sql.free_leases, owner).await?;
        }
        Ok(())
    }

    async fn cluster_view(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
    ) -> Result<ClusterView, sqlx::Error> {
        let rows = sqlx::query(sql.cluster_view.clone());
        let rows = read_all(&rows.fetch_all(connection).await?)?;
        Ok(ClusterView::of(rows))
    }

    async fn take_partitions(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        owner: Uuid,
        parts: &[u16],
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(sql.take_partitions.clone())
            .bind(owner)
            .bind(micros)
            .bind(signed(parts))
            .execute(connection)
            .await
            .map(drop)
    }

    async fn release_leases(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        fence: &Fence,
        reserved: Option<i64>,
    ) -> Result<(), sqlx::Error> {
        let (parts, epochs) = fence.columns();
        sqlx::query(sql.release_leases.clone())
            .bind(parts)
            .bind(epochs)
            .bind(fence.owner)
            .bind(reserved)
            .execute(connection)
            .await
            .map(drop)
    }

    async fn lock_leases(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        fence: &Fence,
    ) -> Result<Vec<u16>, sqlx::Error> {
        let (parts, epochs) = fence.columns();
        let held: Vec<i16> = sqlx::query_scalar(sql.lock_leases.clone())
            .bind(parts)
            .bind(epochs)
            .bind(fence.owner)
            .fetch_all(connection)
            .await?;
        Ok(held.iter().map(|part| part.cast_unsigned()).collect())
    }

    async fn reap_expired(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        of_instance(connection, &sql.reap_expired, instance).await
    }
}

async fn of_instance(
    connection: &mut PgConnection,
    statement: &SqlStr,
    instance: Uuid,
) -> Result<(), sqlx::Error> {
    let query = sqlx::query(statement.clone()).bind(instance);
    query.execute(connection).await.map(drop)
}

async fn extend(
    connection: &mut PgConnection,
    statement: &SqlStr,
    owner: Uuid,
    micros: i64,
) -> Result<(), sqlx::Error> {
    let query = sqlx::query(statement.clone()).bind(owner).bind(micros);
    query.execute(connection).await.map(drop)
}
