//! Reading: claims and fetches, one at a time, in a task that gives its connection back with its
//! answer.

use std::time::Duration;

use tokio::time::Instant;

use crate::outbox::error::Operation;
use crate::runtime::{
    engine::{FetchRequest, FetchSummary},
    event_loop::Run,
    timers::Poll,
};
use crate::{
    outbox::clock::YEAR,
    runtime::{
        fetch::{FetchPlan, Fetched, Fetcher},
        ownership::{
            claim::{ClaimOutcome, ClaimRequest},
            session::SessionState,
        },
    },
    store::{Database, Lease},
};

/// What the reading task gives back.
pub(in crate::runtime) struct Read<Db: Database> {
    pub(in crate::runtime) fetcher: Fetcher<Db>,
    pub(in crate::runtime) answer: Answer,
}

pub(in crate::runtime) enum Answer {
    FetchPlan(Box<FetchPlan>, Result<Fetched, sqlx::Error>),
    ClaimRequest(Asked, Result<ClaimOutcome, sqlx::Error>),
}

/// When a claim was made, and in which session.
#[derive(Debug, Clone, Copy)]
pub(in crate::runtime) struct Asked {
    at: Instant,
    session: u64,
}

/// How long what could be read waits for room before something slow is put aside.
pub(in crate::runtime) const PATIENCE: Duration = Duration::from_millis(250);
/// How often to ask which handlers are paused, if nothing says before that others are, and to
/// renew at the latest.
const PAUSED_EVERY: Duration = Duration::from_secs(10);
/// Without a watcher nothing says so.
const PAUSED_UNWATCHED: Duration = Duration::from_secs(5);
/// What nobody owns is left to those who have too few for this long.
const LEFT_FOR: Duration = Duration::from_millis(100);
/// How often to look while it owns less than it should, or others do.
const TOO_FEW: Duration = Duration::from_millis(500);

impl<Db: Database> Run<Db> {
    pub(in crate::runtime) fn start_reading(&mut self, now: Instant) {
        if !self.agenda.may_start(now) || self.fetcher.is_none() {
            return;
        }
        if now >= self.claim_at() {
            let (claim, asked) = (self.claim(), self.asked(now));
            self.paused_at = now;
            self.reading = self.fetcher.take().map(|mut fetcher| {
                tokio::spawn(async move {
                    let answer = fetcher.claim(&claim).await;
                    let answer = Answer::ClaimRequest(asked, answer);
                    Read { fetcher, answer }
                })
            });
            return;
        }
        self.make_room(now);
        let (poll, late) = (self.agenda.take_poll(now), self.agenda.take_late(now));
        let want = FetchRequest {
            // LateWriters ones may be anywhere.
            poll: poll.is_some() || late,
            unprompted: poll == Some(Poll::Unprompted) && !late,
            due: self.agenda.take_due(now),
            sweep: self.agenda.take_sweep(now),
            offset: self.outbox.inner.offset(),
        };
        if want.due && self.engine.has_no_room() {
            // Otherwise retries of all handlers would wait for the next poll.
            self.agenda.due_again(now);
        }
        let Some(round) = self.engine.round(want) else {
            return;
        };
        if !want.unprompted {
            // What it brings is to be started at once.
            self.confirm(now);
        }
        self.reading = self.fetcher.take().map(|mut fetcher| {
            tokio::spawn(async move {
                let arrived = fetcher.fetch(&round).await;
                let answer = Answer::FetchPlan(Box::new(round), arrived);
                Read { fetcher, answer }
            })
        });
    }

    /// One slow handler must not take the room of all others.
    pub(in crate::runtime) fn make_room(&mut self, now: Instant) {
        if !self.engine.is_full() {
            self.full_since = None;
            return;
        }
        let since = *self.full_since.get_or_insert(now);
        if now.duration_since(since) >= PATIENCE {
            self.engine.spill();
            self.full_since = Some(now);
        }
    }

    pub(in crate::runtime) fn read(&mut self, read: Option<Read<Db>>) {
        self.reading = None;
        let now = Instant::now();
        let Some(Read { fetcher, answer }) = read else {
            self.begin_anew();
            return;
        };
        self.fetcher = Some(fetcher);
        let failed = match answer {
            Answer::ClaimRequest(asked, Ok(claimed)) => {
                self.outage.over();
                self.claimed(asked, claimed);
                return;
            }
            Answer::FetchPlan(round, Ok(arrived)) => {
                self.outage.over();
                self.arrived(now, &round, arrived);
                return;
            }
            Answer::ClaimRequest(_, Err(error)) => (Operation::Claim, error),
            Answer::FetchPlan(round, Err(error)) => {
                self.engine.failed(*round);
                // What this fetch was to find is still to be found.
                self.agenda.sweep(now);
                (Operation::Fetch, error)
            }
        };
        let wait = self.outage.failed(failed.0, &failed.1);
        self.paused_at = long_ago(now);
        self.agenda.wait_until(now + wait);
    }

