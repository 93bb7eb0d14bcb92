//! Leases in PostgreSQL.

use sqlx::{PgConnection, Postgres, Row as _};
use uuid::Uuid;

use crate::store::{Fence, Lease, LeaseSql, Names, trusted};

impl LeaseSql for Postgres {
    async fn claim(
        connection: &mut PgConnection,
        names: &Names,
        owner: Uuid,
        partitions: u16,
        micros: i64,
    ) -> Result<Vec<Lease>, sqlx::Error> {
        let lease = names.table("lease", '"');
        let missing = trusted(format!(
            "insert into {lease} (part) select generate_series(0, $1 - 1) except select part from {lease}
on conflict do nothing"
        ));
        sqlx::query(missing)
            .bind(i32::from(partitions))
            .execute(&mut *connection)
            .await?;
        let claim = trusted(format!(
            "update {lease} l set
    owner = $1,
    epoch = l.epoch + case when l.owner = $1 then 0 else 1 end,
    expires_at = clock_timestamp() + $2 * interval '1 microsecond'
from (
    select part from {lease}
    where owner = $1 or owner is null or expires_at <= clock_timestamp()
    order by part for update skip locked
) mine
where l.part = mine.part
returning l.part, l.epoch"
        ));
        let rows = sqlx::query(claim)
            .bind(owner)
            .bind(micros)
            .fetch_all(connection)
            .await?;
        rows.iter()
            .map(|row| {
                Ok(Lease {
                    part: row.try_get::<i16, _>(0)?.cast_unsigned(),
                    epoch: row.try_get(1)?,
                })
            })
            .collect()
    }

    async fn renew(
        connection: &mut PgConnection,
        names: &Names,
        fence: &Fence,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let (parts, epochs) = fence.columns();
        let renew = trusted(format!(
            "update {lease} l set expires_at = clock_timestamp() + $4 * interval '1 microsecond'
from unnest($1::smallint[], $2::bigint[]) as f (part, epoch)
where l.part = f.part and l.epoch = f.epoch and l.owner = $3"
        ));
        sqlx::query(renew)
            .bind(parts)
            .bind(epochs)
            .bind(fence.owner)
            .bind(micros)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn release(
        connection: &mut PgConnection,
        names: &Names,
        fence: &Fence,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let (parts, epochs) = fence.columns();
        let release = trusted(format!(
            "update {lease} l set owner = null, expires_at = null
from unnest($1::smallint[], $2::bigint[]) as f (part, epoch)
where l.part = f.part and l.epoch = f.epoch and l.owner = $3"
        ));
        sqlx::query(release)
            .bind(parts)
            .bind(epochs)
            .bind(fence.owner)
            .execute(connection)
            .await?;
        Ok(())
    }
}
