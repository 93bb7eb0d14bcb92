//! Instances and leases in SQLite.

use sqlx::{Connection as _, SqlStr, Sqlite, SqliteConnection};
use uuid::Uuid;

use super::SqliteStatements;
use crate::store::{ClusterView, Fence, LeaseSql, columns::read_all, settle::json};

impl LeaseSql for Sqlite {
    async fn seed_partitions(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        partitions: u16,
    ) -> Result<(), sqlx::Error> {
        let seed = sqlx::query(sql.seed_partitions.clone()).bind(i64::from(partitions));
        seed.execute(connection).await.map(drop)
    }

    async fn heartbeat(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        // The one writer from the start: SQLite may refuse a reader that wants to write.
        let mut tx = connection.begin_with("begin immediate").await?;
        extend(&mut tx, &sql.add_instance, owner, micros).await?;
        extend(&mut tx, &sql.renew, owner, micros).await?;
        tx.commit().await
    }

    async fn renew(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        extend(connection, &sql.renew, owner, micros).await
    }

    async fn leave(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
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
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
    ) -> Result<ClusterView, sqlx::Error> {
        let rows = sqlx::query(sql.cluster_view.clone());
        let rows = read_all(&rows.fetch_all(connection).await?)?;
        Ok(ClusterView::of(rows))
    }

    async fn take_partitions(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        owner: Uuid,
        parts: &[u16],
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(sql.take_partitions.clone())
            .bind(owner)
            .bind(micros)
            .bind(json(parts)?)
            .execute(connection)
            .await
            .map(drop)
    }

    async fn release_leases(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        fence: &Fence,
        reserved: Option<i64>,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(sql.release_leases.clone())
            .bind(fence.json())
            .bind(fence.owner)
            .bind(reserved)
            .execute(connection)
            .await
            .map(drop)
    }

    async fn lock_leases(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        fence: &Fence,
    ) -> Result<Vec<u16>, sqlx::Error> {
        let held = sqlx::query_scalar(sql.lock_leases.clone());
        let held = held.bind(fence.json()).bind(fence.owner);
        held.fetch_all(connection).await
    }

    async fn reap_expired(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        let mut tx = connection.begin_with("begin immediate").await?;
        if of_instance(&mut tx, &sql.delete_expired_instance, instance).await? > 0 {
            of_instance(&mut tx, &sql.free_leases, instance).await?;
        }
        tx.commit().await
    }
}

async fn of_instance(
    connection: &mut SqliteConnection,
    statement: &SqlStr,
    instance: Uuid,
) -> Result<u64, sqlx::Error> {
    let query = sqlx::query(statement.clone()).bind(instance);
    Ok(query.execute(connection).await?.rows_affected())
}

async fn extend(
    connection: &mut SqliteConnection,
    statement: &SqlStr,
    owner: Uuid,
    micros: i64,
) -> Result<(), sqlx::Error> {
    let query = sqlx::query(statement.clone()).bind(owner).bind(micros);
    query.execute(connection).await.map(drop)
}
