//! [`FailureDetector`]: finds peers whose session has been lost for too long.              (pure)

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use super::session::VERIFIED_FOR;
use crate::store::LostSession;

/// A peer is reaped after its session has been gone for 850 ms. A live process stops starting work
/// 700 ms after its last verification, so it has stopped before it is reaped.
const REAP_AFTER: Duration = Duration::from_millis(850);
const _: () = assert!(REAP_AFTER.as_millis() > VERIFIED_FOR.as_millis() + 100);

/// After this process lost its own connection, it reaps no peer for 2.5 s: its peers may have lost
/// theirs too, and may be reconnecting.
const AFTER_OUTAGE_GRACE: Duration = Duration::from_millis(2500);

/// Peers whose session lock is gone, and since when. The watcher writes and reads it. It is dropped
/// with the connection; the next connection counts from zero.
#[derive(Debug)]
pub(super) struct FailureDetector {
    /// Keyed by instance and session: an instance may have opened another session in between.
    missing_since: HashMap<(Uuid, String), Instant>,
    /// No peer is reaped before this time, if this process has just lost its own connection.
    not_before: Option<Instant>,
}

impl FailureDetector {
    /// `after_outage`: this process has just lost its own connection.
    pub(super) fn new(now: Instant, after_outage: bool) -> Self {
        Self {
            missing_since: HashMap::new(),
            not_before: after_outage.then(|| now + AFTER_OUTAGE_GRACE),
        }
    }

    /// Notes the instances whose session is gone now. Returns the instances to reap.
    pub(super) fn observe(&mut self, lost: &[LostSession], now: Instant) -> Vec<Uuid> {
        let name = |lost: &LostSession| (lost.id, lost.session.clone());
        self.missing_since
            .retain(|known, _| lost.iter().any(|lost| name(lost) == *known));
        let may_reap = self.not_before.is_none_or(|at| now >= at);
        let mut dead = Vec::new();
        for lost in lost {
            let since = *self.missing_since.entry(name(lost)).or_insert(now);
            if may_reap && now.duration_since(since) >= REAP_AFTER {
                dead.push(lost.id);
            }
        }
        dead
    }

    pub(super) fn has_suspects(&self) -> bool {
        !self.missing_since.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(n: u128, session: &str) -> LostSession {
        LostSession {
            id: Uuid::from_u128(n),
            session: session.to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_session_that_stays_lost_is_reaped() {
        let (a, b) = (lost(1, "1"), lost(2, "1"));
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut detector = FailureDetector::new(start, false);
        let mut observe = |lost: &[&LostSession], now| {
            let lost: Vec<LostSession> = lost.iter().map(|lost| (*lost).clone()).collect();
            detector.observe(&lost, now)
        };
        assert!(observe(&[&a, &b], ms(0)).is_empty());
        assert!(observe(&[&b], ms(500)).is_empty());
        assert!(observe(&[&a, &b], ms(800)).is_empty());
        assert_eq!(observe(&[&a, &b], ms(850)), [b.id]);
        // The instance opened another session in between.
        let again = lost(1, "2");
        assert!(observe(&[&again], ms(1650)).is_empty());
        assert_eq!(observe(&[&again], ms(2500)), [a.id]);
        assert!(observe(&[], ms(2600)).is_empty() && !detector.has_suspects());
    }

    #[tokio::test(start_paused = true)]
    async fn after_its_own_outage_it_waits_for_peers_to_reconnect() {
        let start = Instant::now();
        let lost = [lost(1, "1")];
        let reaped_at = |after_outage| {
            let mut detector = FailureDetector::new(start, after_outage);
            let mut observe = |after| !detector.observe(&lost, start + after).is_empty();
            (0..50)
                .map(|n| n * Duration::from_millis(100))
                .find(|after| observe(*after))
        };
        assert_eq!(reaped_at(false), Some(Duration::from_millis(900)));
        assert_eq!(reaped_at(true), Some(AFTER_OUTAGE_GRACE));
    }
}
