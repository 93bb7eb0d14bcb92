//! Instances and leases in MySQL.

use sqlx::{Connection as _, MySql, MySqlConnection, SqlStr, Transaction};
use uuid::Uuid;

use super::MySqlStatements;
use crate::store::{ClusterView, Fence, LeaseSql, columns::read_all, settle::json};

impl LeaseSql for MySql {
    async fn seed_partitions(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        partitions: u16,
    ) -> Result<(), sqlx::Error> {
        let all: Vec<u16> = (0..partitions).collect();
        let seed = sqlx::query(sql.seed_partitions.clone()).bind(json(&all)?);
        seed.execute(connection).await.map(drop)
    }

    async fn heartbeat(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let mut tx = begin(connection).await?;
        let add = sqlx::query(sql.add_instance.clone())
            .bind(owner)
            .bind(micros);
        add.execute(&mut *tx).await?;
        renew(&mut tx, sql, owner, micros).await?;
        tx.commit().await
    }

    async fn renew(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let mut tx = begin(connection).await?;
        renew(&mut tx, sql, owner, micros).await?;
        tx.commit().await
    }

    async fn leave(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        owner: Uuid,
        frees: bool,
    ) -> Result<(), sqlx::Error> {
        let mut tx = begin(connection).await?;
        of_instance(&mut tx, &sql.delete_instance, owner).await?;
        if frees {
            of_instance(&mut tx, &sql.free_leases, owner).await?;
        }
        tx.commit().await
    }

    async fn cluster_view(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
    ) -> Result<ClusterView, sqlx::Error> {
        let rows = sqlx::query(sql.cluster_view.clone());
        let rows = read_all(&rows.fetch_all(connection).await?)?;
        Ok(ClusterView::of(rows))
    }

    async fn take_partitions(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        owner: Uuid,
        parts: &[u16],
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let mut tx = begin(connection).await?;
        let mut free = sqlx::query_scalar(sql.lock_free_leases.times(parts.len()));
        for part in parts {
            free = free.bind(part.cast_signed());
        }
        let free: Vec<i16> = free.fetch_all(&mut *tx).await?;
        if !free.is_empty() {
            let take = sqlx::query(sql.take_partitions.times(free.len()));
            let mut take = take.bind(owner).bind(micros);
            for part in &free {
                take = take.bind(part);
            }
            take.execute(&mut *tx).await?;
        }
        tx.commit().await
    }

    async fn release_leases(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        fence: &Fence,
        reserved: Option<i64>,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(sql.release_leases.clone())
            .bind(fence.json())
            .bind(reserved)
            .bind(fence.owner)
            .execute(connection)
            .await
            .map(drop)
    }

    async fn lock_leases(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        fence: &Fence,
    ) -> Result<Vec<u16>, sqlx::Error> {
        let held = sqlx::query_scalar(sql.lock_leases.clone());
        let held = held.bind(fence.json()).bind(fence.owner);
        let held: Vec<i16> = held.fetch_all(connection).await?;
        Ok(held.iter().map(|part| part.cast_unsigned()).collect())
    }

    async fn reap_expired(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        let mut tx = begin(connection).await?;
        if of_instance(&mut tx, &sql.delete_expired_instance, instance).await? > 0 {
            of_instance(&mut tx, &sql.free_leases, instance).await?;
        }
        tx.commit().await
    }
}

async fn renew(
    connection: &mut MySqlConnection,
    sql: &MySqlStatements,
    owner: Uuid,
    micros: i64,
) -> Result<(), sqlx::Error> {
    let renew = sqlx::query(sql.renew.clone()).bind(micros).bind(owner);
    renew.execute(connection).await.map(drop)
}

/// How many rows it changed.
pub(super) async fn of_instance(
    connection: &mut MySqlConnection,
    statement: &SqlStr,
    instance: Uuid,
) -> Result<u64, sqlx::Error> {
    let query = sqlx::query(statement.clone()).bind(instance);
    Ok(query.execute(connection).await?.rows_affected())
}

/// A transaction in which only rows that match stay locked: otherwise every row that is looked at
/// does, also those of others.
async fn begin(connection: &mut MySqlConnection) -> Result<Transaction<'_, MySql>, sqlx::Error> {
    // For the next transaction only.
    sqlx::query("set transaction isolation level read committed")
        .execute(&mut *connection)
        .await?;
    connection.begin().await
}
