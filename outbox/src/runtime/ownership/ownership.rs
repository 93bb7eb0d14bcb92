//! [`Ownership`]: when to claim, what a claim changes, and whether work may start.         (pure)

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{ClaimOutcome, ClaimRequest, LeaseChanges, hand_over::HandOver, session::SessionWatch};
use crate::{
    outbox::clock::YEAR,
    runtime::{engine::Engine, signals::WakeSignals},
    store::{Lease, SessionKey},
};

/// A claim is made every 10 s at least: its answer contains the paused handlers.
const CLAIM_EVERY: Duration = Duration::from_secs(10);
/// Without a watcher, which reports changes, a claim is made every 5 s at least.
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
    /// The session of the last claim that renewed the leases.
    renewed_in: Option<SessionKey>,
    /// Set by [`request_claim`](Self::request_claim); cleared when a claim is sent.
    is_claim_requested: bool,
    /// The session in which the last answered claim was sent. Leases count only in that session.
    claimed_in: Option<SessionKey>,
    session: SessionWatch,
    /// How many partitions this instance should own, as the last claim saw it.
    share: usize,
    /// Whether partitions are reserved for other instances, which may not take them.
    has_reserved: bool,
    /// When the next lease of another instance expires.
    next_expiry: Option<Instant>,
    /// Unowned partitions that are left to peers, and since when.
    offered: BTreeMap<Lease, Instant>,
    hand_over: HandOver,
    signals: Arc<WakeSignals>,
}

/// The right to start the invocations of a burst. The event loop gives it to the worker, which
/// checks it again just before the handler runs, because the process may freeze, or wait for a
/// connection, in between.
#[derive(Debug, Clone)]
pub(crate) struct StartPermit {
    /// No other process can take the leases before this time.
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
            renewed_in: None,
            is_claim_requested: true,
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

    /// The state of the session. Leases count only while the session is verified.
    pub(crate) fn session(&mut self) -> &mut SessionWatch {
        &mut self.session
    }

    pub(crate) fn request_claim(&mut self) {
        self.is_claim_requested = true;
    }

    /// Forgets the answers of earlier claims, and requests a new claim.
    pub(crate) fn reset(&mut self) {
        self.offered.clear();
        self.hand_over = HandOver::default();
        self.request_claim();
    }

    /// When to claim next.
    pub(crate) fn claim_at(&self, engine: &Engine) -> Instant {
        let last = self.sent_at;
        if self.is_claim_requested || engine.lanes().has_drained() {
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

    /// Makes the claim that the caller sends now.
    pub(crate) fn start_claim(&mut self, now: Instant, engine: &mut Engine) -> ClaimRequest {
        self.sent_at = now;
        self.sent_in = self.session.state().key();
        self.is_claim_requested = false;
        let was_offered = |since: &Instant| now.duration_since(*since) >= OFFER_TIME;
        let offered = self.offered.iter().filter(|(_, since)| was_offered(since));
        let offered = offered.map(|(lease, _)| *lease).collect();
        // Peers may have reaped the session before this one, and with it the heartbeat.
        let is_new_session = self.sent_in != self.renewed_in;
        let renews = is_new_session || now >= engine.leases().renew_at();
        engine.claim_request(offered, renews)
    }

    /// Applies the first half of a claim's answer: the leases. The event loop cancels and drops
    /// lost partitions before the second half.
    pub(crate) fn apply_leases(
        &mut self,
        outcome: &ClaimOutcome,
        engine: &mut Engine,
    ) -> LeaseChanges {
        let leases = &outcome.leases;
        let changes = engine.on_claimed(leases, self.sent_at);
        if outcome.is_renewed {
            engine.leases_renewed(self.sent_at);
            self.renewed_in = self.sent_in;
        }
        self.claimed_in = self.sent_in;
        self.signals
            .set_owned(leases.iter().map(|lease| lease.partition));
        changes
    }

    /// Applies the second half: share, offers, hand-over and pauses. Returns whether everything has
    /// to be read again from id 0.
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

    /// `None` unless the leases are valid, and the session in which they were claimed is verified.
    pub(crate) fn permit(&self, engine: &Engine, now: Instant) -> Option<StartPermit> {
        let permit = StartPermit {
            leases_valid_until: engine.leases().valid_until(),
            session: self.session.clone(),
            claimed_in: self.claimed_in,
        };
        permit.is_valid_at(now).then_some(permit)
    }

    /// Whether there are more instances than partitions, so that this one has none.
    pub(crate) fn has_no_share(&self) -> bool {
        self.share == 0
    }

    /// Asks the watcher to verify the session, if its verification ends soon.
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
    use crate::{outbox::Outbox, record::Partition, registry::Registry};

    async fn engine() -> Engine {
        let pool = SqlitePoolOptions::new().max_connections(1);
        let pool = pool.connect_lazy("sqlite::memory:").unwrap();
        let registry = Registry::builder().allow_empty();
        let outbox = Outbox::builder(pool).registry(registry).build().await;
        outbox.unwrap().engine(Uuid::now_v7())
    }

    /// Sends a claim now, and answers it at once with leases on all of two partitions. Returns whether it
    /// renewed them.
    fn claim(ownership: &mut Ownership, engine: &mut Engine, now: Instant) -> bool {
        let is_renewed = ownership.start_claim(now, engine).renews;
        let leases = [0, 1].map(|number| Lease {
            partition: Partition::new(number),
            epoch: 1,
        });
        let outcome = ClaimOutcome {
            leases: leases.to_vec(),
            is_renewed,
            decision: ClaimDecision {
                share: 2,
                ..ClaimDecision::default()
            },
            ..ClaimOutcome::default()
        };
        let changes = ownership.apply_leases(&outcome, engine);
        ownership.rebalance(now, outcome, !changes.gained.is_empty(), engine);
        is_renewed
    }

    #[tokio::test]
    async fn a_claim_renews_only_below_the_threshold_or_in_a_new_session() {
        let (mut engine, start) = (engine().await, Instant::now());
        let mut ownership = Ownership::new(Arc::default(), start);
        let (reporter, watch) = SessionReporter::new(SessionState::None);
        *ownership.session() = watch;
        // The lease is 30 s, and the threshold is two thirds of it.
        let after = |secs: u64| start + Duration::from_secs(secs);
        let end = |renewed: u64| after(renewed + 30);
        for (secs, renews, renewed) in [
            (0, true, 0),
            (5, false, 0),
            (9, false, 0),
            (11, true, 11),
            (20, false, 11),
            (22, true, 22),
        ] {
            assert_eq!(claim(&mut ownership, &mut engine, after(secs)), renews);
            assert_eq!(engine.leases().valid_until(), end(renewed), "at {secs} s");
        }
        reporter.session_opened(SessionKey::new(), after(23));
        assert!(claim(&mut ownership, &mut engine, after(23)), "a new one");
        assert!(!claim(&mut ownership, &mut engine, after(24)));
        assert!(claim(&mut ownership, &mut engine, after(80)), "expired");
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
