//! Signs of other processes, on a connection of its own.                                    (I/O)
//!
//! The watcher raises [`WakeSignals`] when records were published or partitions changed hands.
//! Where the database has session locks, the lock on this connection also shows peers that this
//! process lives ([`session`](super::session)), and the watcher finds peers that do not
//! ([`FailureDetector`]). Nothing depends on it but speed: without it, leases expire and the poll
//! of the event loop finds everything.

use std::{sync::Arc, time::Duration};

use sqlx::Pool;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::failure_detector::FailureDetector;
use super::poll_schedule::PollSchedule;
use super::session::{SessionReporter, SessionState, SessionWatch};
use crate::outbox::error::Operation;
use crate::{
    runtime::{
        backoff::DatabaseBackoff,
        signals::{Signal, WakeSignals},
    },
    store::{Database, Notification, PollResult, SessionKey, Statements},
};

/// With fewer connections than this the pool has none to spare for a watcher.
const MIN_POOL: u32 = 5;
/// The database may take this long to answer one statement. Without a limit, a connection that
/// leads nowhere would keep this process from starting anything for as long as its leases are
/// renewed on another connection.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// What a watcher is made of.
pub(crate) struct WatcherSettings<Db: Database> {
    pub(crate) pool: Pool<Db>,
    pub(crate) sql: Arc<Statements>,
    pub(crate) owner: Uuid,
    pub(crate) signals: Arc<WakeSignals>,
    pub(crate) poll_interval: Duration,
    pub(crate) lease_micros: i64,
    /// Another watcher of this process has panicked. Peers may still see its session.
    pub(crate) is_restart: bool,
}

/// Runs in a task of its own until the dispatcher has ended; its session ends with it, and peers
/// see that.
pub(crate) struct Watcher<Db: Database> {
    settings: WatcherSettings<Db>,
    session: SessionReporter,
    pooler: PoolerDetector,
    /// This is not the watcher's first connection.
    is_reconnecting: bool,
    highest_id: i64,
    /// Differs after a change of ownership or of pauses.
    ownership_digest: String,
}

/// Why the watcher has left a connection that did not fail.
enum Ended {
    DispatcherGone,
    SessionChanged,
    ConnectionLost,
}

impl<Db: Database> Watcher<Db> {
    /// `None` where the pool is too small for it.
    pub(crate) fn new(settings: WatcherSettings<Db>) -> Option<(Self, SessionWatch)> {
        if settings.pool.options().get_max_connections() < MIN_POOL {
            return None;
        }
        let may_have_session = settings.is_restart && Db::HAS_SESSION_LOCKS;
        let (session, watch) = SessionReporter::new(if may_have_session {
            SessionState::Lost
        } else {
            SessionState::None
        });
        let watcher = Self {
            settings,
            session,
            pooler: PoolerDetector::default(),
            is_reconnecting: false,
            highest_id: 0,
            ownership_digest: String::new(),
        };
        Some((watcher, watch))
    }

    pub(crate) async fn run(mut self) {
        let mut backoff = DatabaseBackoff::default();
        while !self.session.is_dispatcher_gone() {
            let ended = self.watch_one_connection(&mut backoff).await;
            self.session.session_lost();
            if let Err(error) = ended {
                let delay = backoff.failed(Operation::Watch, &error);
                // There is no connection, so nothing is lost with either branch.
                tokio::select! {
                    () = tokio::time::sleep(delay) => {}
                    () = self.session.dispatcher_gone() => {}
                }
            }
        }
    }

    /// One connection, from its beginning to its end. A connection that is still there goes back to
    /// the pool, so its session lock is released. One that is lost has none, and asking for a
    /// release would only connect again.
    async fn watch_one_connection(
        &mut self,
        backoff: &mut DatabaseBackoff,
    ) -> Result<(), sqlx::Error> {
        let WatcherSettings { pool, sql, .. } = &self.settings;
        let mut connection = with_timeout(Db::open(pool, sql)).await?;
        let ended = self.watch_loop(&mut connection, backoff).await;
        let is_connected = match &ended {
            Ok(Ended::DispatcherGone | Ended::SessionChanged) => true,
            Ok(Ended::ConnectionLost) => false,
            Err(error) => error.as_database_error().is_some(),
        };
        let unlocked = if is_connected {
            with_timeout(Db::unlock_session(&mut connection, &self.settings.sql)).await
        } else {
            Ok(())
        };
        ended.and(unlocked)
    }

