//! Which partitions this process owns, as far as it knows ([`LeaseTable`]), which it should own
//! ([`share`]), and how it gets there ([`claim`]).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    outbox::clock::YEAR,
    store::{Fence, Lease},
};

/// The leases of this process.
///
/// Written after each claim; read wherever something is started or written. The truth is in the
/// database: every statement is conditional on it. When this is dropped, the leases run out by
/// themselves, or were released.
#[derive(Debug)]
pub(crate) struct LeaseTable {
    pub(crate) owner: Uuid,
    held: BTreeMap<u16, i64>,
    /// The same, as statements take it.
    fence: Arc<Fence>,
    /// Until then nobody else can have taken them. Measured from before they were asked for.
    valid_until: Instant,
    duration: Duration,
    renew_below: Duration,
    /// Nothing was claimed yet.
    is_new: bool,
}

/// What a claim changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaseChanges {
    pub(crate) gained: Vec<u16>,
    pub(crate) lost: Vec<u16>,
}

impl LeaseTable {
    pub(crate) fn new(
        owner: Uuid,
        duration: Duration,
        renew_below: Duration,
        now: Instant,
    ) -> Self {
        Self {
            owner,
            held: BTreeMap::new(),
            fence: Arc::new(Fence {
                owner,
                leases: Vec::new(),
            }),
            valid_until: now,
            duration: duration.min(YEAR),
            renew_below: renew_below.min(YEAR),
            is_new: true,
        }
    }

    /// What a claim that was sent at `asked_at` brought. A partition whose epoch has changed was
    /// lost in between, and is gained anew.
    pub(crate) fn claimed(&mut self, leases: &[Lease], asked_at: Instant) -> LeaseChanges {
        let now: BTreeMap<u16, i64> = leases
            .iter()
            .map(|lease| (lease.part, lease.epoch))
            .collect();
        let changes = LeaseChanges {
            gained: difference(&now, &self.held),
            lost: difference(&self.held, &now),
        };
        self.held = now;
        self.make_fence();
        self.valid_until = asked_at + self.duration;
        self.is_new = false;
        changes
    }

    /// All of them were renewed by a statement that was sent at `asked_at`.
    pub(crate) fn renewed(&mut self, asked_at: Instant) {
        self.valid_until = asked_at + self.duration;
    }

    /// These are given up.
    pub(crate) fn give_up(&mut self, parts: &[u16]) -> Vec<Lease> {
        let epoch = |part: &u16| self.held.remove(part).map(|epoch| (*part, epoch));
        let given = parts.iter().filter_map(epoch);
        let given = given.map(|(part, epoch)| Lease { part, epoch }).collect();
        self.make_fence();
        given
    }

    fn make_fence(&mut self) {
        self.fence = Arc::new(Fence {
            owner: self.owner,
            leases: self.held(),
        });
    }

    pub(crate) fn owner(&self) -> Uuid {
        self.owner
    }

    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn count(&self) -> usize {
        self.held.len()
    }

    /// Until then nobody else can have taken them.
    pub(crate) fn valid_until(&self) -> Instant {
        self.valid_until
    }

    pub(crate) fn renew_at(&self) -> Instant {
        self.valid_until
            .checked_sub(self.renew_below)
            .unwrap_or(self.valid_until)
    }

    pub(crate) fn held(&self) -> Vec<Lease> {
        self.held
            .iter()
            .map(|(&part, &epoch)| Lease { part, epoch })
            .collect()
    }

    pub(crate) fn fence(&self) -> Arc<Fence> {
        Arc::clone(&self.fence)
    }
}

/// The partitions of `these` that `those` do not have with the same epoch.
fn difference(these: &BTreeMap<u16, i64>, those: &BTreeMap<u16, i64>) -> Vec<u16> {
    these
        .iter()
        .filter(|(part, epoch)| those.get(part) != Some(epoch))
        .map(|(part, _)| *part)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(part: u16, epoch: i64) -> Lease {
        Lease { part, epoch }
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_epoch_is_lost_and_gained() {
        let start = Instant::now();
        let secs = Duration::from_secs;
        let mut leases = LeaseTable::new(Uuid::nil(), secs(30), secs(20), start);
        assert_eq!(leases.valid_until(), start);
        let changes = leases.claimed(&[lease(1, 1), lease(2, 5)], start);
        assert_eq!((changes.gained, changes.lost), (vec![1, 2], vec![]));
        assert_eq!(leases.renew_at(), start + secs(10));
        let changes = leases.claimed(&[lease(2, 7), lease(3, 1)], start + secs(10));
        assert_eq!((changes.gained, changes.lost), (vec![2, 3], vec![1, 2]));
        assert_eq!(leases.valid_until(), start + secs(40));
        assert_eq!(leases.fence().leases, [lease(2, 7), lease(3, 1)]);
    }
}