    pub(in crate::runtime) fn arrived(
        &mut self,
        now: Instant,
        round: &FetchPlan,
        arrived: Fetched,
    ) {
        let (next_due, late_possible) = (arrived.next_due, arrived.late_possible);
        let looked_for_due = round.due.is_some();
        self.meters.late(arrived.late);
        let FetchSummary { new, due, .. } = self.engine.arrived(round, arrived);
        if looked_for_due {
            self.agenda.next_due(now, next_due, due > 0);
        }
        if new > 0 || late_possible {
            self.agenda.may_be_late(now);
        }
    }

    pub(in crate::runtime) fn claimed(&mut self, asked: Asked, claimed: ClaimOutcome) {
        let now = Instant::now();
        let gained = self.owns(asked, &claimed);
        let since = |lease: Lease| (lease, self.left.get(&lease).copied().unwrap_or(now));
        self.left = claimed.left.into_iter().map(since).collect();
        self.share = claimed.share;
        self.reserved = claimed.reserved;
        self.next_expiry = claimed.next_expiry.map(|left| now + left.min(YEAR));
        let (held, draining) = (self.engine.leases.count(), self.engine.lanes.closed());
        if gained && held > self.share {
            self.hand_over.rests(now);
        }
        let keep = self.hand_over.keep(self.share, held, draining, now);
        if self.engine.keep_open(keep) {
            self.agenda.sweep(now);
        }
        if self.engine.pause(&claimed.paused) {
            self.agenda.sweep(now);
        }
    }

    /// What is owned now. What was lost is stopped. Whether something was gained.
    pub(in crate::runtime) fn owns(&mut self, asked: Asked, claimed: &ClaimOutcome) -> bool {
        let changes = self.engine.claimed(&claimed.leases, asked.at);
        self.confirmed = asked.session;
        self.meters.lost(changes.lost.len());
        if !changes.lost.is_empty() {
            tracing::warn!(partitions = ?changes.lost, "lost leases; what ran for them is stopped");
            let stopped = self.stop_running(|part| changes.lost.contains(&part));
            self.engine.lanes.lose(&changes.lost, &stopped);
        }
        if !changes.gained.is_empty() {
            let (owned, peers) = (self.engine.leases.count(), claimed.peers);
            tracing::info!(
                gained = changes.gained.len(),
                owned,
                peers,
                "owns partitions"
            );
            self.agenda.sweep(Instant::now());
        }
        let owned = self.engine.leases.held();
        self.gauges
            .claimed(owned.len(), claimed.orphaned, claimed.peers + 1);
        self.outbox
            .inner
            .wake
            .own(owned.iter().map(|lease| lease.part));
        !changes.gained.is_empty()
    }

    pub(in crate::runtime) fn claim_at(&self) -> Instant {
        let mut at = self.engine.leases.renew_at();
        at = at.min(match self.session {
            Some(_) => self.paused_at + PAUSED_EVERY,
            None => self.paused_at + PAUSED_UNWATCHED,
        });
        if let Some(expiry) = self.next_expiry {
            at = at.min(expiry);
        }
        if let Some(since) = self.left.values().min() {
            at = at.min((*since + LEFT_FOR).max(self.paused_at + LEFT_FOR / 4));
        }
        if self.engine.leases.count() < self.share || self.reserved {
            at = at.min(self.paused_at + TOO_FEW);
        }
        if let Some(next) = self.hand_over.next() {
            at = at.min(next.max(self.paused_at + LEFT_FOR));
        }
        if self.engine.lanes.closed() > 0 && !self.engine.lanes.drained().is_empty() {
            at = at.min(self.paused_at);
        }
        at
    }

    pub(in crate::runtime) fn claim(&mut self) -> ClaimRequest {
        let (micros, now) = (self.lease_micros(), Instant::now());
        let long = |since: &Instant| now.duration_since(*since) >= LEFT_FOR;
        let left = self.left.iter().filter(|(_, since)| long(since));
        let left = left.map(|(lease, _)| *lease).collect();
        self.engine.claim(micros, left)
    }

    pub(in crate::runtime) fn asked(&self, now: Instant) -> Asked {
        Asked {
            at: now,
            session: self.session().number(),
        }
    }

    /// Asks for a sign of the session, if it is not sure for much longer.
    pub(in crate::runtime) fn confirm(&self, now: Instant) {
        if self.session().ends_soon(now) {
            self.outbox.inner.wake.confirm();
        }
    }

    pub(in crate::runtime) fn session(&self) -> SessionState {
        let session = self.session.as_ref();
        session.map_or(SessionState::None, |session| *session.borrow())
    }

    pub(in crate::runtime) fn lease_micros(&self) -> i64 {
        let lease = self.outbox.inner.config.lease();
        let micros = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX / 4);
        micros.min(i64::MAX / 4)
    }
}

/// Whatever was done then is to be done now.
pub(in crate::runtime) fn long_ago(now: Instant) -> Instant {
    now.checked_sub(PAUSED_EVERY).unwrap_or(now)
}