    async fn watch_loop(
        &mut self,
        connection: &mut Db::WatchConnection,
        backoff: &mut DatabaseBackoff,
    ) -> Result<Ended, sqlx::Error> {
        let session = self.open_session(connection).await?;
        let opened_at = Instant::now();
        let mut schedule = PollSchedule::new(
            Db::LONGEST_POLL_GAP,
            self.settings.poll_interval,
            Db::HAS_NOTIFICATIONS && session.is_some(),
            opened_at,
        );
        let mut detector = FailureDetector::new(opened_at, self.is_reconnecting);
        self.is_reconnecting = true;
        // Whatever happened while nobody watched.
        self.settings.signals.raise(Signal::OwnershipChanged);
        self.settings.signals.raise(Signal::PeerPublished);
        while !self.session.is_dispatcher_gone() {
            let poll = self.poll(connection, session).await?;
            if session.is_some() {
                if !poll.held {
                    self.on_session_changed(connection, opened_at.elapsed())
                        .await?;
                    return Ok(Ended::SessionChanged);
                }
                if !poll.shown {
                    // The instance's row was deleted, and a claim has written it anew.
                    self.advertise(connection, session).await?;
                    schedule.stop_listening();
                }
            }
            backoff.recovered();
            let now = Instant::now();
            if self.report_changes(&poll) {
                schedule.changed(now);
            }
            for instance in detector.observe(&poll.gone, now) {
                tracing::info!(%instance, "instance died; its partitions are free");
                with_timeout(Db::reap_lost(connection, &self.settings.sql, instance)).await?;
                self.settings.signals.raise(Signal::OwnershipChanged);
            }
            if schedule.start_listening(&poll, now) {
                self.set_listening(connection, true).await?;
                continue;
            }
            let next = now + schedule.next_gap(&poll, detector.has_suspects(), now);
            if let Some(ended) = self.wait_for_sign(connection, &mut schedule, next).await? {
                return Ok(ended);
            }
        }
        Ok(Ended::DispatcherGone)
    }

    /// Polls, and reports that the session was verified if it still is this one.
    async fn poll(
        &self,
        connection: &mut Db::WatchConnection,
        session: Option<SessionKey>,
    ) -> Result<PollResult, sqlx::Error> {
        let WatcherSettings { sql, owner, .. } = &self.settings;
        let asked_at = Instant::now();
        let poll = Db::poll(connection, sql, *owner, session, self.highest_id);
        let poll = with_timeout(poll).await?;
        if session.is_some() && poll.held {
            self.session.verified(asked_at);
        }
        Ok(poll)
    }

    /// Ties this process to the session of the connection, and lets peers see it.
    async fn open_session(
        &mut self,
        connection: &mut Db::WatchConnection,
    ) -> Result<Option<SessionKey>, sqlx::Error> {
        if !Db::HAS_SESSION_LOCKS || self.pooler.is_found() {
            self.advertise(connection, None).await?;
            return Ok(None);
        }
        let session = SessionKey::new();
        with_timeout(Db::lock_session(connection, &self.settings.sql, session)).await?;
        self.session.session_opening();
        if !self.is_reconnecting {
            let settings = &self.settings;
            let (sql, micros) = (&settings.sql, settings.lease_micros);
            let registered = Db::register(connection, sql, settings.owner, session, micros);
            with_timeout(registered).await?;
        }
        let asked_at = Instant::now();
        self.advertise(connection, Some(session)).await?;
        // Only now: a claim that was sent while peers saw the session before does not count.
        self.session.session_opened(asked_at);
        Ok(Some(session))
    }

