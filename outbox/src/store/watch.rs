//! Signs of other processes: that something was published, that partitions changed hands, that
//! a process has died.

use std::time::Duration;

use sqlx::Pool;
use uuid::Uuid;

use super::Names;

/// What a look says that costs next to nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tick {
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
    pub(crate) gone: Vec<Gone>,
    /// Whether the session that was asked with is this very one.
    pub(crate) held: bool,
    /// Whether the others can see that.
    pub(crate) shown: bool,
}

/// An instance whose session is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) id: Uuid,
    /// Which one: it may have another by now.
    pub(crate) session: String,
    /// It had said that it knows of others, and so how short a time it trusts its session.
    pub(crate) wary: bool,
}

/// What a process was told by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Records were published in these partitions.
    Records(Vec<u16>),
    /// Partitions changed hands, or an instance has come or gone.
    Leases,
    /// The connection is lost.
    Nothing,
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
pub trait WatchSql: sqlx::Database {
    /// The connection on which signs are waited for.
    type Line: Send;

    /// Whether the database tells when a session has ended.
    const SESSIONS: bool;
    /// Whether it tells when something was published, to those who sleep.
    const LISTENS: bool;
    /// The longest time between two looks while it does not.
    const LOOK_EVERY: Duration;

    #[doc(hidden)]
    fn open(
        pool: &Pool<Self>,
        names: &Names,
    ) -> impl Future<Output = Result<Self::Line, sqlx::Error>> + Send;

    /// Ties this instance to the session of the line.
    #[doc(hidden)]
    fn hold(
        line: &mut Self::Line,
        session: SessionKey,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// The end of that, where the connection goes on.
    #[doc(hidden)]
    fn let_go(_: &mut Self::Line) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }

    /// Joins, for `micros` microseconds from now, so that the others never see this instance
    /// without its session.
    #[doc(hidden)]
    fn join(
        _: &mut Self::Line,
        _: &Names,
        _owner: Uuid,
        _: SessionKey,
        _micros: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }

    /// Lets the others see it, or not any more, and whether this instance is wary. Awake.
    #[doc(hidden)]
    fn show(
        line: &mut Self::Line,
        names: &Names,
        owner: Uuid,
        session: Option<SessionKey>,
        wary: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    #[doc(hidden)]
    fn tick(
        line: &mut Self::Line,
        names: &Names,
        owner: Uuid,
        session: Option<SessionKey>,
        highest: i64,
    ) -> impl Future<Output = Result<Tick, sqlx::Error>> + Send;

    /// Deletes an instance whose session is gone, and frees what it owned.
    #[doc(hidden)]
    fn bury_gone(
        line: &mut Self::Line,
        names: &Names,
        instance: Uuid,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Asks whoever publishes to tell this instance, or not to.
    #[doc(hidden)]
    fn sleep(
        _: &mut Self::Line,
        _: &Names,
        _: Uuid,
        _asleep: bool,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }

    /// Waits to be told something. Dropping it loses nothing.
    #[doc(hidden)]
    fn heard(line: &mut Self::Line) -> impl Future<Output = Result<Heard, sqlx::Error>> + Send;

    /// Tells the others that partitions changed hands, or that this instance has come or gone.
    #[doc(hidden)]
    fn ring(
        _: &mut Self::Connection,
        _: &Names,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async { Ok(()) }
    }
}
