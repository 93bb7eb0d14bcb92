//! Instances and leases in PostgreSQL.

use sqlx::{PgConnection, Postgres};
use uuid::Uuid;

use crate::store::{ClusterView, ClusterViewRow, Fence, LeaseSql, TableNames, trusted};

impl LeaseSql for Postgres {
    async fn seed_partitions(
        connection: &mut PgConnection,
        names: &TableNames,
        partitions: u16,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let sql = trusted(format!(
            "insert into {lease} (part) select generate_series(0, $1 - 1) on conflict do nothing"
        ));
        sqlx::query(sql)
            .bind(i32::from(partitions))
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn heartbeat(
        connection: &mut PgConnection,
        names: &TableNames,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let (instance, lease) = (names.table("instance", '"'), names.table("lease", '"'));
        // First the instance, then its leases, as everywhere: nobody waits in a circle.
        let sql = trusted(format!(
            "with alive as (
    insert into {instance} as i (id, expires_at) values ($1, clock_timestamp() + $2 * interval '1 microsecond')
    on conflict (id) do update set expires_at = excluded.expires_at
    returning 1
)
update {lease} set expires_at = clock_timestamp() + $2 * interval '1 microsecond'
where owner = $1 and (select count(*) from alive) = 1"
        ));
        sqlx::query(sql)
            .bind(owner)
            .bind(micros)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn renew(
        connection: &mut PgConnection,
        names: &TableNames,
        owner: Uuid,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let sql = trusted(format!(
            "update {lease} set expires_at = clock_timestamp() + $2 * interval '1 microsecond' where owner = $1"
        ));
        sqlx::query(sql)
            .bind(owner)
            .bind(micros)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn leave(
        connection: &mut PgConnection,
        names: &TableNames,
        owner: Uuid,
        frees: bool,
    ) -> Result<(), sqlx::Error> {
        let (instance, lease) = (names.table("instance", '"'), names.table("lease", '"'));
        let sql = trusted(format!("delete from {instance} where id = $1"));
        sqlx::query(sql)
            .bind(owner)
            .execute(&mut *connection)
            .await?;
        if frees {
            let sql = trusted(format!(
                "update {lease} set owner = null, expires_at = null where owner = $1"
            ));
            sqlx::query(sql).bind(owner).execute(connection).await?;
        }
        Ok(())
    }

    async fn cluster_view(
        connection: &mut PgConnection,
        names: &TableNames,
    ) -> Result<ClusterView, sqlx::Error> {
        let (instance, lease, pause) = (
            names.table("instance", '"'),
            names.table("lease", '"'),
            names.table("pause", '"'),
        );
        let left = "(extract(epoch from expires_at - clock_timestamp()) * 1000000)::bigint";
        // In one statement, which sees one moment.
        let sql = trusted(format!(
            "select part, epoch, owner, {left}, null::text from {lease}
union all select null::smallint, null::bigint, id, {left}, null::text from {instance}
union all select null::smallint, null::bigint, null::uuid, null::bigint, handler from {pause}"
        ));
        let rows: Vec<ClusterViewRow> = sqlx::query_as(sql).fetch_all(connection).await?;
        Ok(ClusterView::of(rows))
    }

    async fn take_partitions(
        connection: &mut PgConnection,
        names: &TableNames,
        owner: Uuid,
        parts: &[u16],
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        // What another takes at this moment is skipped; what it has just taken is looked at again.
        let sql = trusted(format!(
            "update {lease} l set
    owner = $1, epoch = l.epoch + 1, expires_at = clock_timestamp() + $2 * interval '1 microsecond'
from (
    select part from {lease}
    where part = any($3) and (owner is null or expires_at <= clock_timestamp())
    order by part for update skip locked
) free
where l.part = free.part"
        ));
        let parts: Vec<i16> = parts.iter().map(|part| part.cast_signed()).collect();
        sqlx::query(sql)
            .bind(owner)
            .bind(micros)
            .bind(parts)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn release_leases(
        connection: &mut PgConnection,
        names: &TableNames,
        fence: &Fence,
        reserved: Option<i64>,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let (parts, epochs) = fence.columns();
        let release = trusted(format!(
            "update {lease} l set owner = null, expires_at = clock_timestamp() + $4 * interval '1 microsecond'
from unnest($1::smallint[], $2::bigint[]) as f (part, epoch)
where l.part = f.part and l.epoch = f.epoch and l.owner = $3"
        ));
        sqlx::query(release)
            .bind(parts)
            .bind(epochs)
            .bind(fence.owner)
            .bind(reserved)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn lock_leases(
        connection: &mut PgConnection,
        names: &TableNames,
        fence: &Fence,
    ) -> Result<Vec<u16>, sqlx::Error> {
        let lease = names.table("lease", '"');
        let (parts, epochs) = fence.columns();
        let sql = trusted(format!(
            "select l.part from {lease} l join unnest($1::smallint[], $2::bigint[]) as f (part, epoch)
    on l.part = f.part and l.epoch = f.epoch
where l.owner = $3 order by l.part for share of l"
        ));
        let held: Vec<i16> = sqlx::query_scalar(sql)
            .bind(parts)
            .bind(epochs)
            .bind(fence.owner)
            .fetch_all(connection)
            .await?;
        Ok(held.iter().map(|part| part.cast_unsigned()).collect())
    }

    async fn reap_expired(
        connection: &mut PgConnection,
        names: &TableNames,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        let (instances, lease) = (names.table("instance", '"'), names.table("lease", '"'));
        let sql = trusted(format!(
            "with gone as (
    delete from {instances} where id = $1 and expires_at <= clock_timestamp() returning id
)
update {lease} set owner = null, expires_at = null where owner in (select id from gone)"
        ));
        sqlx::query(sql).bind(instance).execute(connection).await?;
        Ok(())
    }
}
