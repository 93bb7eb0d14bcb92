//! The faults that a run injects into workers and server, and when. A seed gives the same faults
//! each time, as far as the running workers allow.

use std::{collections::BTreeMap, time::Duration};

use rand::{RngExt as _, rngs::StdRng, seq::SliceRandom as _};
use tokio::time::Instant;

use crate::{
    database::Tested,
    fleet::{Fleet, State},
    history::History,
    injection::FollowUp,
    server::{Kind, Server},
};

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    /// A worker is killed by `kill -9`, and started again after at most 3 seconds.
    Kill,
    /// A worker is stopped by `SIGSTOP` for longer than its lease, and then resumed.
    Freeze,
    /// The server ends one or all connections of a worker.
    Terminate,
    /// The server crashes and starts again.
    Restart,
    /// The proxy resets the connections of a worker and refuses new ones for at most 2 seconds.
    Cut,
    /// One more worker starts.
    Join,
    /// A worker gets `SIGTERM` and shuts down.
    Leave,
    /// The clock of a worker is wrong by hours.
    Clock,
}

impl FaultKind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Kill,
        Self::Freeze,
        Self::Terminate,
        Self::Restart,
        Self::Cut,
        Self::Join,
        Self::Leave,
        Self::Clock,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Freeze => "freeze",
            Self::Terminate => "terminate",
            Self::Restart => "restart",
            Self::Cut => "cut",
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Clock => "clock",
        }
    }

    /// SQLite has no server and no connections to it.
    pub(crate) fn applies_to(self, kind: Kind) -> bool {
        let needs_server = matches!(self, Self::Terminate | Self::Restart | Self::Cut);
        !needs_server || kind != Kind::Sqlite
    }
}

/// Injects the faults of a run.
pub(crate) struct Faults<'a> {
    pub(crate) server: &'a mut Server,
    pub(crate) fleet: &'a mut Fleet,
    pub(crate) history: &'a History,
    pub(crate) random: StdRng,
    pub(crate) kinds: Vec<FaultKind>,
    pub(crate) lease: Duration,
    pub(crate) workers: usize,
    pub(crate) done: BTreeMap<FaultKind, u32>,
    /// The kinds that are left before each kind is due again.
    remaining: Vec<FaultKind>,
    pub(crate) follow_ups: Vec<(Instant, FollowUp)>,
}

impl<'a> Faults<'a> {
    pub(crate) fn new(
        server: &'a mut Server,
        fleet: &'a mut Fleet,
        history: &'a History,
        random: StdRng,
        kinds: Vec<FaultKind>,
        lease: Duration,
    ) -> Self {
        Self {
            workers: fleet.workers.len(),
            server,
            fleet,
            history,
            random,
            kinds,
            lease,
            done: BTreeMap::new(),
            remaining: Vec::new(),
            follow_ups: Vec::new(),
        }
    }

    /// Injects a fault every 1 to 4 seconds until `end`. Then resumes all frozen workers, and starts
    /// workers until there are as many as at the start.
    pub(crate) async fn run<Db: Tested>(&mut self, end: Instant) -> anyhow::Result<()> {
        let mut next = Instant::now() + self.millis(1000, 2000);
        loop {
            let due = self.follow_ups.iter().map(|(at, _)| *at).min();
            let wake = due.unwrap_or(next).min(next).min(end);
            tokio::time::sleep_until(wake).await;
            self.fleet.reap()?;
            let now = Instant::now();
            self.follow_up(|at| at <= now).await?;
            if now >= end {
                break;
            }
            if now >= next {
                self.inject::<Db>().await?;
                next = Instant::now() + self.millis(1000, 4000);
            }
        }
        self.follow_up(|_| true).await?;
        while self.fleet.all(State::Running).len() < self.workers {
            self.fleet.join(self.server).await?;
        }
        Ok(())
    }

    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.random.random_range(from..=to))
    }

    /// Injects one fault. Each kind comes once before any comes again. A fault that cannot be
    /// injected now is tried later.
    async fn inject<Db: Tested>(&mut self) -> anyhow::Result<()> {
        if self.remaining.is_empty() {
            self.remaining = self.kinds.clone();
            self.remaining.shuffle(&mut self.random);
        }
        let running = self.fleet.all(State::Running);
        let possible = |kind: &FaultKind| match kind {
            FaultKind::Kill | FaultKind::Freeze | FaultKind::Leave => running.len() > 1,
            FaultKind::Join => self.fleet.workers.len() < self.workers + 3,
            FaultKind::Terminate | FaultKind::Cut | FaultKind::Clock => !running.is_empty(),
            FaultKind::Restart => true,
        };
        let Some(at) = self.remaining.iter().position(possible) else {
            return Ok(());
        };
        let kind = self.remaining.remove(at);
        let victim = match running.len() {
            0 => None,
            count => Some(running[self.random.random_range(0..count)]),
        };
        match self.inject_kind::<Db>(kind, victim).await? {
            Some(description) => {
                eprintln!("{:<9} {description}", kind.name());
                *self.done.entry(kind).or_default() += 1;
            }
            None => self.remaining.push(kind),
        }
        Ok(())
    }
}
