//! [`Ownership`]: when to claim, what a claim changes, whether work may start.             (pure)

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    claim::{ClaimOutcome, ClaimRequest},
    hand_over::HandOver,
    lease_table::LeaseChanges,
    permit::StartPermit,
    session::{SessionChange, SessionNumber, SessionWatch},
};
use crate::{
    outbox::clock::YEAR,
    runtime::{engine::Engine, signals::WakeSignals},
    store::Lease,
};

/// A claim is made at least this often: it tells which handlers are paused.
const CLAIM_EVERY: Duration = Duration::from_secs(10);
/// The same without a watcher, when nothing tells that something changed.
const CLAIM_EVERY_UNWATCHED: Duration = Duration::from_secs(5);
/// An unowned partition is left to instances below their share for 100 ms.
const OFFER_TIME: Duration = Duration::from_millis(100);
/// The time between two claims while this instance is below its share, or a partition is reserved
/// for others.
const RECLAIM_EVERY: Duration = Duration::from_millis(500);

/// When to claim, what a claim changes, and whether work may start. The event loop owns it.
pub(in crate::runtime) struct Ownership {
    /// When the last claim was sent.
    claimed_at: Instant,
    /// Set by whatever makes a claim worth while; cleared when one is sent.
    claim_requested: bool,
    /// The session in which the last answered claim was sent. Leases count only in that session.
    claimed_in: Option<SessionNumber>,
    session: SessionWatch,
    /// How many partitions this instance should own, as the last claim saw it.
    share: usize,
    /// Whether partitions are reserved for other instances, which may not take them.
    has_reserved: bool,
    /// When the lease of another instance expires.
    next_expiry: Option<Instant>,
    /// Unowned partitions that are left to peers, since when.
    offered: BTreeMap<Lease, Instant>,
    hand_over: HandOver,
    lease_micros: i64,
    signals: Arc<WakeSignals>,
}

/// When and in which session a claim was sent. Taken before the claim is sent, never after.
#[derive(Debug, Clone, Copy)]
pub(in crate::runtime) struct ClaimStamp {
    sent_at: Instant,
    session: Option<SessionNumber>,
}

/// Whether everything has to be read again from id 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runtime) enum NeedsSweep {
    Yes,
    No,
}

impl Ownership {
    pub(in crate::runtime) fn new(
        lease: Duration,
        signals: Arc<WakeSignals>,
        now: Instant,
    ) -> Self {
        let longest = i64::MAX / 4;
        let lease_micros = i64::try_from(lease.as_micros()).unwrap_or(longest);
        Self {
            claimed_at: now,
            claim_requested: true,
            claimed_in: None,
            session: SessionWatch::default(),
            share: 0,
            has_reserved: false,
            next_expiry: None,
            offered: BTreeMap::new(),
            hand_over: HandOver::default(),
            lease_micros: lease_micros.min(longest),
            signals,
        }
    }

    pub(in crate::runtime) fn lease_micros(&self) -> i64 {
        self.lease_micros
    }

    /// Leases count only while the session that this watches is verified.
    pub(in crate::runtime) fn watch_session(&mut self, session: SessionWatch) {
        self.session = session;
    }

    pub(in crate::runtime) fn session(&mut self) -> &mut SessionWatch {
        &mut self.session
    }

    /// Waits for a change of the session. Dropping it loses nothing.
    pub(in crate::runtime) async fn session_changed(&mut self) -> SessionChange {
        self.session.changed().await
    }

    pub(in crate::runtime) fn request_claim(&mut self) {
        self.claim_requested = true;
    }

    /// Forgets what claims have said. The next claim says it again.
    pub(in crate::runtime) fn reset(&mut self) {
        self.offered.clear();
        self.hand_over = HandOver::default();
        self.request_claim();
    }

