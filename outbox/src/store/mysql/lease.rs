//! Leases in MySQL.

use sqlx::{Connection as _, MySql, MySqlConnection, Row as _};
use uuid::Uuid;

use super::places;
use crate::store::{Fence, Lease, LeaseSql, Names, settle::json, trusted};

impl LeaseSql for MySql {
    async fn claim(
        connection: &mut MySqlConnection,
        names: &Names,
        owner: Uuid,
        partitions: u16,
        micros: i64,
    ) -> Result<Vec<Lease>, sqlx::Error> {
        let lease = names.table("lease", '`');
        add_missing(connection, &lease, partitions).await?;
        // For the next transaction only. Otherwise every row that is looked at stays locked, also
        // those of others.
        sqlx::query("set transaction isolation level read committed")
            .execute(&mut *connection)
            .await?;
        let mut tx = connection.begin().await?;
        // Without `skip locked`: what is settled at this moment is to be renewed too.
        let renew = trusted(format!(
            "update {lease} set expires_at = utc_timestamp(6) + interval ? microsecond where owner = ?"
        ));
        sqlx::query(renew)
            .bind(micros)
            .bind(owner)
            .execute(&mut *tx)
            .await?;
        let free = trusted(format!(
            "select part from {lease} where owner is null or expires_at <= utc_timestamp(6)
order by part for update skip locked"
        ));
        let free: Vec<i16> = sqlx::query_scalar(free).fetch_all(&mut *tx).await?;
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
        let mine = trusted(format!("select part, epoch from {lease} where owner = ?"));
        let rows = sqlx::query(mine).bind(owner).fetch_all(&mut *tx).await?;
        tx.commit().await?;
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
        connection: &mut MySqlConnection,
        names: &Names,
        fence: &Fence,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '`');
        let renew = trusted(format!(
            "update json_table(?, '$[*]' columns (part smallint path '$[0]', epoch bigint path '$[1]')) f
straight_join {lease} l force index (primary) on l.part = f.part
set l.expires_at = utc_timestamp(6) + interval ? microsecond
where l.epoch = f.epoch and l.owner = ?"
        ));
        sqlx::query(renew)
            .bind(fence.json())
            .bind(micros)
            .bind(fence.owner)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn release(
        connection: &mut MySqlConnection,
        names: &Names,
        fence: &Fence,
    ) -> Result<(), sqlx::Error> {
        let lease = names.table("lease", '`');
        let release = trusted(format!(
            "update json_table(?, '$[*]' columns (part smallint path '$[0]', epoch bigint path '$[1]')) f
straight_join {lease} l force index (primary) on l.part = f.part
set l.owner = null, l.expires_at = null
where l.epoch = f.epoch and l.owner = ?"
        ));
        sqlx::query(release)
            .bind(fence.json())
            .bind(fence.owner)
            .execute(connection)
            .await?;
        Ok(())
    }
}

async fn add_missing(
    connection: &mut MySqlConnection,
    lease: &str,
    partitions: u16,
) -> Result<(), sqlx::Error> {
    // Asked first: the insertion locks, also where there is nothing to insert.
    let there = trusted(format!("select count(*) from {lease} where part < ?"));
    let there: i64 = sqlx::query_scalar(there)
        .bind(i32::from(partitions))
        .fetch_one(&mut *connection)
        .await?;
    if there >= i64::from(partitions) {
        return Ok(());
    }
    let missing = trusted(format!(
        "insert ignore into {lease} (part) select p.part from json_table(?, '$[*]' columns (part smallint path '$')) p"
    ));
    let all: Vec<u16> = (0..partitions).collect();
    sqlx::query(missing)
        .bind(json(&all)?)
        .execute(connection)
        .await?;
    Ok(())
}
