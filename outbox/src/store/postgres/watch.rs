//! Signs of other processes in PostgreSQL: notifications, and the locks of sessions.

use std::time::Duration;

use sqlx::{PgConnection, PgPool, Postgres, postgres::PgListener};
use uuid::Uuid;

use crate::store::{
    LostSession, Notification, PollResult, SessionKey, TableNames, WatchSql, trusted,
};

/// What is told when partitions change hands. Otherwise partitions, as `3,17`.
const LEASES: &str = "leases";

impl WatchSql for Postgres {
    type WatchConnection = PgListener;

    const HAS_SESSION_LOCKS: bool = true;
    const HAS_NOTIFICATIONS: bool = true;
    const LONGEST_POLL_GAP: Duration = Duration::from_millis(100);

    async fn open(pool: &PgPool, names: &TableNames) -> Result<PgListener, sqlx::Error> {
        let mut line = PgListener::connect_with(pool).await?;
        line.eager_reconnect(false);
        line.listen(&names.channel()).await?;
        Ok(line)
    }

    async fn lock_session(line: &mut PgListener, session: SessionKey) -> Result<(), sqlx::Error> {
        sqlx::query("select pg_advisory_lock($1)")
            .bind(session.0)
            .execute(line)
            .await?;
        Ok(())
    }

    async fn unlock_session(line: &mut PgListener) -> Result<(), sqlx::Error> {
        // The connection goes back to the pool.
        sqlx::query("select pg_advisory_unlock_all()")
            .execute(line)
            .await?;
        Ok(())
    }

    async fn register(
        line: &mut PgListener,
        names: &TableNames,
        owner: Uuid,
        session: SessionKey,
        micros: i64,
    ) -> Result<(), sqlx::Error> {
        let instance = names.table("instance", '"');
        let sql = trusted(format!(
            "insert into {instance} (id, session, expires_at)
values ($1, $2, clock_timestamp() + $3 * interval '1 microsecond') on conflict do nothing"
        ));
        sqlx::query(sql)
            .bind(owner)
            .bind(session.0)
            .bind(micros)
            .execute(line)
            .await?;
        Ok(())
    }

    async fn advertise(
        line: &mut PgListener,
        names: &TableNames,
        owner: Uuid,
        session: Option<SessionKey>,
    ) -> Result<(), sqlx::Error> {
        let instance = names.table("instance", '"');
        let sql = trusted(format!(
            "update {instance} set session = $2, listening = false where id = $1"
        ));
        sqlx::query(sql)
            .bind(owner)
            .bind(session.map(|key| key.0))
            .execute(line)
            .await?;
        Ok(())
    }

    async fn poll(
        line: &mut PgListener,
        names: &TableNames,
        owner: Uuid,
        session: Option<SessionKey>,
        highest: i64,
    ) -> Result<PollResult, sqlx::Error> {
        let (record, instance, lease, pause) = (
            names.table("record", '"'),
            names.table("instance", '"'),
            names.table("lease", '"'),
            names.table("pause", '"'),
        );
        // Locks are read once. `id > $1`: what was deleted below is not walked.
        let sql = trusted(format!(
            "with locks as materialized (
    select locktype, relation, mode, pid, (classid::bigint << 32) | objid::bigint as key from pg_locks
    where granted and locktype in ('relation', 'advisory')
        and database = (select oid from pg_database where datname = current_database())
),
gone as (
    select id, session::text from {instance} where session is not null and id <> $3
        and session not in (select key from locks where locktype = 'advisory')
)
select
    coalesce((select max(id) from {record} where id > $1), $1),
    exists (
        select 1 from locks where locktype = 'relation' and relation = $2::regclass
            and mode = 'RowExclusiveLock' and pid is distinct from pg_backend_pid()
    ),
    (select concat_ws('/', count(owner), sum(epoch), (select count(*) from {instance}),
        (select string_agg(handler, '/' order by handler) from {pause})) from {lease}),
    (select count(*) from {instance} where id <> $3),
    array(select id from gone),
    array(select session from gone),
    exists (select 1 from locks where locktype = 'advisory' and key = $4 and pid = pg_backend_pid()),
    coalesce((select session = $4 from {instance} where id = $3), false)"
        ));
        type Row = (i64, bool, String, i64, Vec<Uuid>, Vec<String>, bool, bool);
        let row: Row = sqlx::query_as(sql)
            .bind(highest)
            .bind(&record)
            .bind(owner)
            .bind(session.map(|key| key.0))
            .fetch_one(line)
            .await?;
        let (highest, writing, leases, peers, ids, sessions, held, shown) = row;
        let gone = ids.into_iter().zip(sessions);
        let gone = gone.map(|(id, session)| LostSession { id, session });
        Ok(PollResult {
            highest,
            writing,
            leases,
            peers: u32::try_from(peers).unwrap_or(u32::MAX),
            gone: gone.collect(),
            held,
            shown,
        })
    }

    async fn reap_lost(
        line: &mut PgListener,
        names: &TableNames,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        let (instances, lease) = (names.table("instance", '"'), names.table("lease", '"'));
        // `count`: with `not exists` a row that is changed at this moment would be judged by the
        // session that it had before.
        let sql = trusted(format!(
            "with gone as (
    delete from {instances} i where id = $1 and session is not null and 0 = (
        select count(*) from pg_locks where granted and locktype = 'advisory'
            and database = (select oid from pg_database where datname = current_database())
            and (classid::bigint << 32) | objid::bigint = i.session
    )
    returning id
)
update {lease} set owner = null, expires_at = null where owner in (select id from gone)"
        ));
        sqlx::query(sql).bind(instance).execute(line).await?;
        Ok(())
    }

    async fn set_listening(
        line: &mut PgListener,
        names: &TableNames,
        owner: Uuid,
        listening: bool,
    ) -> Result<(), sqlx::Error> {
        let instance = names.table("instance", '"');
        let sql = trusted(format!(
            "update {instance} set listening = $2 where id = $1"
        ));
        sqlx::query(sql)
            .bind(owner)
            .bind(listening)
            .execute(line)
            .await?;
        Ok(())
    }

    async fn next_notification(line: &mut PgListener) -> Result<Notification, sqlx::Error> {
        Ok(match line.try_recv().await? {
            Some(told) => understood(told.payload()),
            None => Notification::ConnectionLost,
        })
    }

    async fn notify_peers(
        connection: &mut PgConnection,
        names: &TableNames,
    ) -> Result<(), sqlx::Error> {
        sqlx::query("select pg_notify($1, $2)")
            .bind(names.channel())
            .bind(LEASES)
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// Anybody may send anything on a channel: what is no list of partitions only wakes.
fn understood(payload: &str) -> Notification {
    if payload == LEASES {
        return Notification::OwnershipChanged;
    }
    let parts = payload.split(',').map_while(|part| part.parse().ok());
    Notification::Published(parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_told_is_understood_somehow() {
        assert_eq!(understood("leases"), Notification::OwnershipChanged);
        assert_eq!(understood("3,17"), Notification::Published(vec![3, 17]));
        assert_eq!(understood("63"), Notification::Published(vec![63]));
        assert_eq!(understood(""), Notification::Published(vec![]));
        assert_eq!(understood("1,x,2"), Notification::Published(vec![1]));
    }
}
