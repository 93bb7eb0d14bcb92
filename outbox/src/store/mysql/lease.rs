//! Instances and leases in MySQL.

use sqlx::{Connection as _, MySql, MySqlConnection, Transaction};
use uuid::Uuid;

use super::places;
use crate::store::{
    ClusterView, ClusterViewRow, Fence, LeaseSql, TableNames, settle::json, trusted,
};

impl LeaseSql for MySql {
    async fn seed_partitions(
        connection: &mut MySqlConnection,
        names: &TableNames,
        partitions: u16,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '`');
        let sql = trusted(format!(
            "insert ignore into {lease} (part) select p.part from json_table(?, '$[*]' columns (part smallint path '$')) p"
        ));
        let all: Vec<u16> = (0..partitions).collect();
        sqlx::query(sql)
            .bind(json(&all)?)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn heartbeat(
        connection: &mut MySqlConnection,
        names: &TableNames,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let (instance, lease) = (names.table("instance", '`'), names.table("lease", '`'));
        let mut tx = begin(connection).await?;
        let alive = trusted(format!(
            "insert into {instance} (id, started_at, expires_at)
values (?, utc_timestamp(6), utc_timestamp(6) + interval ? microsecond)
on duplicate key update expires_at = values(expires_at)"
        ));
        sqlx::query(alive)
            .bind(owner)
            .bind(micros)
            .execute(&mut *tx)
            .await?;
        // What is settled at this moment is waited for: it is to be renewed too.
        let renew = trusted(format!(
            "update {lease} set expires_at = utc_timestamp(6) + interval ? microsecond where owner = ?"
        ));
        sqlx::query(renew)
            .bind(micros)
            .bind(owner)
            .execute(&mut *tx)
            .await?;
        tx.commit().await
    }

    async fn renew(
        connection: &mut MySqlConnection,
        names: &TableNames,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '`');
        let sql = trusted(format!(
            "update {lease} set expires_at = utc_timestamp(6) + interval ? microsecond where owner = ?"
        ));
        let mut tx = begin(connection).await?;
        sqlx::query(sql)
            .bind(micros)
            .bind(owner)
            .execute(&mut *tx)
            .await?;
        tx.commit().await
    }

    async fn leave(
        connection: &mut MySqlConnection,
        names: &TableNames,
        owner: Uuid,
        frees: bool,
    ) -> Result<(), sqlx::Error> {
        let (instance, lease) = (names.table("instance", '`'), names.table("lease", '`'));
        let sql = trusted(format!("delete from {instance} where id = ?"));
        let mut tx = begin(connection).await?;
        sqlx::query(sql).bind(owner).execute(&mut *tx).await?;
        if frees {
            let sql = trusted(format!(
                "update {lease} set owner = null, expires_at = null where owner = ?"
            ));
            sqlx::query(sql).bind(owner).execute(&mut *tx).await?;
        }
        tx.commit().await
    }

    async fn cluster_view(
        connection: &mut MySqlConnection,
        names: &TableNames,
    ) -> Result<ClusterView, sqlx::Error> {
        let (instance, lease, pause) = (
            names.table("instance", '`'),
            names.table("lease", '`'),
            names.table("pause", '`'),
        );
        let left = "timestampdiff(microsecond, utc_timestamp(6), expires_at)";
        // In one statement, which sees one moment.
        let sql = trusted(format!(
            "select part, epoch, owner, {left}, null from {lease}
union all select null, null, id, {left}, null from {instance}
union all select null, null, null, null, handler from {pause}"
        ));
        let rows: Vec<ClusterViewRow> = sqlx::query_as(sql).fetch_all(connection).await?;
        Ok(ClusterView::of(rows))
    }

    async fn take_partitions(
        connection: &mut MySqlConnection,
        names: &TableNames,
        owner: Uuid,
        parts: &[u16],
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '`');
        let mut tx = begin(connection).await?;
        let free = trusted(format!(
            "select part from {lease} where part in ({}) and (owner is null or expires_at <= utc_timestamp(6))
order by part for update skip locked",
            places(parts.len())
        ));
        let mut free = sqlx::query_scalar(free);
        for part in parts {
            free = free.bind(part.cast_signed());
        }
        let free: Vec<i16> = free.fetch_all(&mut *tx).await?;
        let take = trusted(format!(
            "update {lease} set
    owner = ?, epoch = epoch + 1, expires_at = utc_timestamp(6) + interval ? microsecond
where part in ({})",
            places(free.len())
        ));
        let mut take = sqlx::query(take).bind(owner).bind(micros);
        for part in &free {
            take = take.bind(part);
        }
        if !free.is_empty() {
            take.execute(&mut *tx).await?;
        }
        tx.commit().await
    }

    async fn release_leases(
        connection: &mut MySqlConnection,
        names: &TableNames,
        fence: &Fence,
        reserved: Option<i64>,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '`');
        let release = trusted(format!(
            "update json_table(?, '$[*]' columns (part smallint path '$[0]', epoch bigint path '$[1]')) f
straight_join {lease} l force index (primary) on l.part = f.part
set l.owner = null, l.expires_at = utc_timestamp(6) + interval ? microsecond
where l.epoch = f.epoch and l.owner = ?"
        ));
        sqlx::query(release)
            .bind(fence.json())
            .bind(reserved)
            .bind(fence.owner)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn lock_leases(
        connection: &mut MySqlConnection,
        names: &TableNames,
        fence: &Fence,
    ) -> Result<Vec<u16>, sqlx::Error> {
        let lease = names.table("lease", '`');
        let sql = trusted(format!(
            "select l.part from json_table(?, '$[*]' columns (part smallint path '$[0]', epoch bigint path '$[1]')) f
straight_join {lease} l force index (primary) on l.part = f.part
where l.epoch = f.epoch and l.owner = ? order by l.part lock in share mode"
        ));
        let held: Vec<i16> = sqlx::query_scalar(sql)
            .bind(fence.json())
            .bind(fence.owner)
            .fetch_all(connection)
            .await?;
        Ok(held.iter().map(|part| part.cast_unsigned()).collect())
    }

    async fn reap_expired(
        connection: &mut MySqlConnection,
        names: &TableNames,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        let (instances, lease) = (names.table("instance", '`'), names.table("lease", '`'));
        let mut tx = begin(connection).await?;
        let bury = trusted(format!(
            "delete from {instances} where id = ? and expires_at <= utc_timestamp(6)"
        ));
        let buried = sqlx::query(bury).bind(instance).execute(&mut *tx).await?;
        if buried.rows_affected() > 0 {
            let free = trusted(format!(
                "update {lease} set owner = null, expires_at = null where owner = ?"
            ));
            sqlx::query(free).bind(instance).execute(&mut *tx).await?;
        }
        tx.commit().await
    }
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
