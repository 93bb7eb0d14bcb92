//! What is done to the workers and the server, and when: the same for the same seed, as far as the
//! workers that are there allow.

use std::{collections::BTreeMap, time::Duration};

use rand::{RngExt as _, rngs::StdRng, seq::SliceRandom as _};
use tokio::time::Instant;

use crate::{
    database::Tested,
    fleet::{Fleet, State},
    history::History,
    injection::Later,
    server::{Kind, Server},
};

/// Something that can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    /// `kill -9`; started again after up to three seconds.
    Kill,
    /// Stopped for longer than its lease, then resumed.
    Freeze,
    /// The server ends one or all connections of a worker.
    Terminate,
    /// The server crashes and comes back.
    Restart,
    /// The network resets the connections of a worker and refuses new ones for up to two seconds.
    Cut,
    /// One worker more.
    Join,
    /// A worker is asked to leave.
    Leave,
    /// A worker's clock is wrong by hours.
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

    /// A database that is a file has no connections and no server.
    pub(crate) fn applies_to(self, kind: Kind) -> bool {
        let needs_server = matches!(self, Self::Terminate | Self::Restart | Self::Cut);
        !needs_server || kind != Kind::Sqlite
    }
}

/// Does it.
pub(crate) struct Faults<'a> {
    pub(crate) server: &'a mut Server,
    pub(crate) fleet: &'a mut Fleet,
    pub(crate) history: &'a History,
    pub(crate) random: StdRng,
    pub(crate) kinds: Vec<FaultKind>,
    pub(crate) lease: Duration,
    pub(crate) workers: usize,
    pub(crate) done: BTreeMap<FaultKind, u32>,
    deck: Vec<FaultKind>,
    pub(crate) later: Vec<(Instant, Later)>,
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
            deck: Vec::new(),
            later: Vec::new(),
        }
    }

    /// Until then, one every second to four; then everybody is woken up, and there are as many
    /// workers as in the beginning.
    pub(crate) async fn run<Db: Tested>(&mut self, end: Instant) -> anyhow::Result<()> {
        let mut next = Instant::now() + self.millis(1000, 2000);
        loop {
            let due = self.later.iter().map(|(at, _)| *at).min();
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

    /// Each kind comes once before any comes again. What cannot be done now is put back.
    async fn inject<Db: Tested>(&mut self) -> anyhow::Result<()> {
        if self.deck.is_empty() {
            self.deck = self.kinds.clone();
            self.deck.shuffle(&mut self.random);
        }
        let running = self.fleet.all(State::Running);
        let possible = |kind: &FaultKind| match kind {
            FaultKind::Kill | FaultKind::Freeze | FaultKind::Leave => running.len() > 1,
            FaultKind::Join => self.fleet.workers.len() < self.workers + 3,
            FaultKind::Terminate | FaultKind::Cut | FaultKind::Clock => !running.is_empty(),
            FaultKind::Restart => true,
        };
        let Some(at) = self.deck.iter().position(possible) else {
            return Ok(());
        };
        let kind = self.deck.remove(at);
        let victim = match running.len() {
            0 => None,
            count => Some(running[self.random.random_range(0..count)]),
        };
        match self.make::<Db>(kind, victim).await? {
            Some(what) => {
                eprintln!("{:<9} {what}", kind.name());
                *self.done.entry(kind).or_default() += 1;
            }
            None => self.deck.push(kind),
        }
        Ok(())
    }
}
