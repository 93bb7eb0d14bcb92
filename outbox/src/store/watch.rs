//! The statements with which the watcher notices that peers published, changed ownership or died.

use std::{future::pending, time::Duration};

use sqlx::Pool;
use uuid::Uuid;

use super::{
    Dialect, Statements,
    call::{Call, execute, rows},
    columns::read_one,
};
use crate::record::Partition;

/// The result of one cheap poll.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PollResult {
    /// The highest visible record id; at least the id that the poll was called with.
    pub(crate) highest_id: i64,
    /// Whether an open transaction may have published. Always `false` if the database cannot know it.
    pub(crate) has_open_writers: bool,
    /// A digest that changes when a partition gets another owner, an instance joins or leaves, or a
    /// handler is paused or resumed.
    pub(crate) ownership_digest: String,
    /// The number of other instances.
    pub(crate) peers: u32,
    /// Instances whose session has ended.
    pub(crate) lost_sessions: Vec<LostSession>,
    /// Whether this connection still holds the session lock that the poll was called with.
    pub(crate) has_session_lock: bool,
    /// Whether the instance's row names this session, so that peers can see it.
    pub(crate) is_advertised: bool,
}

/// An instance whose session has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostSession {
    pub(crate) id: Uuid,
    /// The session that ended. The instance may have another session by now.
    pub(crate) session: String,
}

/// A notification from a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notification {
    /// Records were published in these partitions.
    Published(Vec<Partition>),
    /// A partition got another owner, or an instance joined or left.
    OwnershipChanged,
    /// The connection is lost.
    ConnectionLost,
}

/// The name of a session lock. It shows peers that this process is alive.
///
/// The watcher chooses a new key for each connection. When the connection ends, the database releases
/// the lock, and every peer sees that at its next poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionKey(pub(crate) i64);

impl SessionKey {
    pub(crate) fn new() -> Self {
        // The low bits of a version 7 UUID are random.
        let (_, low) = Uuid::now_v7().as_u64_pair();
        Self((low >> 1).cast_signed())
    }
}

/// The statements of the watcher, on a connection of its own.
pub trait WatchSql: Dialect {
    /// The connection on which the watcher polls and waits for notifications.
    type WatchConnection: Send;

    /// Whether peers can see that a session has ended.
    const HAS_SESSION_LOCKS: bool;
    /// Whether the database can notify listening instances of a publication.
    const HAS_NOTIFICATIONS: bool;
    /// The longest time between two polls while the watcher does not listen.
    const LONGEST_POLL_GAP: Duration;

    fn open(
        pool: &Pool<Self>,
        sql: &Statements,
    ) -> impl Future<Output = Result<Self::WatchConnection, sqlx::Error>> + Send;

    /// The connection for statements.
    fn connection(
        watch: &mut Self::WatchConnection,
    ) -> impl Future<Output = Result<&mut Self::Connection, sqlx::Error>> + Send;

    /// Locks the session of this connection for this instance.
    fn lock_session(
        watch: &mut Self::WatchConnection,
        sql: &Statements,
        session: SessionKey,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move { run::<Self>(watch, sql.lock_session.bind("session", Some(session))).await }
    }

    /// Unlocks the session before the connection returns to the pool.
    fn unlock_session(
        watch: &mut Self::WatchConnection,
        sql: &Statements,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move { run::<Self>(watch, sql.unlock_session.call()).await }
    }

    /// Writes the instance's row together with its session, valid for `micros` microseconds, so that
    /// no peer sees the instance without its session.
    fn register(
        watch: &mut Self::WatchConnection,
        sql: &Statements,
        owner: Uuid,
        session: SessionKey,
        micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let register = sql.register.bind("owner", owner).bind("micros", micros);
            run::<Self>(watch, register.bind("session", Some(session))).await
        }
    }

    /// Writes the session into the instance's row, where peers see it; `None` removes it. The
    /// instance does not listen afterwards.
    fn advertise(
        watch: &mut Self::WatchConnection,
        sql: &Statements,
        owner: Uuid,
        session: Option<SessionKey>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let advertise = sql.advertise.bind("owner", owner);
            run::<Self>(watch, advertise.bind("session", session)).await
        }
    }

    fn poll(
        watch: &mut Self::WatchConnection,
        sql: &Statements,
        owner: Uuid,
        session: Option<SessionKey>,
        highest_id: i64,
    ) -> impl Future<Output = Result<PollResult, sqlx::Error>> + Send {
        async move {
            let poll = sql.poll.bind("owner", owner).bind("session", session);
            let connection = Self::connection(watch).await?;
            let rows = rows::<Self>(connection, poll.bind("highest_id", highest_id)).await?;
            read_one(rows.first().ok_or(sqlx::Error::RowNotFound)?)
        }
    }

    /// Deletes an instance whose session has ended, and releases its partitions.
    fn reap_lost(
        watch: &mut Self::WatchConnection,
        sql: &Statements,
        instance: Uuid,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move { run::<Self>(watch, sql.reap_lost.bind("instance", instance)).await }
    }

    /// Writes whether publishers notify this instance.
    fn set_listening(
        watch: &mut Self::WatchConnection,
        sql: &Statements,
        owner: Uuid,
        listening: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let set = sql.set_listening.bind("owner", owner);
            run::<Self>(watch, set.bind("listening", listening)).await
        }
    }

    /// Waits for the next notification. Dropping the future loses no notification.
    fn next_notification(
        _: &mut Self::WatchConnection,
    ) -> impl Future<Output = Result<Notification, sqlx::Error>> + Send {
        pending()
    }

    /// Notifies peers that partitions got another owner, or that this instance joined or left.
    fn notify_peers(
        connection: &mut Self::Connection,
        sql: &Statements,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move {
            let notify = sql.notify_peers.call();
            execute::<Self>(connection, notify).await.map(drop)
        }
    }
}

/// Runs a statement of the watcher.
async fn run<Db: WatchSql>(
    watch: &mut Db::WatchConnection,
    call: Call<'_>,
) -> Result<(), sqlx::Error> {
    let connection = Db::connection(watch).await?;
    execute::<Db>(connection, call).await.map(drop)
}
