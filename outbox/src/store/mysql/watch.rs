//! Signs of other processes in MySQL: looks, and the locks of sessions.

use std::{future::pending, time::Duration};

use sqlx::{Connection as _, MySql, MySqlPool, pool::PoolConnection};
use uuid::Uuid;

use super::settle::limit_idle_transactions;
use crate::store::{
    LostSession, Notification, PollResult, SessionKey, TableNames, WatchSql, trusted,
};

impl WatchSql for MySql {
    type WatchConnection = PoolConnection<Self>;

    const HAS_SESSION_LOCKS: bool = true;
    const HAS_NOTIFICATIONS: bool = false;
    const LONGEST_POLL_GAP: Duration = Duration::from_millis(50);

    async fn open(pool: &MySqlPool, _: &TableNames) -> Result<Self::WatchConnection, sqlx::Error> {
        let mut line = pool.acquire().await?;
        // Its locks must end with it.
        line.close_on_drop();
        limit_idle_transactions(&mut line).await?;
        // Otherwise every row that is looked at stays locked, also those of others.
        sqlx::query("set session transaction isolation level read committed")
            .execute(&mut *line)
            .await?;
        Ok(line)
    }

    async fn lock_session(
        line: &mut Self::WatchConnection,
        session: SessionKey,
    ) -> Result<(), sqlx::Error> {
        sqlx::query("select get_lock(?, 5)")
            .bind(lock(session))
            .execute(&mut **line)
            .await?;
        Ok(())
    }

    async fn register(
        line: &mut Self::WatchConnection,
        names: &TableNames,
        owner: Uuid,
        session: SessionKey,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let instance = names.table("instance", '`');
        let sql = trusted(format!(
            "insert ignore into {instance} (id, session, started_at, expires_at)
values (?, ?, utc_timestamp(6), utc_timestamp(6) + interval ? microsecond)"
        ));
        sqlx::query(sql)
            .bind(owner)
            .bind(lock(session))
            .bind(micros)
            .execute(&mut **line)
            .await?;
        Ok(())
    }

    async fn advertise(
        line: &mut Self::WatchConnection,
        names: &TableNames,
        owner: Uuid,
        session: Option<SessionKey>,
    ) -> Result<(), sqlx::Error> {
        let instance = names.table("instance", '`');
        let sql = trusted(format!("update {instance} set session = ? where id = ?"));
        sqlx::query(sql)
            .bind(session.map(lock))
            .bind(owner)
            .execute(&mut **line)
            .await?;
        Ok(())
    }

    async fn poll(
        line: &mut Self::WatchConnection,
        names: &TableNames,
        owner: Uuid,
        session: Option<SessionKey>,
        highest: i64,
    ) -> Result<PollResult, sqlx::Error> {
        let (record, instance, lease, pause) = (
            names.table("record", '`'),
            names.table("instance", '`'),
            names.table("lease", '`'),
            names.table("pause", '`'),
        );
        // `id > ?`: what was deleted below is not walked.
        let sql = trusted(format!(
            "select
    coalesce((select max(id) from {record} where id > ?), ?),
    (select concat_ws('/', count(owner), sum(epoch), (select count(*) from {instance}),
        (select group_concat(handler order by handler separator '/') from {pause})) from {lease}),
    (select count(*) from {instance} where id <> ?),
    (select group_concat(session, '/', hex(id)) from {instance}
        where id <> ? and if(session is null, 0, is_free_lock(session)) = 1),
    coalesce(is_used_lock(coalesce(?, 'outbox:')) = connection_id(), false),
    coalesce((select session = ? from {instance} where id = ?), false)"
        ));
        let lock = session.map(lock);
        type Row = (i64, String, i64, Option<String>, bool, bool);
        let (highest, leases, peers, gone, held, shown): Row = sqlx::query_as(sql)
            .bind(highest)
            .bind(highest)
            .bind(owner)
            .bind(owner)
            .bind(&lock)
            .bind(&lock)
            .bind(owner)
            .fetch_one(&mut **line)
            .await?;
        let gone = gone.unwrap_or_default();
        let gone = gone.split(',').filter_map(|row| {
            let mut row = row.split('/');
            let (session, id) = (row.next()?, row.next()?);
            Some(LostSession {
                id: Uuid::parse_str(id).ok()?,
                session: session.to_owned(),
            })
        });
        Ok(PollResult {
            highest,
            writing: false,
            leases,
            peers: u32::try_from(peers).unwrap_or(u32::MAX),
            gone: gone.collect(),
            held,
            shown,
        })
    }

    async fn reap_lost(
        line: &mut Self::WatchConnection,
        names: &TableNames,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        let (instances, lease) = (names.table("instance", '`'), names.table("lease", '`'));
        let mut tx = line.begin().await?;
        let bury = trusted(format!(
            "delete from {instances} where id = ? and if(session is null, 0, is_free_lock(session)) = 1"
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

    async fn next_notification(_: &mut Self::WatchConnection) -> Result<Notification, sqlx::Error> {
        pending().await
    }
}

/// The name of a session's lock, which is one of the whole server.
fn lock(session: SessionKey) -> String {
    format!("outbox:{:016x}", session.0)
}
