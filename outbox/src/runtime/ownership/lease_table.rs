//! [`LeaseTable`]: the leases, as far as this process knows.                               (pure)

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    outbox::clock::YEAR,
    store::{Fence, Lease},
};

/// The leases of this process, as far as it knows. Written after each claim, read wherever work
/// starts or something is written. The truth is in the database: every statement is conditional on
/// it. Dropped, the leases expire by themselves, unless they were released.
#[derive(Debug)]
pub(crate) struct LeaseTable {
    owner: Uuid,
    /// By partition.
    epochs: BTreeMap<u16, i64>,
    /// The same, as statements take it.
    fence: Arc<Fence>,
    /// No other process can have taken them before then. Counted from before the claim was sent.
    valid_until: Instant,
    duration: Duration,
    renew_before: Duration,
    has_claimed: bool,
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
        renew_before: Duration,
        now: Instant,
    ) -> Self {
        Self {
            owner,
            epochs: BTreeMap::new(),
            fence: Arc::new(Fence {
                owner,
                leases: Vec::new(),
            }),
            valid_until: now,
            duration: duration.min(YEAR),
            renew_before: renew_before.min(YEAR),
            has_claimed: false,
        }
    }

    /// What a claim that was sent at `asked_at` brought. A partition whose epoch changed was lost in
    /// between: it is in both lists.
    pub(crate) fn update(&mut self, leases: &[Lease], asked_at: Instant) -> LeaseChanges {
        let now: BTreeMap<u16, i64> = leases
            .iter()
            .map(|lease| (lease.part, lease.epoch))
            .collect();
        let changes = LeaseChanges {
            gained: not_in(&self.epochs, &now),
            lost: not_in(&now, &self.epochs),
        };
        self.epochs = now;
        self.make_fence();
        self.valid_until = asked_at + self.duration;
        self.has_claimed = true;
        changes
    }

    /// A statement that was sent at `asked_at` renewed all of them.
    pub(crate) fn renewed(&mut self, asked_at: Instant) {
        self.valid_until = asked_at + self.duration;
    }

    /// Returns the leases of these partitions, which are to be released.
    pub(crate) fn remove(&mut self, partitions: &[u16]) -> Vec<Lease> {
        let remove = |&part: &u16| {
            let epoch = self.epochs.remove(&part)?;
            Some(Lease { part, epoch })
        };
        let removed = partitions.iter().filter_map(remove).collect();
        self.make_fence();
        removed
    }

    fn make_fence(&mut self) {
        self.fence = Arc::new(Fence {
            owner: self.owner,
            leases: self.leases(),
        });
    }

    pub(crate) fn owner(&self) -> Uuid {
        self.owner
    }

    pub(crate) fn has_claimed(&self) -> bool {
        self.has_claimed
    }

    pub(crate) fn count(&self) -> usize {
        self.epochs.len()
    }

    /// No other process can have taken them before then.
    pub(crate) fn valid_until(&self) -> Instant {
        self.valid_until
    }

    pub(crate) fn renew_at(&self) -> Instant {
        self.valid_until
            .checked_sub(self.renew_before)
            .unwrap_or(self.valid_until)
    }

    pub(crate) fn leases(&self) -> Vec<Lease> {
        self.epochs
            .iter()
            .map(|(&part, &epoch)| Lease { part, epoch })
            .collect()
    }

    pub(crate) fn fence(&self) -> Arc<Fence> {
        Arc::clone(&self.fence)
    }
}

/// The partitions of `these` that are not in `others` with the same epoch.
fn not_in(others: &BTreeMap<u16, i64>, these: &BTreeMap<u16, i64>) -> Vec<u16> {
    these
        .iter()
        .filter(|(part, epoch)| others.get(part) != Some(epoch))
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
        let changes = leases.update(&[lease(1, 1), lease(2, 5)], start);
        assert_eq!((changes.gained, changes.lost), (vec![1, 2], vec![]));
        assert_eq!(leases.renew_at(), start + secs(10));
        let changes = leases.update(&[lease(2, 7), lease(3, 1)], start + secs(10));
        assert_eq!((changes.gained, changes.lost), (vec![2, 3], vec![1, 2]));
        assert_eq!(leases.valid_until(), start + secs(40));
        assert_eq!(leases.fence().leases, [lease(2, 7), lease(3, 1)]);
    }
}