    /// When to claim next.
    pub(in crate::runtime) fn claim_at(&self, engine: &Engine) -> Instant {
        let last = self.claimed_at;
        if self.claim_requested || engine.has_drained() {
            return last;
        }
        let every = if self.session.is_watched() {
            CLAIM_EVERY
        } else {
            CLAIM_EVERY_UNWATCHED
        };
        let leases = engine.leases();
        let is_short = leases.count() < self.share || self.has_reserved;
        let offered_since = self.offered.values().min();
        [
            Some(leases.renew_at()),
            Some(last + every),
            self.next_expiry,
            offered_since.map(|since| (*since + OFFER_TIME).max(last + OFFER_TIME / 4)),
            is_short.then_some(last + RECLAIM_EVERY),
            self.hand_over
                .next_check()
                .map(|next| next.max(last + OFFER_TIME)),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(last)
    }

    /// A claim, which is to be sent now.
    pub(in crate::runtime) fn start_claim(
        &mut self,
        now: Instant,
        engine: &mut Engine,
    ) -> (ClaimStamp, ClaimRequest) {
        self.claimed_at = now;
        self.claim_requested = false;
        let stamp = ClaimStamp {
            sent_at: now,
            session: self.session.state().number(),
        };
        let was_offered = |since: &Instant| now.duration_since(*since) >= OFFER_TIME;
        let offered = self.offered.iter().filter(|(_, since)| was_offered(since));
        let offered: BTreeSet<Lease> = offered.map(|(lease, _)| *lease).collect();
        (stamp, engine.claim_request(self.lease_micros, offered))
    }

    /// First half of a claim's answer. The event loop cancels and drops what was lost before the
    /// second half.
    pub(in crate::runtime) fn apply_leases(
        &mut self,
        stamp: ClaimStamp,
        outcome: &ClaimOutcome,
        engine: &mut Engine,
    ) -> LeaseChanges {
        let changes = engine.on_claimed(&outcome.leases, stamp.sent_at);
        self.claimed_in = stamp.session;
        if !changes.lost.is_empty() {
            tracing::warn!(partitions = ?changes.lost, "leases lost; running handlers cancelled");
        }
        if !changes.gained.is_empty() {
            let (gained, owned) = (changes.gained.len(), engine.leases().count());
            tracing::info!(gained, owned, peers = outcome.peers, "partitions gained");
        }
        let owned = outcome.leases.iter().map(|lease| lease.part);
        self.signals.set_owned(owned);
        changes
    }

    /// Second half: share, offers, hand-over and pauses.
    pub(in crate::runtime) fn rebalance(
        &mut self,
        now: Instant,
        outcome: ClaimOutcome,
        changes: &LeaseChanges,
        engine: &mut Engine,
    ) -> NeedsSweep {
        let offered = outcome.offered.into_iter();
        let since = |lease| (lease, self.offered.get(&lease).copied().unwrap_or(now));
        self.offered = offered.map(since).collect();
        self.share = outcome.share;
        self.has_reserved = outcome.has_reserved;
        self.next_expiry = outcome.next_expiry.map(|left| now + left.min(YEAR));
        let has_gained = !changes.gained.is_empty();
        let (owned, draining) = (engine.leases().count(), engine.closing_count());
        if has_gained && owned > self.share {
            self.hand_over.pause(now);
        }
        let keep = self
            .hand_over
            .partitions_to_keep(self.share, owned, draining, now);
        let has_reopened = engine.keep_open(keep);
        let has_resumed = engine.apply_pauses(&outcome.paused);
        if has_gained || has_reopened || has_resumed {
            NeedsSweep::Yes
        } else {
            NeedsSweep::No
        }
    }

    /// `None` unless the leases are valid, and the session in which they were claimed was verified a
    /// moment ago.
    pub(in crate::runtime) fn permit(&self, engine: &Engine, now: Instant) -> Option<StartPermit> {
        let valid_until = engine.leases().valid_until();
        StartPermit::new(valid_until, &self.session, self.claimed_in, now)
    }

    /// Asks the watcher to verify the session, if it does not count as verified for much longer.
    pub(in crate::runtime) fn verify_session(&self, now: Instant) {
        if self.session.state().needs_verifying(now) {
            self.signals.request_verification();
        }
    }
}

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests {
    use sqlx::sqlite::SqlitePoolOptions;
    use uuid::Uuid;

    use super::super::session::{SessionReporter, SessionState};
    use super::*;
    use crate::{outbox::Outbox, registry::Registry};

    async fn engine() -> Engine {
        let pool = SqlitePoolOptions::new().max_connections(1);
        let pool = pool.connect_lazy("sqlite::memory:").unwrap();
        let registry = Registry::builder().allow_empty();
        let outbox = Outbox::builder(pool).registry(registry).build().await;
        outbox.unwrap().engine(Uuid::now_v7())
    }

    /// A claim that is sent now, and answered at once with all of two partitions.
    fn claim(ownership: &mut Ownership, engine: &mut Engine, now: Instant) {
        let (stamp, _) = ownership.start_claim(now, engine);
        let leases = [0, 1].map(|part| Lease { part, epoch: 1 });
        let outcome = ClaimOutcome {
            leases: leases.to_vec(),
            share: 2,
            ..ClaimOutcome::default()
        };
        let changes = ownership.apply_leases(stamp, &outcome, engine);
        ownership.rebalance(now, outcome, &changes, engine);
    }

    #[tokio::test]
    async fn a_requested_claim_does_not_wait() {
        let (mut engine, now) = (engine().await, Instant::now());
        let mut ownership = Ownership::new(Duration::from_secs(60), Arc::default(), now);
        assert!(ownership.claim_at(&engine) <= now, "the first one");
        claim(&mut ownership, &mut engine, now);
        assert_eq!(ownership.claim_at(&engine), now + CLAIM_EVERY_UNWATCHED);
        ownership.request_claim();
        assert!(ownership.claim_at(&engine) <= now);
        claim(&mut ownership, &mut engine, now);
        assert_eq!(ownership.claim_at(&engine), now + CLAIM_EVERY_UNWATCHED);
    }

    #[tokio::test]
    async fn work_starts_only_in_the_session_in_which_it_was_claimed() {
        let (mut engine, now) = (engine().await, Instant::now());
        let mut ownership = Ownership::new(Duration::from_secs(60), Arc::default(), now);
        let (reporter, watch) = SessionReporter::new(SessionState::None);
        ownership.watch_session(watch);
        assert!(ownership.permit(&engine, now).is_none(), "no lease");
        claim(&mut ownership, &mut engine, now);
        assert!(ownership.permit(&engine, now).is_some());
        reporter.session_opened(now);
        assert!(ownership.permit(&engine, now).is_none(), "claimed before");
        claim(&mut ownership, &mut engine, now);
        let permit = ownership.permit(&engine, now).unwrap();
        reporter.session_lost();
        assert!(ownership.permit(&engine, now).is_none() && !permit.is_valid());
        reporter.session_opened(now);
        assert!(ownership.permit(&engine, now).is_none() && !permit.is_valid());
    }
}
