//! Signs of other processes, on a connection of its own.                                    (I/O)
//!
//! The watcher raises [signals](crate::runtime::signals) when records were published or partitions changed hands.
//! Where the database has session locks, the lock on this connection also shows peers that this
//! process lives ([`session`](super::session)), and the watcher finds peers that do not
//! ([`FailureDetector`]). Nothing depends on it but speed: without it, leases expire and the poll
//! of the event loop finds everything.

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

/// With fewer connections than this the pool has none to spare for a watcher.
const MIN_POOL: u32 = 5;
/// The database may take this long to answer one statement. Without a limit, a connection that
/// leads nowhere would keep this process from starting anything for as long as its leases are
/// renewed on another connection.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// The watcher's connection.
type Link<Db> = <Db as WatchSql>::WatchConnection;

/// Runs in a task of its own until the dispatcher has ended; its session ends with it, and peers
/// see that.
pub(crate) struct Watcher<Db: Database> {
    outbox: Arc<Shared<Db>>,
    owner: Uuid,
    /// How long the instance's row is valid at first, in microseconds.
    lease_micros: i64,
    session: SessionReporter,
    pooler: PoolerDetector,
    backoff: DatabaseBackoff,
    /// This is not the watcher's first connection.
    is_reconnecting: bool,
    highest_id: i64,
    /// Differs after a change of ownership or of pauses.
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
                // There is no connection, so nothing is lost with either branch.
                tokio::select! {
                    () = sleep(delay) => {}
                    () = self.session.dispatcher_gone() => {}
                }
            }
        }
    }

    /// One connection, from its beginning to its end. A connection that is still there goes back to
    /// the pool, so its session lock is released. One that is lost has none, and asking for a
    /// release would only connect again.
    async fn watch_one_connection(&mut self) -> Result<()> {
        let mut link = with_timeout(Db::open(&self.outbox.pool, &self.outbox.sql)).await?;
        let ended = self.watch_loop(&mut link).await;
        let is_connected = match &ended {
            Ok(is_connected) => *is_connected,
            Err(error) => error.as_database_error().is_some(),
        };
        if is_connected {
            let unlocked = with_timeout(Db::unlock_session(&mut link, &self.outbox.sql)).await;
            return ended.and(unlocked);
        }
        ended.map(drop)
    }

    /// Watches until the dispatcher is gone, or this session or connection. Returns whether the
    /// connection is still there.
    async fn watch_loop(&mut self, link: &mut Link<Db>) -> Result<bool> {
        let session = self.open_session(link).await?;
        let opened_at = Instant::now();
        let mut schedule = PollSchedule::new(
            Db::LONGEST_POLL_GAP,
            self.outbox.config.poll_interval.min(YEAR),
            Db::HAS_NOTIFICATIONS && session.is_some(),
            opened_at,
        );
        let mut detector = FailureDetector::new(opened_at, self.is_reconnecting);
        self.is_reconnecting = true;
        // Whatever happened while nobody watched.
        self.outbox.signals.raise(Signal::OwnershipChanged);
        self.outbox.signals.raise(Signal::PeerPublished);
        while !self.session.is_dispatcher_gone() {
            let poll = self.poll(link, session).await?;
            if session.is_some() && !poll.held {
                self.on_session_changed(link, opened_at.elapsed()).await?;
                return Ok(true);
            }
            if session.is_some() && !poll.shown {
                // The instance's row was deleted, and a claim has written it anew.
                self.advertise(link, session).await?;
                schedule.stop_listening();
            }
            self.backoff.recovered();
            let now = Instant::now();
            if self.report_changes(&poll) {
                schedule.changed(now);
            }
            for instance in detector.observe(&poll.gone, now) {
                tracing::info!(%instance, "instance died; its partitions are free");
                with_timeout(Db::reap_lost(link, &self.outbox.sql, instance)).await?;
                self.outbox.signals.raise(Signal::OwnershipChanged);
            }
            if schedule.start_listening(&poll, now) {
                self.set_listening(link, true).await?;
                continue;
            }
            let next = now + schedule.next_gap(&poll, detector.has_suspects(), now);
            if !self.wait_for_sign(link, &mut schedule, next).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Polls, and reports that the session was verified if it still is this one.
    async fn poll(&self, link: &mut Link<Db>, session: Option<SessionKey>) -> Result<PollResult> {
        let (sql, asked_at) = (&self.outbox.sql, Instant::now());
        let poll = Db::poll(link, sql, self.owner, session, self.highest_id);
        let poll = with_timeout(poll).await?;
        if session.is_some() && poll.held {
            self.session.verified(asked_at);
        }
        Ok(poll)
    }

    /// Ties this process to the session of the connection, and lets peers see it.
    async fn open_session(&mut self, link: &mut Link<Db>) -> Result<Option<SessionKey>> {
        if !Db::HAS_SESSION_LOCKS || self.pooler.is_found() {
            self.advertise(link, None).await?;
            return Ok(None);
        }
        let session = SessionKey::new();
        with_timeout(Db::lock_session(link, &self.outbox.sql, session)).await?;
        self.session.session_opening();
        if !self.is_reconnecting {
            let (sql, micros) = (&self.outbox.sql, self.lease_micros);
            with_timeout(Db::register(link, sql, self.owner, session, micros)).await?;
        }
        let asked_at = Instant::now();
        self.advertise(link, Some(session)).await?;
        // Only now: a claim that was sent while peers saw the session before does not count.
        self.session.session_opened(session, asked_at);
        Ok(Some(session))
    }

    /// Lets peers see this session, or none.
    async fn advertise(&self, link: &mut Link<Db>, session: Option<SessionKey>) -> Result<()> {
        with_timeout(Db::advertise(link, &self.outbox.sql, self.owner, session)).await
    }

    async fn set_listening(&self, link: &mut Link<Db>, is_listening: bool) -> Result<()> {
        let set = Db::set_listening(link, &self.outbox.sql, self.owner, is_listening);
        with_timeout(set).await
    }

    /// The session is another one, though the connection was not lost.
    async fn on_session_changed(&mut self, link: &mut Link<Db>, lasted: Duration) -> Result<()> {
        if self.pooler.session_changed(lasted) {
            tracing::warn!(
                "connections share sessions, as behind a transaction-pooling proxy; peers replace a killed process only when its leases have expired"
            );
            self.advertise(link, None).await?;
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
            self.outbox.signals.raise(Signal::PeerPublished);
        }
        if moved {
            self.ownership_digest.clone_from(&poll.leases);
            self.outbox.signals.raise(Signal::OwnershipChanged);
        }
        published || moved
    }

    /// Waits until the next poll, or until the dispatcher is gone. Returns whether the connection is
    /// still there.
    async fn wait_for_sign(
        &self,
        link: &mut Link<Db>,
        schedule: &mut PollSchedule,
        next: Instant,
    ) -> Result<bool> {
        let signals = &self.outbox.signals;
        loop {
            // A notification that was not taken stays in the connection's buffer.
            let notification = tokio::select! {
                notification = Db::next_notification(link) => notification?,
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
                        self.set_listening(link, false).await?;
                        return Ok(true);
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

async fn with_timeout<T>(asked: impl Future<Output = Result<T>>) -> Result<T> {
    let answered = timeout(STATEMENT_TIMEOUT, asked).await;
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
