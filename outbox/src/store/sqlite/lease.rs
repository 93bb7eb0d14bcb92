//! Leases in SQLite.

use sqlx::{Connection as _, Row as _, Sqlite, SqliteConnection};
use uuid::Uuid;

use super::NOW;
use crate::store::{Fence, Lease, LeaseSql, Names, trusted};

impl LeaseSql for Sqlite {
    async fn claim(
        connection: &mut SqliteConnection,
        names: &Names,
        owner: Uuid,
        partitions: u16,
        micros: i64,
    ) -> Result<Vec<Lease>, sqlx::Error> {
        let lease = names.table("lease", '"');
        // The one writer from the start: a reader that wants to write may be refused.
        let mut tx = connection.begin_with("begin immediate").await?;
        let missing = trusted(format!(
            "with recursive p (part) as (select 0 where ?1 > 0 union all select part + 1 from p where part + 1 < ?1)
insert into {lease} (part) select part from p where true on conflict do nothing"
        ));
        sqlx::query(missing)
            .bind(i64::from(partitions))
            .execute(&mut *tx)
            .await?;
        let claim = trusted(format!(
            "update {lease} set
    owner = ?1,
    epoch = epoch + case when owner = ?1 then 0 else 1 end,
    expires_at = {NOW} + ?2
where owner = ?1 or owner is null or expires_at <= {NOW}
returning part, epoch"
        ));
        let rows = sqlx::query(claim)
            .bind(owner)
            .bind(micros)
            .fetch_all(&mut *tx)
            .await?;
        tx.commit().await?;
        rows.iter()
            .map(|row| {
                Ok(Lease {
                    part: row.try_get(0)?,
                    epoch: row.try_get(1)?,
                })
            })
            .collect()
    }

    async fn renew(
        connection: &mut SqliteConnection,
        names: &Names,
        fence: &Fence,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let renew = trusted(format!(
            "update {lease} as l set expires_at = {NOW} + ?3
from json_each(?1) as f
where l.part = f.value ->> 0 and l.epoch = f.value ->> 1 and l.owner = ?2"
        ));
        sqlx::query(renew)
            .bind(fence.json())
            .bind(fence.owner)
            .bind(micros)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn release(
        connection: &mut SqliteConnection,
        names: &Names,
        fence: &Fence,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '"');
        let release = trusted(format!(
            "update {lease} as l set owner = null, expires_at = null
from json_each(?1) as f
where l.part = f.value ->> 0 and l.epoch = f.value ->> 1 and l.owner = ?2"
        ));
        sqlx::query(release)
            .bind(fence.json())
            .bind(fence.owner)
            .execute(connection)
            .await?;
        Ok(())
    }
}
