//! Signs of other processes: that something was published, that partitions changed hands, that
//! a process has died.

use std::time::Duration;

use sqlx::Pool;
use uuid::Uuid;

use super::StatementSql;

/// What a look says that costs next to nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PollResult {
    /// The highest id of a record that can be seen, at least what was asked with.
    pub(crate) highest: i64,
    /// Whether a transaction is under way that may have published, where the database says so.
    pub(crate) writing: bool,
    /// Differs after a partition has changed hands, an instance has come or gone, or a handler was
    /// paused or goes on.
    pub(crate) leases: String,
    /// How many other instances there are.
    pub(crate) peers: u32,
    /// Instances whose session is gone.
    pub(crate) gone: Vec<LostSession>,
    /// Whether the session that was asked with is this very one.
    pub(crate) held: bool,
    /// Whether the others can see that.
    pub(crate) shown: bool,
}

/// An instance whose session is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostSession {
    pub(crate) id: Uuid,
    /// Which one: it may have another by now.
    pub(crate) session: String,
}

/// What a process was told by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notification {
    /// Records were published in these partitions.
    Published(Vec<u16>),
    /// Partitions changed hands, or an instance has come or gone.
    OwnershipChanged,
    /// The connection is lost.
    ConnectionLost,
}

/// A session that tells others that this process lives: they see when it ends.
///
/// Made anew for each connection. Written by the watcher; when the connection is dropped, the
/// database forgets it, and so does every peer that looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionKey(pub(crate) i64);

impl SessionKey {
    pub(crate) fn new() -> Self {
        // The low bits of a version 7 are random.
        let (_, low) = Uuid::now_v7().as_u64_pair();
        Self((low >> 1).cast_signed())
    }
}

/// The statements of watching, on a connection of their own.
pub trait WatchSql: StatementSql {
    /// The connection on which signs are waited for.
    type WatchConnection: Send;

    /// Whether the database tells when a session has ended.
    const HAS_SESSION_LOCKS: bool;
    /// Whether it tells when something was published, to those who sleep.
    const HAS_NOTIFICATIONS: bool;
    /// The longest time between two looks while it does not.
    const LONGEST_POLL_GAP: Duration;

    fn open(
        pool: &Pool<Self>,
        sql: &Self::Statements,
    ) -> impl Future<Output = Result<Self::WatchConnection, sqlx::Error>> + Send;

    /// Ties this instance to the session of the line.
    fn lock_session(
        line: &mut Self::WatchConnection,
        session: SessionKey,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// The end of that, where the connection goes on.
    fn unlock_session(
        _: &mut Self::WatchConnection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }

    /// Joins, for `micros` microseconds from now, so that the others never see this instance
    /// without its session.
    fn register(
        _: &mut Self::WatchConnection,
        _: &Self::Statements,
        _owner: Uuid,
        _: SessionKey,
        _micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }

    /// Writes the session into the instance's row, where peers see it; `None` removes it. The
    /// instance does not listen afterwards.
    fn advertise(
        line: &mut Self::WatchConnection,
        sql: &Self::Statements,
        owner: Uuid,
        session: Option<SessionKey>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    fn poll(
        line: &mut Self::WatchConnection,
        sql: &Self::Statements,
        owner: Uuid,
        session: Option<SessionKey>,
        highest: i64,
    ) -> impl Future<Output = Result<PollResult, sqlx::Error>> + Send;

    /// Deletes an instance whose session is gone, and frees what it owned.
    fn reap_lost(
        line: &mut Self::WatchConnection,
        sql: &Self::Statements,
        instance: Uuid,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Asks whoever publishes to tell this instance, or not to.
    fn set_listening(
        _: &mut Self::WatchConnection,
        _: &Self::Statements,
        _: Uuid,
        _listening: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }

    /// Waits to be told something. Dropping it loses nothing.
    fn next_notification(
        line: &mut Self::WatchConnection,
    ) -> impl Future<Output = Result<Notification, sqlx::Error>> + Send;

    /// Tells the others that partitions changed hands, or that this instance has come or gone.
    fn notify_peers(
        _: &mut Self::Connection,
        _: &Self::Statements,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }
}
