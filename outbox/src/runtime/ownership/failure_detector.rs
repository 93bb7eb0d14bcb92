//! Instances whose session is gone, and for how long.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::runtime::ownership::session::{TRUST, TRUST_ALONE};
use crate::store::LostSession;

/// A process whose session is gone for this long has noticed, or is dead. Longer than [`TRUST`]:
/// whoever lives has stopped to start anything before it is buried.
const GONE_FOR: Duration = Duration::from_millis(850);
const _: () = assert!(GONE_FOR.as_millis() > TRUST.as_millis() + 100);

/// An instance that believes to be alone asks less often whether its own session is alive. So one
/// that is not known to be wary is not buried before this process has been seen by all.
const SEEN_BY_ALL: Duration = Duration::from_millis(2500);
const _: () = assert!(SEEN_BY_ALL.as_millis() > TRUST_ALONE.as_millis() + 100);

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
        let seen_by_all = now.duration_since(self.began) >= SEEN_BY_ALL;
        let mut dead = Vec::new();
        for gone in gone {
            let since = *self.since.entry(name(gone)).or_insert(now);
            let ripe = seen_by_all || gone.wary && !self.after_outage;
            if ripe && now.duration_since(since) >= GONE_FOR {
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

    fn gone(n: u128, wary: bool) -> LostSession {
        LostSession {
            id: Uuid::from_u128(n),
            session: "1".to_owned(),
            wary,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_stays_away_is_buried() {
        let (a, b) = (gone(1, false), gone(2, false));
        let start = Instant::now();
        let ms = |ms| start + SEEN_BY_ALL + Duration::from_millis(ms);
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
    async fn who_has_just_come_buries_only_who_knew_that_others_may() {
        let start = Instant::now();
        let gone = [gone(1, false), gone(2, true)];
        let all: Vec<Uuid> = gone.iter().map(|gone| gone.id).collect();
        for after_outage in [false, true] {
            let mut suspects = FailureDetector::new(start, after_outage);
            assert!(suspects.look(&gone, start).is_empty());
            let wary = match after_outage {
                false => &all[1..],
                true => &[],
            };
            assert_eq!(suspects.look(&gone, start + Duration::from_secs(2)), wary);
            assert_eq!(suspects.look(&gone, start + SEEN_BY_ALL), all);
        }
    }
}
