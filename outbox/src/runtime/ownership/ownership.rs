//! [`Ownership`]: when to claim, what a claim changes, whether work may start.             (pure)

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{ClaimOutcome, ClaimRequest, LeaseChanges, hand_over::HandOver, session::SessionWatch};
use crate::{
    outbox::clock::YEAR,
    runtime::{engine::Engine, signals::WakeSignals},
    store::{Lease, SessionKey},
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
/// Leases expire up to 20 ms after the heartbeat of their instance: one claim writes both, the
/// leases a moment later.
const EXPIRY_SLACK: Duration = Duration::from_millis(20);

/// When to claim, what a claim changes, and whether work may start. The event loop owns it.
pub(crate) struct Ownership {
    /// When the last claim was sent, and in which session. Written before it is sent, never after.
    sent_at: Instant,
    sent_in: Option<SessionKey>,
    /// Set by whatever makes a claim worth while; cleared when one is sent.
    claim_requested: bool,
    /// The session in which the last answered claim was sent. Leases count only in that session.
    claimed_in: Option<SessionKey>,
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
    signals: Arc<WakeSignals>,
}

/// The right to start an invocation. The event loop gives it with the work; the worker checks it
/// again just before the handler runs, because a process may freeze, or wait for a connection, in
/// between. Dropped with the burst that it was given for.
#[derive(Debug, Clone)]
pub(crate) struct StartPermit {
    /// No other process can own the partition by its lease before then.
    leases_valid_until: Instant,
    session: SessionWatch,
    /// The session in which the leases were claimed.
    claimed_in: Option<SessionKey>,
}

impl StartPermit {
    pub(crate) fn is_valid(&self) -> bool {
        self.is_valid_at(Instant::now())
    }

    fn is_valid_at(&self, now: Instant) -> bool {
        now < self.leases_valid_until && self.session.state().is_verified(self.claimed_in, now)
    }
}

impl Ownership {
    pub(crate) fn new(signals: Arc<WakeSignals>, now: Instant) -> Self {
        Self {
            sent_at: now,
            sent_in: None,
            claim_requested: true,
            claimed_in: None,
            session: SessionWatch::default(),
            share: 0,
            has_reserved: false,
            next_expiry: None,
            offered: BTreeMap::new(),
            hand_over: HandOver::default(),
            signals,
        }
    }

    /// Leases count only while the session that this watches is verified.
    pub(crate) fn session(&mut self) -> &mut SessionWatch {
        &mut self.session
    }

    pub(crate) fn request_claim(&mut self) {
        self.claim_requested = true;
    }

    /// Forgets what claims have said. The next claim says it again.
    pub(crate) fn reset(&mut self) {
        self.offered.clear();
        self.hand_over = HandOver::default();
        self.request_claim();
    }

    /// When to claim next.
    pub(crate) fn claim_at(&self, engine: &Engine) -> Instant {
        let last = self.sent_at;
        if self.claim_requested || engine.lanes().has_drained() {
            return last;
        }
        let every = if self.session.is_watched() {
            CLAIM_EVERY
        } else {
            CLAIM_EVERY_UNWATCHED
        };
        let leases = engine.leases();
        let is_short = leases.leases().len() < self.share || self.has_reserved;
        let offered_since = self.offered.values().min();
        let hand_over = self.hand_over.next_check();
        let wakes = [
            self.next_expiry,
            offered_since.map(|since| (*since + OFFER_TIME).max(last + OFFER_TIME / 4)),
            is_short.then_some(last + RECLAIM_EVERY),
            hand_over.map(|next| next.max(last + OFFER_TIME)),
        ];
        let renew_at = leases.renew_at().min(last + every);
        wakes.into_iter().flatten().fold(renew_at, Instant::min)
    }

    /// A claim, which is to be sent now.
    pub(crate) fn start_claim(&mut self, now: Instant, engine: &mut Engine) -> ClaimRequest {
        self.sent_at = now;
        self.sent_in = self.session.state().key();
        self.claim_requested = false;
        let was_offered = |since: &Instant| now.duration_since(*since) >= OFFER_TIME;
        let offered = self.offered.iter().filter(|(_, since)| was_offered(since));
        engine.claim_request(offered.map(|(lease, _)| *lease).collect())
    }

    /// First half of a claim's answer. The event loop cancels and drops what was lost before the
    /// second half.
    pub(crate) fn apply_leases(&mut self, leases: &[Lease], engine: &mut Engine) -> LeaseChanges {
        let changes = engine.on_claimed(leases, self.sent_at);
        self.claimed_in = self.sent_in;
        self.signals
            .set_owned(leases.iter().map(|lease| lease.part));
        changes
    }

    /// Second half: share, offers, hand-over and pauses. Returns whether everything has to be read
    /// again from id 0.
    pub(crate) fn rebalance(
        &mut self,
        now: Instant,
        outcome: ClaimOutcome,
        has_gained: bool,
        engine: &mut Engine,
    ) -> bool {
        let decision = outcome.decision;
        let since = |lease| (lease, self.offered.get(&lease).copied().unwrap_or(now));
        self.offered = decision.offer.into_iter().map(since).collect();
        self.share = decision.share;
        self.has_reserved = decision.has_reserved;
        let next_expiry = decision.next_expiry.map(i64::unsigned_abs);
        let until = |micros| Duration::from_micros(micros).min(YEAR) + EXPIRY_SLACK;
        self.next_expiry = next_expiry.map(|micros| now + until(micros));
        let (owned, draining) = (outcome.leases.len(), engine.lanes().closing_count());
        if has_gained && owned > self.share {
            self.hand_over.pause(now);
        }
        let hand_over = &mut self.hand_over;
        let keep = hand_over.partitions_to_keep(self.share, owned, draining, now);
        let has_reopened = engine.keep_open(keep);
        let has_resumed = engine.apply_pauses(&outcome.view.paused);
        has_gained || has_reopened || has_resumed
    }

    /// `None` unless the leases are valid, and the session in which they were claimed was verified a
    /// moment ago.
    pub(crate) fn permit(&self, engine: &Engine, now: Instant) -> Option<StartPermit> {
        let permit = StartPermit {
            leases_valid_until: engine.leases().valid_until(),
            session: self.session.clone(),
            claimed_in: self.claimed_in,
        };
        permit.is_valid_at(now).then_some(permit)
    }

    /// Asks the watcher to verify the session, if it does not count as verified for much longer.
    pub(crate) fn verify_session(&self, now: Instant) {
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

    use super::super::{
        decision::ClaimDecision,
        session::{SessionReporter, SessionState},
    };
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
        ownership.start_claim(now, engine);
        let leases = [0, 1].map(|part| Lease { part, epoch: 1 });
        let outcome = ClaimOutcome {
            leases: leases.to_vec(),
            decision: ClaimDecision {
                share: 2,
                ..ClaimDecision::default()
            },
            ..ClaimOutcome::default()
        };
        let changes = ownership.apply_leases(&leases, engine);
        ownership.rebalance(now, outcome, !changes.gained.is_empty(), engine);
    }

    #[tokio::test]
    async fn a_requested_claim_does_not_wait() {
        let (mut engine, now) = (engine().await, Instant::now());
        let mut ownership = Ownership::new(Arc::default(), now);
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
        let mut ownership = Ownership::new(Arc::default(), now);
        let (reporter, watch) = SessionReporter::new(SessionState::None);
        *ownership.session() = watch;
        assert!(ownership.permit(&engine, now).is_none(), "no lease");
        claim(&mut ownership, &mut engine, now);
        assert!(ownership.permit(&engine, now).is_some());
        reporter.session_opened(SessionKey::new(), now);
        assert!(ownership.permit(&engine, now).is_none(), "claimed before");
        claim(&mut ownership, &mut engine, now);
        let permit = ownership.permit(&engine, now).unwrap();
        reporter.session_lost();
        assert!(ownership.permit(&engine, now).is_none() && !permit.is_valid());
        reporter.session_opened(SessionKey::new(), now);
        assert!(ownership.permit(&engine, now).is_none() && !permit.is_valid());
    }
}
