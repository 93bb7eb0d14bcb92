//! Watching for signs of other processes, in a task and on a connection of its own.
//!
//! What it sees, it tells the dispatcher through [`WakeSignals`]: that something was published, that
//! partitions changed hands. Where the database tells when a session ends, it also is the sign
//! that this process lives ([`session`]), and it finds those who do not ([`suspects`]). Nothing
//! depends on it but speed: without it, leases run out and the poll finds everything.

use std::{sync::Arc, time::Duration};

use sqlx::Pool;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::failure_detector::FailureDetector;
use super::poll_schedule::PollSchedule;
use super::session::{SessionReporter, SessionState};
use crate::outbox::error::Operation;
use crate::{
    runtime::{backoff::DatabaseBackoff, signals::WakeSignals},
    store::{Database, Notification, PollResult, SessionKey, TableNames},
};

/// With fewer connections, all others are needed elsewhere.
const SMALL_POOL: u32 = 5;
/// So often in a row it was not the same session any more: there is a proxy in between that gives
/// each transaction another one.
const POOLED: u32 = 3;

/// How long the database may take to answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Watches for signs, until the dispatcher has ended; then its session does, and others see it.
pub(crate) struct Watcher<Db: Database> {
    pool: Pool<Db>,
    names: TableNames,
    owner: Uuid,
    wake: Arc<WakeSignals>,
    poll: Duration,
    /// How long it lives without saying so again, in microseconds.
    lease: i64,
    pulse: SessionReporter,
    /// This is not its first connection.
    had_a_line: bool,
    highest: i64,
    leases: String,
    /// How often a session was not the same any more.
    strange: u32,
    /// What others may rely on: this instance knows that it is not alone, and trusts its session
    /// for a short time only. Written before it trusts for longer, and after it trusts for less.
    wary: bool,
}

impl<Db: Database> Watcher<Db> {
    /// None where the pool is too small for it. `again`: another one has panicked.
    pub(crate) fn new(
        pool: Pool<Db>,
        names: TableNames,
        owner: Uuid,
        wake: Arc<WakeSignals>,
        poll: Duration,
        lease: i64,
        again: bool,
    ) -> Option<(Self, tokio::sync::watch::Receiver<SessionState>)> {
        if pool.options().get_max_connections() < SMALL_POOL {
            return None;
        }
        let (pulse, session) = SessionReporter::new(again);
        let watcher = Self {
            pool,
            names,
            owner,
            wake,
            poll,
            lease,
            pulse,
            had_a_line: false,
            highest: 0,
            leases: String::new(),
            strange: 0,
            // It trusts for a short time until it has seen that it is alone.
            wary: true,
        };
        Some((watcher, session))
    }

