//! Watching for signs of other processes, in a task and on a connection of its own.
//!
//! What it sees, it tells the dispatcher through [`Wake`]: that something was published, that
//! partitions changed hands. Where the database tells when a session ends, it also is the sign
//! that this process lives ([`session`]), and it finds those who do not ([`suspects`]). Nothing
//! depends on it but speed: without it, leases run out and the poll finds everything.

mod rhythm;
mod session;
mod suspects;

use std::{sync::Arc, time::Duration};

use sqlx::Pool;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

pub(crate) use session::Session;

use crate::{
    Database,
    outage::Outage,
    store::{Heard, Names, SessionKey, Tick},
    wake::Wake,
};
use rhythm::Rhythm;
use session::Pulse;
use suspects::Suspects;

/// With fewer connections, all others are needed elsewhere.
const SMALL_POOL: u32 = 5;
/// So often in a row it was not the same session any more: there is a proxy in between that gives
/// each transaction another one.
const POOLED: u32 = 3;

/// Watches for signs, until the dispatcher has ended; then its session does, and others see it.
pub(crate) struct Watcher<Db: Database> {
    pool: Pool<Db>,
    names: Names,
    owner: Uuid,
    wake: Arc<Wake>,
    poll: Duration,
    pulse: Pulse,
    suspects: Suspects,
    highest: i64,
    leases: String,
    /// How often a session was not the same any more.
    strange: u32,
}

impl<Db: Database> Watcher<Db> {
    /// None where the pool is too small for it.
    pub(crate) fn new(
        pool: Pool<Db>,
        names: Names,
        owner: Uuid,
        wake: Arc<Wake>,
        poll: Duration,
    ) -> Option<(Self, tokio::sync::watch::Receiver<Session>)> {
        if pool.options().get_max_connections() < SMALL_POOL {
            return None;
        }
        let (pulse, session) = Pulse::new();
        let watcher = Self {
            pool,
            names,
            owner,
            wake,
            poll,
            pulse,
            suspects: Suspects::new(Instant::now()),
            highest: 0,
            leases: String::new(),
            strange: 0,
        };
        Some((watcher, session))
    }

    /// For as long as the dispatcher runs.
    pub(crate) async fn run(mut self) {
        let mut outage = Outage::default();
        while !self.pulse.is_unwanted() {
            let ended = self.watch(&mut outage).await;
            self.pulse.lost();
            if let Err(error) = ended {
                let wait = outage.failed("watching for signs of other processes", &error);
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = self.pulse.unwanted() => {}
                }
            }
        }
    }

    /// One connection, from its beginning to its end.
    async fn watch(&mut self, outage: &mut Outage) -> Result<(), sqlx::Error> {
        let mut line = Db::open(&self.pool, &self.names).await?;
        let session = self.begin(&mut line).await?;
        let now = Instant::now();
        let mut rhythm = Rhythm::new(Db::LOOK_EVERY, self.poll, Db::LISTENS, now);
        // What happened while nobody watched.
        self.wake.leases();
        self.wake.records(&[]);
        loop {
            let asked_at = Instant::now();
            let tick = Db::tick(&mut line, &self.names, self.owner, session, self.highest).await?;
            if session.is_some() {
                if !tick.held {
                    return self.strange(&mut line).await;
                }
                self.pulse.seen(asked_at, tick.instances <= 1);
                if !tick.shown {
                    // Its row was deleted, and written anew by a claim.
                    Db::show(&mut line, &self.names, self.owner, session).await?;
                }
            }
            outage.over();
            let now = Instant::now();
            if self.has_changed(&tick) {
                rhythm.changed(now);
            }
            for instance in self.suspects.look(&tick.gone, now) {
                tracing::info!(%instance, "an instance has died; its partitions are free");
                Db::bury_gone(&mut line, &self.names, instance).await?;
                self.wake.leases();
            }
            if rhythm.falls_asleep(&tick, now) {
                Db::sleep(&mut line, &self.names, self.owner, true).await?;
                continue;
            }
            let next = now + rhythm.gap(&tick, self.suspects.are_there(), now);
            if !self.wait(&mut line, &mut rhythm, next).await? {
                return Ok(());
            }
            if self.pulse.is_unwanted() {
                return match session {
                    Some(session) => Db::let_go(&mut line, session).await,
                    None => Ok(()),
                };
            }
        }
    }

    /// Ties this process to the session of the line.
    async fn begin(&mut self, line: &mut Db::Line) -> Result<Option<SessionKey>, sqlx::Error> {
        if !Db::SESSIONS || self.strange >= POOLED {
            return Ok(None);
        }
        let session = SessionKey::new();
        Db::hold(line, session).await?;
        self.pulse.begins(Instant::now());
        Db::show(line, &self.names, self.owner, Some(session)).await?;
        Ok(Some(session))
    }

    /// The session is another one, though the connection was not lost.
    async fn strange(&mut self, line: &mut Db::Line) -> Result<(), sqlx::Error> {
        self.strange += 1;
        if self.strange == POOLED {
            tracing::warn!(
                "connections share sessions, as behind a transaction-pooling proxy: a process that is killed is replaced when its leases have run out"
            );
            Db::show(line, &self.names, self.owner, None).await?;
            self.pulse.none();
        }
        Ok(())
    }

    fn has_changed(&mut self, tick: &Tick) -> bool {
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
        line: &mut Db::Line,
        rhythm: &mut Rhythm,
        next: Instant,
    ) -> Result<bool, sqlx::Error> {
        loop {
            // Dropped in the middle, what was heard stays in the connection's buffer.
            let heard = tokio::select! {
                heard = Db::heard(line) => heard?,
                () = sleep_until(next) => return Ok(true),
                () = self.pulse.unwanted() => return Ok(true),
            };
            match heard {
                Heard::Nothing => return Ok(false),
                Heard::Leases => self.wake.leases(),
                Heard::Records(parts) => {
                    self.wake.records(&parts);
                    if rhythm.wakes_up(Instant::now()) {
                        Db::sleep(line, &self.names, self.owner, false).await?;
                        return Ok(true);
                    }
                }
            }
        }
    }
}
