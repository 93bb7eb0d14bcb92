//! Instances whose session is gone, and for how long.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::runtime::ownership::session::TRUST;
use crate::store::LostSession;

/// A process whose session is gone for this long has noticed, or is dead. Longer than [`TRUST`]:
/// whoever lives has stopped to start anything before it is buried.
const GONE_FOR: Duration = Duration::from_millis(850);
const _: () = assert!(GONE_FOR.as_millis() > TRUST.as_millis() + 100);

/// After this process lost its own connection it reaps nobody for this long: its peers have
/// perhaps lost theirs too, and are connecting again.
const AFTER_OUTAGE_GRACE: Duration = Duration::from_millis(2500);

/// Written and read by the watcher. When it is dropped, the next one begins to count anew.
#[derive(Debug)]
pub(super) struct FailureDetector {
    /// By instance and session: it may have had another in between.
    since: HashMap<(Uuid, String), Instant>,
    began: Instant,
    /// This process has just lost its own connection. So, perhaps, have all others.
    after_outage: bool,
}

impl FailureDetector {
    pub(super) fn new(now: Instant, after_outage: bool) -> Self {
        Self {
            since: HashMap::new(),
            began: now,
            after_outage,
        }
    }

    /// Takes down whose session is gone now. Those that are to be buried.
    pub(super) fn look(&mut self, gone: &[LostSession], now: Instant) -> Vec<Uuid> {
        let name = |gone: &LostSession| (gone.id, gone.session.clone());
        self.since
            .retain(|known, _| gone.iter().any(|gone| name(gone) == *known));
        let may_reap = !self.after_outage || now.duration_since(self.began) >= AFTER_OUTAGE_GRACE;
        let mut dead = Vec::new();
        for gone in gone {
            let since = *self.since.entry(name(gone)).or_insert(now);
            if may_reap && now.duration_since(since) >= GONE_FOR {
                dead.push(gone.id);
            }
        }
        dead
    }

    pub(super) fn are_there(&self) -> bool {
        !self.since.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(n: u128) -> LostSession {
        LostSession {
            id: Uuid::from_u128(n),
            session: "1".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_stays_away_is_buried() {
        let (a, b) = (gone(1), gone(2));
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut suspects = FailureDetector::new(start, false);
        let mut look = |gone: &[&LostSession], now| {
            let gone: Vec<LostSession> = gone.iter().map(|gone| (*gone).clone()).collect();
            suspects.look(&gone, now)
        };
        assert!(look(&[&a, &b], ms(0)).is_empty());
        assert!(look(&[&b], ms(500)).is_empty());
        assert!(look(&[&a, &b], ms(800)).is_empty());
        assert_eq!(look(&[&a, &b], ms(850)), [b.id]);
        // It had another session in between.
        let again = LostSession {
            session: "2".to_owned(),
            ..a.clone()
        };
        assert!(look(&[&again], ms(1650)).is_empty());
        assert_eq!(look(&[&again], ms(2500)), [a.id]);
        assert!(look(&[], ms(2600)).is_empty() && !suspects.are_there());
    }

    #[tokio::test(start_paused = true)]
    async fn after_an_outage_of_its_own_it_gives_the_others_time_to_come_back() {
        let start = Instant::now();
        let lost = [gone(1)];
        let reaped_at = |after_outage| {
            let mut detector = FailureDetector::new(start, after_outage);
            let mut look = |after| !detector.look(&lost, start + after).is_empty();
            (0..50)
                .map(|n| n * Duration::from_millis(100))
                .find(|after| look(*after))
        };
        assert_eq!(reaped_at(false), Some(Duration::from_millis(900)));
        assert_eq!(reaped_at(true), Some(AFTER_OUTAGE_GRACE));
    }
}