    /// For as long as the dispatcher runs.
    pub(crate) async fn run(mut self) {
        let mut outage = DatabaseBackoff::default();
        while !self.pulse.is_unwanted() {
            let ended = self.watch(&mut outage).await;
            self.pulse.lost();
            if let Err(error) = ended {
                let wait = outage.failed(Operation::Watch, &error);
                // Nothing is lost with either: there is no connection.
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = self.pulse.unwanted() => {}
                }
            }
        }
    }

    /// One connection, from its beginning to its end.
    async fn watch(&mut self, outage: &mut DatabaseBackoff) -> Result<(), sqlx::Error> {
        let mut line = in_time(Db::open(&self.pool, &self.names)).await?;
        let ended = self.watch_on(&mut line, outage).await;
        // Whatever ended it: the connection may go back to the pool.
        let let_go = in_time(Db::unlock_session(&mut line)).await;
        ended.and(let_go)
    }

    async fn watch_on(
        &mut self,
        line: &mut Db::WatchConnection,
        outage: &mut DatabaseBackoff,
    ) -> Result<(), sqlx::Error> {
        let session = self.begin(line).await?;
        let now = Instant::now();
        let listens = Db::HAS_NOTIFICATIONS && session.is_some();
        let mut rhythm = PollSchedule::new(Db::LONGEST_POLL_GAP, self.poll, listens, now);
        let mut suspects = FailureDetector::new(now, self.had_a_line);
        self.had_a_line = true;
        // What happened while nobody watched.
        self.wake.leases();
        self.wake.records(&[]);
        while !self.pulse.is_unwanted() {
            let asked_at = Instant::now();
            let tick = Db::poll(line, &self.names, self.owner, session, self.highest);
            let tick = in_time(tick).await?;
            if session.is_some() {
                if !tick.held {
                    return self.strange(line).await;
                }
                let alone = tick.peers == 0;
                self.pulse.seen(asked_at, alone && !self.wary);
                // Or its row was deleted, and written anew by a claim.
                if !tick.shown || self.wary == alone {
                    self.wary = !alone;
                    self.show(line, session).await?;
                    rhythm.wakes();
                }
            }
            outage.over();
            let now = Instant::now();
            if self.has_changed(&tick) {
                rhythm.changed(now);
            }
            if !tick.shown {
                // Others do not see it either, and may trust for longer.
                suspects = FailureDetector::new(now, true);
            }
            for instance in suspects.look(&tick.gone, now) {
                tracing::info!(%instance, "an instance has died; its partitions are free");
                in_time(Db::reap_lost(line, &self.names, instance)).await?;
                self.wake.leases();
            }
            if rhythm.falls_asleep(&tick, now) {
                in_time(Db::set_listening(line, &self.names, self.owner, true)).await?;
                continue;
            }
            let next = now + rhythm.gap(&tick, suspects.are_there(), now);
            if !self.wait(line, &mut rhythm, next).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Ties this process to the session of the line.
    async fn begin(
        &mut self,
        line: &mut Db::WatchConnection,
    ) -> Result<Option<SessionKey>, sqlx::Error> {
        if !Db::HAS_SESSION_LOCKS || self.strange >= POOLED {
            self.show(line, None).await?;
            return Ok(None);
        }
        let session = SessionKey::new();
        in_time(Db::lock_session(line, session)).await?;
        // Before others see it, and may bury this process for its loss ..
        self.pulse.begins(Instant::now());
        if !self.had_a_line {
            let (names, owner, micros) = (&self.names, self.owner, self.lease);
            in_time(Db::register(line, names, owner, session, micros)).await?;
        }
        self.show(line, Some(session)).await?;
        // .. and again, so that no claim counts that was made when they saw the one before.
        self.pulse.begins(Instant::now());
        Ok(Some(session))
    }

    /// Lets others see the session, and whether this process is wary.
    async fn show(
        &self,
        line: &mut Db::WatchConnection,
        session: Option<SessionKey>,
    ) -> Result<(), sqlx::Error> {
        in_time(Db::advertise(
            line,
            &self.names,
            self.owner,
            session,
            self.wary,
        ))
        .await
    }

    /// The session is another one, though the connection was not lost.
    async fn strange(&mut self, line: &mut Db::WatchConnection) -> Result<(), sqlx::Error> {
        self.strange += 1;
        if self.strange == POOLED {
            tracing::warn!(
                "connections share sessions, as behind a transaction-pooling proxy: a process that is killed is replaced when its leases have run out"
            );
            self.show(line, None).await?;
            self.pulse.none();
        }
        Ok(())
    }

    fn has_changed(&mut self, tick: &PollResult) -> bool {
        let published = tick.highest > self.highest;
        let moved = tick.leases != self.leases;
        if published {
            self.highest = tick.highest;
            self.wake.records(&[]);
        }
        if moved {
            self.leases.clone_from(&tick.leases);
            self.wake.leases();
        }
        published || moved
    }

    /// Until it is time for the next look. Whether the connection is still there.
    async fn wait(
        &self,
        line: &mut Db::WatchConnection,
        rhythm: &mut PollSchedule,
        next: Instant,
    ) -> Result<bool, sqlx::Error> {
        loop {
            // Dropped in the middle, what was heard stays in the connection's buffer.
            let heard = tokio::select! {
                heard = Db::next_notification(line) => heard?,
                () = sleep_until(next) => return Ok(true),
                () = self.wake.confirmation_wanted() => return Ok(true),
                () = self.pulse.unwanted() => return Ok(true),
            };
            match heard {
                Notification::ConnectionLost => return Ok(false),
                Notification::OwnershipChanged => self.wake.leases(),
                Notification::Published(parts) => {
                    self.wake.records(&parts);
                    if rhythm.wakes_up(Instant::now()) {
                        in_time(Db::set_listening(line, &self.names, self.owner, false)).await?;
                        return Ok(true);
                    }
                }
            }
        }
    }
}

/// Without a limit, a connection that leads nowhere would keep this process from starting anything
/// for as long as its leases are renewed on another.
async fn in_time<T>(asked: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    let answered = tokio::time::timeout(LIMIT, asked).await;
    answered.unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
}
