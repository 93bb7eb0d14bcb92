//! Instances and leases in SQLite.

use sqlx::{Connection as _, Sqlite, SqliteConnection};
use uuid::Uuid;

use super::NOW;
use crate::store::{
    ClusterView, ClusterViewRow, Fence, LeaseSql, TableNames, settle::json, trusted,
};

impl LeaseSql for Sqlite {
    async fn seed_partitions(
        connection: &mut SqliteConnection,
        names: &TableNames,
        partitions: u16,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let sql = trusted(format!(
            "with recursive p (part) as (select 0 where ?1 > 0 union all select part + 1 from p where part + 1 < ?1)
insert into {lease} (part) select part from p where true on conflict do nothing"
        ));
        sqlx::query(sql)
            .bind(i64::from(partitions))
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn heartbeat(
        connection: &mut SqliteConnection,
        names: &TableNames,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let (instance, lease) = (names.table("instance", '"'), names.table("lease", '"'));
        // The one writer from the start: a reader that wants to write may be refused.
        let mut tx = connection.begin_with("begin immediate").await?;
        let alive = trusted(format!(
            "insert into {instance} (id, expires_at) values (?1, {NOW} + ?2)
on conflict (id) do update set expires_at = excluded.expires_at"
        ));
        sqlx::query(alive)
            .bind(owner)
            .bind(micros)
            .execute(&mut *tx)
            .await?;
        let renew = trusted(format!(
            "update {lease} set expires_at = {NOW} + ?2 where owner = ?1"
        ));
        sqlx::query(renew)
            .bind(owner)
            .bind(micros)
            .execute(&mut *tx)
            .await?;
        tx.commit().await
    }

    async fn renew(
        connection: &mut SqliteConnection,
        names: &TableNames,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let sql = trusted(format!(
            "update {lease} set expires_at = {NOW} + ?1 where owner = ?2"
        ));
        sqlx::query(sql)
            .bind(micros)
            .bind(owner)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn leave(
        connection: &mut SqliteConnection,
        names: &TableNames,
        owner: Uuid,
        frees: bool,
    ) -> Result<(), sqlx::Error> {
        let (instance, lease) = (names.table("instance", '"'), names.table("lease", '"'));
        let sql = trusted(format!("delete from {instance} where id = ?1"));
        sqlx::query(sql)
            .bind(owner)
            .execute(&mut *connection)
            .await?;
        if frees {
            let sql = trusted(format!(
                "update {lease} set owner = null, expires_at = null where owner = ?1"
            ));
            sqlx::query(sql).bind(owner).execute(connection).await?;
        }
        Ok(())
    }

    async fn cluster_view(
        connection: &mut SqliteConnection,
        names: &TableNames,
    ) -> Result<ClusterView, sqlx::Error> {
        let (instance, lease, pause) = (
            names.table("instance", '"'),
            names.table("lease", '"'),
            names.table("pause", '"'),
        );
        let left = format!("expires_at - {NOW}");
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
        connection: &mut SqliteConnection,
        names: &TableNames,
        owner: Uuid,
        parts: &[u16],
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let sql = trusted(format!(
            "update {lease} set owner = ?1, epoch = epoch + 1, expires_at = {NOW} + ?2
where part in (select p.value from json_each(?3) p) and (owner is null or expires_at <= {NOW})"
        ));
        sqlx::query(sql)
            .bind(owner)
            .bind(micros)
            .bind(json(parts)?)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn release_leases(
        connection: &mut SqliteConnection,
        names: &TableNames,
        fence: &Fence,
        reserved: Option<i64>,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let release = trusted(format!(
            "update {lease} as l set owner = null, expires_at = {NOW} + ?3
from json_each(?1) as f
where l.part = f.value ->> 0 and l.epoch = f.value ->> 1 and l.owner = ?2"
        ));
        sqlx::query(release)
            .bind(fence.json())
            .bind(fence.owner)
            .bind(reserved)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn lock_leases(
        connection: &mut SqliteConnection,
        names: &TableNames,
        fence: &Fence,
    ) -> Result<Vec<u16>, sqlx::Error> {
        let lease = names.table("lease", '"');
        let sql = trusted(format!(
            "select l.part from {lease} l join json_each(?1) f
    on l.part = f.value ->> 0 and l.epoch = f.value ->> 1
where l.owner = ?2"
        ));
        sqlx::query_scalar(sql)
            .bind(fence.json())
            .bind(fence.owner)
            .fetch_all(connection)
            .await
    }

    async fn reap_expired(
        connection: &mut SqliteConnection,
        names: &TableNames,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        let (instances, lease) = (names.table("instance", '"'), names.table("lease", '"'));
        let mut tx = connection.begin_with("begin immediate").await?;
        let bury = trusted(format!(
            "delete from {instances} where id = ?1 and expires_at <= {NOW}"
        ));
        let buried = sqlx::query(bury).bind(instance).execute(&mut *tx).await?;
        if buried.rows_affected() > 0 {
            let free = trusted(format!(
                "update {lease} set owner = null, expires_at = null where owner = ?1"
            ));
            sqlx::query(free).bind(instance).execute(&mut *tx).await?;
        }
        tx.commit().await
    }
}
