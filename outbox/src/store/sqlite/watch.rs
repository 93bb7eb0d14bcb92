//! Signs of other processes in SQLite: whether the file has changed.

use std::{future::pending, time::Duration};

use sqlx::{Sqlite, SqlitePool, pool::PoolConnection};
use uuid::Uuid;

use crate::store::{Heard, Names, SessionKey, Tick, WatchSql, trusted};

/// The connection, and what was seen last.
#[derive(Debug)]
pub struct SqliteLine {
    connection: PoolConnection<Sqlite>,
    /// The version of the file at which it was seen. Another connection's commit changes it.
    version: i64,
    seen: Tick,
}

impl WatchSql for Sqlite {
    type Line = SqliteLine;

    const SESSIONS: bool = false;
    const LISTENS: bool = false;
    const LOOK_EVERY: Duration = Duration::from_millis(100);

    async fn open(pool: &SqlitePool, _: &Names) -> Result<SqliteLine, sqlx::Error> {
        let mut connection = pool.acquire().await?;
        // The version counts for one connection.
        connection.close_on_drop();
        Ok(SqliteLine {
            connection,
            version: -1,
            seen: Tick::default(),
        })
    }

    async fn hold(_: &mut SqliteLine, _: SessionKey) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn show(
        _: &mut SqliteLine,
        _: &Names,
        _: Uuid,
        _: Option<SessionKey>,
        _: bool,
    ) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn tick(
        line: &mut SqliteLine,
        names: &Names,
        owner: Uuid,
        _: Option<SessionKey>,
        highest: i64,
    ) -> Result<Tick, sqlx::Error> {
        // Asked first: whatever is committed in between is seen at the next look.
        let version: i64 = sqlx::query_scalar("pragma data_version")
            .fetch_one(&mut *line.connection)
            .await?;
        if version == line.version {
            return Ok(line.seen.clone());
        }
        let (record, instance, lease, pause) = (
            names.table("record", '"'),
            names.table("instance", '"'),
            names.table("lease", '"'),
            names.table("pause", '"'),
        );
        let sql = trusted(format!(
            "select
    coalesce((select max(id) from {record} where id > ?1), ?1),
    (select count(owner) || '/' || sum(epoch) || '/' || (select count(*) from {instance}) || '/' ||
        (select coalesce(group_concat(handler, '/'), '') from {pause}) from {lease}),
    (select count(*) from {instance} where id <> ?2)"
        ));
        let (highest, leases, peers): (i64, Option<String>, i64) = sqlx::query_as(sql)
            .bind(highest)
            .bind(owner)
            .fetch_one(&mut *line.connection)
            .await?;
        line.version = version;
        line.seen = Tick {
            highest,
            leases: leases.unwrap_or_default(),
            peers: u32::try_from(peers).unwrap_or(u32::MAX),
            ..Tick::default()
        };
        Ok(line.seen.clone())
    }

    async fn bury_gone(_: &mut SqliteLine, _: &Names, _: Uuid) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn heard(_: &mut SqliteLine) -> Result<Heard, sqlx::Error> {
        pending().await
    }
}
