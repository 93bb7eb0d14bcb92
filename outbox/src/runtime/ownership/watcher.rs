//! [`Watcher`]: watches other processes on a connection of its own.                         (I/O)
//!
//! The watcher raises [signals](crate::runtime::signals) when records were published or partitions
//! have new owners. If the database has session locks, the lock on this connection also shows peers
//! that this process lives ([`session`](super::session)), and the watcher finds peers that have
//! died ([`FailureDetector`]). Only speed depends on the watcher: without it, leases expire and the
//! poll of the event loop finds everything.

use std::{sync::Arc, time::Duration};

use sqlx::Result;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use uuid::Uuid;

use super::{
    failure_detector::FailureDetector,
    poll_schedule::PollSchedule,
    session::{SessionReporter, SessionState, SessionWatch},
};
use crate::{
    outbox::{Shared, clock::YEAR, error::Operation},
    runtime::{backoff::DatabaseBackoff, signals::Signal},
    store::{Database, Notification, PollResult, SessionKey, WatchSql},
};

/// A pool with fewer than five connections has none to spare for a watcher.
const MIN_POOL: u32 = 5;
/// The database may take 5 s to answer one statement. Without a limit, a connection that hangs
/// would stop this process from starting work for as long as its leases are renewed on another
/// connection.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// The watcher's connection.
type Connection<Db> = <Db as WatchSql>::WatchConnection;

/// Runs in a task of its own until the dispatcher has ended. Its session ends with it, and peers
/// see that.
pub(crate) struct Watcher<Db: Database> {
    outbox: Arc<Shared<Db>>,
    owner: Uuid,
    /// How long the new row of the instance is valid, in microseconds.
    lease_micros: i64,
    session: SessionReporter,
    pooler: PoolerDetector,
    backoff: DatabaseBackoff,
    /// This is not the watcher's first connection.
    is_reconnecting: bool,
    highest_id: i64,
    /// A digest that changes with owners and pauses.
    ownership_digest: String,
}

impl<Db: Database> Watcher<Db> {
    /// Starts a watcher, unless the pool is too small for it. `is_restart`: another watcher of this
    /// process has panicked. Peers may still see its session.
    pub(crate) fn start(
        outbox: Arc<Shared<Db>>,
        owner: Uuid,
        lease_micros: i64,
        is_restart: bool,
    ) -> SessionWatch {
        if outbox.pool.options().get_max_connections() < MIN_POOL {
            return SessionWatch::default();
        }
        let may_have_session = is_restart && Db::HAS_SESSION_LOCKS;
        let (session, watch) = SessionReporter::new(if may_have_session {
            SessionState::Lost
        } else {
            SessionState::None
        });
        let watcher = Self {
            outbox,
            owner,
            lease_micros,
            session,
            pooler: PoolerDetector::default(),
            backoff: DatabaseBackoff::default(),
            is_reconnecting: false,
            highest_id: 0,
            ownership_digest: String::new(),
        };
        tokio::spawn(watcher.run());
        watch
    }

    async fn run(mut self) {
        while !self.session.is_dispatcher_gone() {
            let ended = self.watch_one_connection().await;
            self.session.session_lost();
            if let Err(error) = ended {
                let delay = self.backoff.failed(Operation::Watch, &error);
                // There is no connection, so dropping either branch loses nothing.
                tokio::select! {
                    () = sleep(delay) => {}
                    () = self.session.dispatcher_gone() => {}
                }
            }
        }
    }

    /// Watches on one connection until it ends. A connection that still works goes back to the
    /// pool, so its session lock is released first. A lost connection has no lock, and asking for a
    /// release would only connect again.
    async fn watch_one_connection(&mut self) -> Result<()> {
        let mut connection = with_timeout(Db::open(&self.outbox.pool, &self.outbox.sql)).await?;
        let ended = self.watch_loop(&mut connection).await;
        let is_connected = match &ended {
            Ok(is_connected) => *is_connected,
            Err(error) => error.as_database_error().is_some(),
        };
        if is_connected {
            let unlocked =
                with_timeout(Db::unlock_session(&mut connection, &self.outbox.sql)).await;
            return ended.and(unlocked);
        }
        ended.map(drop)
    }

