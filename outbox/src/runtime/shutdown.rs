//! [`EventLoop::shut_down`]: finish, write, release, leave.

use std::{mem, time::Duration};

use tokio::time::{Instant, sleep_until, timeout_at};

use super::{EventLoop, ReadAnswer};
use crate::{
    outbox::error::Operation,
    runtime::{fetch::reader::Release, settle::writer::Flushed, single_task::TaskPanicked},
    store::{Database, Lease},
};

/// Leases that could not be renewed are renewed again after 100 ms at the earliest.
const RENEW_RETRY: Duration = Duration::from_millis(100);
/// The writer gets at least 1 s for the results of finished handlers, also after the deadline.
const FLUSH_TIME: Duration = Duration::from_secs(1);
/// A statement that is under way on the reading connection may take 2 s; so may the last release.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The state of a process that leaves the cluster while handlers still run.
#[derive(Debug)]
struct Departure {
    /// Peers know that this instance wants no share.
    is_announced: bool,
    /// The leases of drained partitions that are not released yet.
    to_release: Vec<Lease>,
    /// No release is sent before this time, which grows after an error.
    release_at: Instant,
    /// No renewal is sent before this time.
    renew_at: Instant,
}

impl<Db: Database> EventLoop<Db> {
    /// Lets handlers finish until `deadline`, writes their results, and releases each lease as soon
    /// as nothing of its partition runs: a slow handler delays only its own partition. The reader's
    /// task announces, renews and releases, so that this loop takes results also while the database
    /// hangs.
    pub(super) async fn shut_down(mut self, deadline: Instant) {
        self.housekeeping.stop_pruning();
        self.engine.keep_open(0);
        let now = Instant::now();
        let mut departure = Departure {
            is_announced: false,
            to_release: Vec::new(),
            release_at: now,
            renew_at: now,
        };
        while !self.runner.is_idle() && Instant::now() < deadline {
            let now = Instant::now();
            self.outbox.inner.liveness.tick(now);
            let offset = self.outbox.inner.offset();
            self.writer.start_now(&mut self.engine, offset);
            departure.to_release.extend(self.engine.release_drained());
            let departs_at = self.start_departing(now, &mut departure);
            let wakes = [departs_at, self.runner.next_wake(now)];
            let next_wake = wakes.into_iter().flatten().fold(deadline, Instant::min);
            tokio::select! {
                () = self.runner.finished() => self.runner.on_finished(&mut self.engine, &self.meters),
                answer = self.reader.finished() => self.on_answer(answer, &mut departure),
                written = self.writer.finished() => self.on_written(written),
                () = sleep_until(next_wake) => {}
            }
        }
        self.runner.take_results(&mut self.engine, &self.meters);
        let invocations = self.runner.cancel(|_| true).len();
        if invocations > 0 {
            tracing::warn!(
                invocations,
                "handlers cancelled before they had finished; their records are delivered again"
            );
        }
        self.engine.split_partly_done();
        let until = deadline.max(Instant::now() + FLUSH_TIME);
        let (offset, engine) = (self.outbox.inner.offset(), &mut self.engine);
        let flushed = self.writer.flush(engine, &self.meters, offset, until).await;
        if flushed == Flushed::NotEverything {
            tracing::warn!(
                "stopped before everything was written; some records are delivered again"
            );
        }
        self.leave_cluster(departure).await;
        self.housekeeping.stop();
    }

    /// Renews the leases while handlers run: no other process may run their records. Announces that
    /// this instance wants no share, because peers would otherwise take it for dead, and releases
    /// drained partitions. Returns when to look again, unless the reader is busy.
    fn start_departing(&mut self, now: Instant, departure: &mut Departure) -> Option<Instant> {
        if !self.reader.is_idle() {
            return None;
        }
        let leases = self.engine.leases();
        let (owner, micros) = (leases.owner(), leases.duration_micros());
        let renew_at = leases.renew_at().max(departure.renew_at);
        let needs_release = !departure.is_announced || !departure.to_release.is_empty();
        let release_at = needs_release.then_some(departure.release_at);
        if now >= renew_at {
            departure.renew_at = now + RENEW_RETRY;
            self.reader.start_renewing(owner, micros);
        } else if release_at.is_some_and(|release_at| now >= release_at) {
            let leases = mem::take(&mut departure.to_release);
            self.reader.start_leaving(owner, Release::Only(leases));
        } else {
            return release_at.into_iter().chain([renew_at]).min();
        }
        None
    }

    /// Leaves fetched records to other processes. Leases that a claim gained are released like the
    /// others.
    fn on_answer(&mut self, answer: Result<ReadAnswer, TaskPanicked>, departure: &mut Departure) {
        match answer {
            Ok(ReadAnswer::Claimed(Ok(outcome))) => {
                self.apply_leases(&outcome);
                self.engine.keep_open(0);
            }
            Ok(ReadAnswer::Claimed(Err(_))) => {}
            Ok(ReadAnswer::Fetched(plan, _)) => self.engine.on_fetch_failed(*plan),
            Ok(ReadAnswer::Renewed(sent_at, Ok(()))) => {
                self.reader.recovered();
                self.engine.leases_renewed(sent_at);
            }
            Ok(ReadAnswer::Renewed(_, Err(error))) => {
                self.reader.failed(Operation::Claim, &error);
            }
            Ok(ReadAnswer::Left(_, Ok(()))) => {
                self.reader.recovered();
                departure.is_announced = true;
            }
            Ok(ReadAnswer::Left(release, Err(error))) => {
                let delay = self.reader.failed(Operation::HandOver, &error);
                departure.release_at = Instant::now() + delay;
                if let Release::Only(leases) = release {
                    departure.to_release.extend(leases);
                }
            }
            Err(TaskPanicked) => self.reader.replace(self.outbox.inner.fetcher()),
        }
    }

    /// Waits for the statement that is under way on the reading connection, and releases
    /// everything.
    async fn leave_cluster(&mut self, mut departure: Departure) {
        if !self.reader.is_idle() {
            let limit = Instant::now() + LEAVE_TIMEOUT;
            match timeout_at(limit, self.reader.finished()).await {
                Ok(answer) => self.on_answer(answer, &mut departure),
                Err(_) => self.reader.replace(self.outbox.inner.fetcher()),
            }
        }
        let owner = self.engine.leases().owner();
        let limit = Instant::now() + LEAVE_TIMEOUT;
        // Tried twice: a transaction may have locked a row that this one deletes, and wait for
        // another row of it.
        let mut last_error = None;
        for _ in 0..2 {
            self.reader.start_leaving(owner, Release::Everything);
            match timeout_at(limit, self.reader.finished()).await {
                Ok(Ok(ReadAnswer::Left(_, Ok(())))) => {
                    tracing::info!("stopped and released its partitions");
                    return;
                }
                Ok(Ok(ReadAnswer::Left(_, Err(error)))) => last_error = Some(error),
                Ok(_) | Err(_) => break,
            }
        }
        tracing::warn!(
            error = last_error.map(tracing::field::display),
            "stopped without releasing its leases; peers take over when they expire"
        );
    }

    /// The handle was dropped. Aborts everything, as if the process had died.
    pub(super) fn abort(mut self) {
        self.housekeeping.stop();
        tracing::warn!(
            "dispatcher dropped without `shutdown`; peers take over as from a process that died"
        );
    }
}
