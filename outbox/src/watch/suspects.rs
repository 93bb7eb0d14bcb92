//! Instances whose session is gone, and for how long.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use super::session::{TRUST, TRUST_ALONE};

/// A process whose session is gone for this long has noticed, or is dead. Longer than [`TRUST`]:
/// whoever lives has stopped to start anything before it is buried.
const GONE_FOR: Duration = Duration::from_millis(850);
const _: () = assert!(GONE_FOR.as_millis() > TRUST.as_millis() + 100);

/// Nobody is buried before this process has been seen by all: an instance that believes to be
/// alone asks less often whether its own session is alive.
const SEEN_BY_ALL: Duration = Duration::from_millis(2500);
const _: () = assert!(SEEN_BY_ALL.as_millis() > TRUST_ALONE.as_millis() + 100);

/// Written and read by the watcher. When it is dropped, the next one begins to count anew.
#[derive(Debug)]
pub(super) struct Suspects {
    since: HashMap<Uuid, Instant>,
    began: Instant,
}

impl Suspects {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: HashMap::new(),
            began: now,
        }
    }

    /// Takes down whose session is gone now. Those that are to be buried.
    pub(super) fn look(&mut self, gone: &[Uuid], now: Instant) -> Vec<Uuid> {
        self.since.retain(|id, _| gone.contains(id));
        for id in gone {
            self.since.entry(*id).or_insert(now);
        }
        if now.duration_since(self.began) < SEEN_BY_ALL {
            return Vec::new();
        }
        let long = |since: &Instant| now.duration_since(*since) >= GONE_FOR;
        let dead = self.since.iter().filter(|(_, since)| long(since));
        dead.map(|(id, _)| *id).collect()
    }

    pub(super) fn are_there(&self) -> bool {
        !self.since.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_who_stays_away_is_buried() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let start = Instant::now();
        let ms = |ms| start + SEEN_BY_ALL + Duration::from_millis(ms);
        let mut suspects = Suspects::new(start);
        assert!(suspects.look(&[a, b], ms(0)).is_empty());
        assert!(suspects.look(&[b], ms(500)).is_empty());
        assert!(suspects.look(&[a, b], ms(800)).is_empty());
        assert_eq!(suspects.look(&[a, b], ms(850)), [b]);
        assert_eq!(suspects.look(&[a], ms(1650)), [a]);
        assert!(suspects.look(&[], ms(2200)).is_empty() && !suspects.are_there());
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_just_come_buries_nobody() {
        let start = Instant::now();
        let mut suspects = Suspects::new(start);
        let gone = [Uuid::from_u128(1)];
        assert!(suspects.look(&gone, start).is_empty());
        assert!(
            suspects
                .look(&gone, start + Duration::from_secs(2))
                .is_empty()
        );
        assert_eq!(suspects.look(&gone, start + SEEN_BY_ALL), gone);
    }
}
