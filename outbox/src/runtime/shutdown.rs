//! The end: what runs is finished, what became of it written, what is owned given up.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::outbox::error::Operation;
use crate::runtime::{
    event_loop::{Run, joined},
    read::{Answer, Read},
};
use crate::store::{Database, Lease};

/// LeaseTable that could not be renewed while stopping: not again before this.
const RENEW_AGAIN: Duration = Duration::from_millis(100);

/// How far a process is that leaves. Dropped at its end, when everything is given up.
#[derive(Debug, Default)]
struct Leaving {
    /// The others know that it has no share any more.
    said: bool,
    /// Not in memory any more, and not given up yet.
    drained: Vec<Lease>,
    not_before: Option<Instant>,
}

impl<Db: Database> Run<Db> {
    /// Lets what runs finish until then, writes what became of it, and gives the leases up, each
    /// as soon as nothing of it runs: what else is in a partition does not wait for a slow handler.
    pub(in crate::runtime) async fn stop(mut self, until: Instant) {
        self.stop_pruning();
        self.engine.keep_open(0);
        let (mut answers, mut leaving) = (Vec::new(), Leaving::default());
        while !self.running.is_empty() {
            self.outbox.inner.heart.beats(Instant::now());
            self.write_now();
            leaving.drained.extend(self.engine.give_up_drained());
            let left = self.leave_with(&mut leaving);
            if timeout_at(until, left).await.is_err() {
                break;
            }
            // Nobody else may run what still runs here, however long that takes.
            let renew_at = self
                .engine
                .leases
                .renew_at()
                .max(self.renewed_at + RENEW_AGAIN);
            let again = leaving.not_before.unwrap_or(until);
            let again = self.crew.help(Instant::now()).unwrap_or(until).min(again);
            tokio::select! {
                count = self.answers.recv_many(&mut answers, 1024) => {
                    if count > 0 {
                        self.handlers_finished(&mut answers);
                    }
                }
                read = joined(&mut self.reading) => self.read_too_late(read),
                written = joined(&mut self.writing) => self.wrote(written),
                () = sleep_until(renew_at), if self.fetcher.is_some() => {
                    if timeout_at(until, self.renew()).await.is_err() {
                        break;
                    }
                }
                () = sleep_until(again.min(until)) => {
                    if Instant::now() >= until {
                        break;
                    }
                }
            }
        }
        let stopped = self.stop_running(|_| true);
        if !stopped.is_empty() {
            tracing::warn!(
                invocations = stopped.len(),
                "stopped before they had finished; their records are delivered again"
            );
        }
        self.engine.lanes.leave();
        // A batch that is being written is waited for, and then what has come up since.
        let flushed = timeout_at(until.max(Instant::now() + Duration::from_secs(1)), async {
            loop {
                if let Some(writing) = self.writing.take() {
                    let written = writing.await.ok();
                    self.wrote(written);
                }
                self.write_now();
                if self.writing.is_none() {
                    break;
                }
            }
        });
        if flushed.await.is_err() {
            tracing::warn!(
                "stopped before everything was written; some records are delivered again"
            );
        }
        self.release().await;
        self.stop_sampling();
    }

    /// What was read while we stop is left to whoever comes next. LeaseTable that were taken are to
    /// be given up too.
    pub(in crate::runtime) fn read_too_late(&mut self, read: Option<Read<Db>>) {
        self.reading = None;
        let Some(Read { fetcher, answer }) = read else {
            self.fetcher = Some(self.outbox.inner.fetcher());
            return;
        };
        self.fetcher = Some(fetcher);
        match answer {
            Answer::ClaimRequest(asked, Ok(claimed)) => {
                self.owns(asked, &claimed);
                self.engine.keep_open(0);
            }
            Answer::ClaimRequest(_, Err(_)) => {}
            Answer::FetchPlan(round, _) => self.engine.failed(*round),
        }
    }

    /// Says that this process has no share any more, or it would be taken for dead, and gives up
    /// what is drained: the others share it.
    async fn leave_with(&mut self, leaving: &mut Leaving) {
        let owner = self.engine.leases.owner;
        let todo = !leaving.said || !leaving.drained.is_empty();
        if leaving.not_before.is_some_and(|then| Instant::now() < then) {
            return;
        }
        leaving.not_before = None;
        let Some(fetcher) = self.fetcher.as_mut().filter(|_| todo) else {
            return;
        };
        match fetcher.leave(owner, Some(leaving.drained.clone())).await {
            Ok(()) => {
                *leaving = Leaving {
                    said: true,
                    ..Leaving::default()
                };
            }
            Err(error) => {
                let wait = self.outage.failed(Operation::HandOver, &error);
                leaving.not_before = Some(Instant::now() + wait);
            }
        }
    }

    pub(in crate::runtime) async fn renew(&mut self) {
        let (owner, micros) = (self.engine.leases.owner, self.lease_micros());
        self.renewed_at = Instant::now();
        let Some(fetcher) = &mut self.fetcher else {
            return;
        };
        match fetcher.renew(owner, micros).await {
            Ok(()) => self.engine.leases.renewed(self.renewed_at),
            Err(error) => {
                self.outage.failed(Operation::Claim, &error);
            }
        }
    }

    pub(in crate::runtime) async fn release(&mut self) {
        let limit = Duration::from_secs(2);
        if let Some(mut reading) = self.reading.take() {
            match tokio::time::timeout(limit, &mut reading).await {
                Ok(read) => self.read_too_late(read.ok()),
                Err(_) => reading.abort(),
            }
        }
        let owner = self.engine.leases.owner;
        let fetcher = self.fetcher.take();
        let mut fetcher = fetcher.unwrap_or_else(|| self.outbox.inner.fetcher());
        let left = tokio::time::timeout(limit, async {
            // Once more: what it locks may be in the way of another transaction.
            match fetcher.leave(owner, None).await {
                Ok(()) => Ok(()),
                Err(_) => fetcher.leave(owner, None).await,
            }
        });
        match left.await {
            Ok(Ok(())) => tracing::info!("stopped, and gave its partitions up"),
            Ok(Err(error)) => tracing::warn!(%error, "stopped; its leases run out by themselves"),
            Err(_) => tracing::warn!("stopped; its leases run out by themselves"),
        }
    }

    pub(in crate::runtime) fn abort(mut self) {
        self.stop_pruning();
        self.stop_sampling();
        self.stop_running(|_| true);
        if let Some(reading) = self.reading.take() {
            reading.abort();
        }
        if let Some(writing) = self.writing.take() {
            writing.abort();
        }
        tracing::warn!(
            "the dispatcher was dropped without `shutdown`; others take over as from a process that died"
        );
    }
}