    /// Watches until the dispatcher, this session or the connection is gone. Returns whether the
    /// connection still works.
    async fn watch_loop(&mut self, connection: &mut Connection<Db>) -> Result<bool> {
        let session = self.open_session(connection).await?;
        let opened_at = Instant::now();
        let mut schedule = PollSchedule::new(
            Db::LONGEST_POLL_GAP,
            self.outbox.config.poll_interval.min(YEAR),
            Db::HAS_NOTIFICATIONS && session.is_some(),
            opened_at,
        );
        let mut detector = FailureDetector::new(opened_at, self.is_reconnecting);
        self.is_reconnecting = true;
        // Covers all changes since the last connection.
        self.outbox.signals.raise(Signal::OwnershipChanged);
        self.outbox.signals.raise(Signal::PeerPublished);
        while !self.session.is_dispatcher_gone() {
            let poll = self.poll(connection, session).await?;
            if session.is_some() && !poll.has_session_lock {
                self.on_session_changed(connection, opened_at.elapsed())
                    .await?;
                return Ok(true);
            }
            if session.is_some() && !poll.is_advertised {
                // The instance's row was deleted, and a claim has written a new one.
                self.advertise(connection, session).await?;
                schedule.stop_listening();
            }
            self.backoff.recovered();
            let now = Instant::now();
            if self.report_changes(&poll) {
                schedule.changed(now);
            }
            for instance in detector.observe(&poll.lost_sessions, now) {
                tracing::info!(%instance, "instance died; its partitions are unowned");
                with_timeout(Db::reap_lost(connection, &self.outbox.sql, instance)).await?;
                self.outbox.signals.raise(Signal::OwnershipChanged);
            }
            if schedule.start_listening(&poll, now) {
                self.set_listening(connection, true).await?;
                continue;
            }
            let next = now + schedule.next_gap(&poll, detector.has_suspects(), now);
            if !self.wait_for_sign(connection, &mut schedule, next).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Polls, and reports that the session was verified if it still is this one.
    async fn poll(
        &self,
        connection: &mut Connection<Db>,
        session: Option<SessionKey>,
    ) -> Result<PollResult> {
        let (sql, sent_at) = (&self.outbox.sql, Instant::now());
        let poll = Db::poll(connection, sql, self.owner, session, self.highest_id);
        let poll = with_timeout(poll).await?;
        if session.is_some() && poll.has_session_lock {
            self.session.verified(sent_at);
        }
        Ok(poll)
    }

    /// Ties this process to the session of the connection, and lets peers see it.
    async fn open_session(
        &mut self,
        connection: &mut Connection<Db>,
    ) -> Result<Option<SessionKey>> {
        if !Db::HAS_SESSION_LOCKS || self.pooler.is_found() {
            self.advertise(connection, None).await?;
            return Ok(None);
        }
        let session = SessionKey::new();
        with_timeout(Db::lock_session(connection, &self.outbox.sql, session)).await?;
        self.session.session_opening();
        if !self.is_reconnecting {
            let (sql, micros) = (&self.outbox.sql, self.lease_micros);
            with_timeout(Db::register(connection, sql, self.owner, session, micros)).await?;
        }
        let sent_at = Instant::now();
        self.advertise(connection, Some(session)).await?;
        // Only now: a claim that was sent while peers saw the earlier session does not count.
        self.session.session_opened(session, sent_at);
        Ok(Some(session))
    }

    /// Lets peers see this session, or none.
    async fn advertise(
        &self,
        connection: &mut Connection<Db>,
        session: Option<SessionKey>,
    ) -> Result<()> {
        with_timeout(Db::advertise(
            connection,
            &self.outbox.sql,
            self.owner,
            session,
        ))
        .await
    }

    async fn set_listening(
        &self,
        connection: &mut Connection<Db>,
        is_listening: bool,
    ) -> Result<()> {
        let set = Db::set_listening(connection, &self.outbox.sql, self.owner, is_listening);
        with_timeout(set).await
    }

    /// The session changed although the connection was not lost.
    async fn on_session_changed(
        &mut self,
        connection: &mut Connection<Db>,
        lasted: Duration,
    ) -> Result<()> {
        if self.pooler.session_changed(lasted) {
            tracing::warn!(
                "connections share sessions, as behind a transaction-pooling proxy; peers replace a killed process only when its leases have expired"
            );
            self.advertise(connection, None).await?;
            self.session.no_session();
        }
        Ok(())
    }

    /// Raises the signals for the changes that a poll found. Returns whether there were any.
    fn report_changes(&mut self, poll: &PollResult) -> bool {
        let has_published = poll.highest_id > self.highest_id;
        let has_new_owners = poll.ownership_digest != self.ownership_digest;
        if has_published {
            self.highest_id = poll.highest_id;
            self.outbox.signals.raise(Signal::PeerPublished);
        }
        if has_new_owners {
            self.ownership_digest.clone_from(&poll.ownership_digest);
            self.outbox.signals.raise(Signal::OwnershipChanged);
        }
        has_published || has_new_owners
    }

    /// Waits until the next poll, or until the dispatcher is gone. Returns whether the connection
    /// still works.
    async fn wait_for_sign(
        &self,
        connection: &mut Connection<Db>,
        schedule: &mut PollSchedule,
        next: Instant,
    ) -> Result<bool> {
        let signals = &self.outbox.signals;
        loop {
            // A notification that was not taken stays in the connection's buffer.
            let notification = tokio::select! {
                notification = Db::next_notification(connection) => notification?,
                () = sleep_until(next) => return Ok(true),
                () = signals.verification_requested() => return Ok(true),
                () = self.session.dispatcher_gone() => return Ok(true),
            };
            match notification {
                Notification::ConnectionLost => return Ok(false),
                Notification::OwnershipChanged => signals.raise(Signal::OwnershipChanged),
                Notification::Published(partitions) => {
                    signals.peer_published_in(&partitions);
                    if schedule.notified(Instant::now()) {
                        self.set_listening(connection, false).await?;
                        return Ok(true);
                    }
                }
            }
        }
    }
}

/// Finds a proxy that gives each transaction another session. Then session locks are useless.
#[derive(Debug, Default)]
struct PoolerDetector {
    consecutive_changes: u32,
}

impl PoolerDetector {
    /// After three consecutive sessions that changed although their connections were not lost.
    const POOLER_AFTER: u32 = 3;
    /// A session that lasted a minute is not from such a proxy, and restarts the count.
    const LASTING: Duration = Duration::from_secs(60);

    /// A session changed after the time `lasted`. Returns whether there is a proxy.
    fn session_changed(&mut self, lasted: Duration) -> bool {
        if lasted >= Self::LASTING {
            self.consecutive_changes = 0;
        }
        self.consecutive_changes += 1;
        self.is_found()
    }

    fn is_found(&self) -> bool {
        self.consecutive_changes >= Self::POOLER_AFTER
    }
}

async fn with_timeout<T>(statement: impl Future<Output = Result<T>>) -> Result<T> {
    let answer = timeout(STATEMENT_TIMEOUT, statement).await;
    answer.unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_consecutive_session_changes_mean_a_proxy() {
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(3600));
        let mut rare = PoolerDetector::default();
        assert!(!(0..10).any(|_| rare.session_changed(long)));
        let mut often = PoolerDetector::default();
        let mut found = (0..5).map(|_| often.session_changed(short));
        assert_eq!(found.position(|found| found), Some(2));
    }
}