    /// Lets peers see this session, or none.
    async fn advertise(
        &self,
        connection: &mut Db::WatchConnection,
        session: Option<SessionKey>,
    ) -> Result<(), sqlx::Error> {
        let WatcherSettings { sql, owner, .. } = &self.settings;
        with_timeout(Db::advertise(connection, sql, *owner, session)).await
    }

    async fn set_listening(
        &self,
        connection: &mut Db::WatchConnection,
        is_listening: bool,
    ) -> Result<(), sqlx::Error> {
        let WatcherSettings { sql, owner, .. } = &self.settings;
        with_timeout(Db::set_listening(connection, sql, *owner, is_listening)).await
    }

    /// The session is another one, though the connection was not lost.
    async fn on_session_changed(
        &mut self,
        connection: &mut Db::WatchConnection,
        lasted: Duration,
    ) -> Result<(), sqlx::Error> {
        if self.pooler.session_changed(lasted) {
            tracing::warn!(
                "connections share sessions, as behind a transaction-pooling proxy; peers replace a killed process only when its leases have expired"
            );
            self.advertise(connection, None).await?;
            self.session.no_session();
        }
        Ok(())
    }

    /// Raises the signals for what a poll found. Returns whether it found something.
    fn report_changes(&mut self, poll: &PollResult) -> bool {
        let published = poll.highest > self.highest_id;
        let moved = poll.leases != self.ownership_digest;
        if published {
            self.highest_id = poll.highest;
            self.settings.signals.raise(Signal::PeerPublished);
        }
        if moved {
            self.ownership_digest.clone_from(&poll.leases);
            self.settings.signals.raise(Signal::OwnershipChanged);
        }
        published || moved
    }

    /// Waits until the next poll. Returns why this connection has ended, if it has.
    async fn wait_for_sign(
        &self,
        connection: &mut Db::WatchConnection,
        schedule: &mut PollSchedule,
        next: Instant,
    ) -> Result<Option<Ended>, sqlx::Error> {
        let signals = &self.settings.signals;
        loop {
            // A notification that was not taken stays in the connection's buffer.
            let notification = tokio::select! {
                notification = Db::next_notification(connection) => notification?,
                () = sleep_until(next) => return Ok(None),
                () = signals.verification_requested() => return Ok(None),
                () = self.session.dispatcher_gone() => return Ok(Some(Ended::DispatcherGone)),
            };
            match notification {
                Notification::ConnectionLost => return Ok(Some(Ended::ConnectionLost)),
                Notification::OwnershipChanged => signals.raise(Signal::OwnershipChanged),
                Notification::Published(partitions) => {
                    signals.peer_published_in(&partitions);
                    if schedule.notified(Instant::now()) {
                        self.set_listening(connection, false).await?;
                        return Ok(None);
                    }
                }
            }
        }
    }
}

/// Whether a proxy gives each transaction another session. Then session locks say nothing.
#[derive(Debug, Default)]
struct PoolerDetector {
    changes_in_a_row: u32,
}

impl PoolerDetector {
    /// Three sessions in a row changed although their connections were not lost.
    const POOLER_AFTER: u32 = 3;
    /// A session that lasted a minute is no session of such a proxy, and ends the row.
    const LASTING: Duration = Duration::from_secs(60);

    /// A session changed after it had lasted that long. Returns whether the proxy is found by this.
    fn session_changed(&mut self, lasted: Duration) -> bool {
        if lasted >= Self::LASTING {
            self.changes_in_a_row = 0;
        }
        self.changes_in_a_row += 1;
        self.is_found()
    }

    fn is_found(&self) -> bool {
        self.changes_in_a_row >= Self::POOLER_AFTER
    }
}

async fn with_timeout<T>(
    asked: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let answered = tokio::time::timeout(STATEMENT_TIMEOUT, asked).await;
    answered.unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sessions_that_change_one_after_the_other_mean_a_proxy() {
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(3600));
        let mut rare = PoolerDetector::default();
        assert!(!(0..10).any(|_| rare.session_changed(long)));
        let mut often = PoolerDetector::default();
        let mut found = (0..5).map(|_| often.session_changed(short));
        assert_eq!(found.position(|found| found), Some(2));
    }
}
