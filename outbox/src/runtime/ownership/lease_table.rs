//! [`LeaseTable`]: the leases, as far as this process knows.                               (pure)

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    outbox::clock::YEAR,
    store::{Fence, Lease, micros},
};

/// The leases of this process, as far as it knows. Written after each claim, read wherever work
/// starts or something is written. The truth is in the database: every statement is conditional on
/// it. Dropped, the leases expire by themselves, unless they were released.
#[derive(Debug)]
pub(crate) struct LeaseTable {
    /// The leases, ordered by partition.
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
    pub(crate) fn new(owner: Uuid, lease: Duration, renew_before: Duration, now: Instant) -> Self {
        let leases = Vec::new();
        Self {
            fence: Arc::new(Fence { owner, leases }),
            valid_until: now,
            duration: lease.min(YEAR),
            renew_before: renew_before.min(YEAR),
            has_claimed: false,
        }
    }

    /// What a claim that was sent at `asked_at` brought. A partition whose epoch changed was lost in
    /// between: it is in both lists.
    pub(crate) fn update(&mut self, leases: &[Lease], asked_at: Instant) -> LeaseChanges {
        let mut leases = leases.to_vec();
        leases.sort_unstable();
        let changes = LeaseChanges {
            gained: partitions_without(&self.fence.leases, &leases),
            lost: partitions_without(&leases, &self.fence.leases),
        };
        Arc::make_mut(&mut self.fence).leases = leases;
        self.renewed(asked_at);
        self.has_claimed = true;
        changes
    }

    /// A statement that was sent at `asked_at` renewed all of them.
    pub(crate) fn renewed(&mut self, asked_at: Instant) {
        self.valid_until = asked_at + self.duration;
    }

    /// Returns the leases of these partitions, which are to be released.
    pub(crate) fn remove(&mut self, partitions: &[u16]) -> Vec<Lease> {
        let leases = &mut Arc::make_mut(&mut self.fence).leases;
        let removed = leases.extract_if(.., |lease| partitions.contains(&lease.part));
        removed.collect()
    }

    pub(crate) fn owner(&self) -> Uuid {
        self.fence.owner
    }

    pub(crate) fn has_claimed(&self) -> bool {
        self.has_claimed
    }

    /// How long the database lets a lease last, in microseconds.
    pub(crate) fn duration_micros(&self) -> i64 {
        micros(self.duration)
    }

    /// No other process can have taken them before then.
    pub(crate) fn valid_until(&self) -> Instant {
        self.valid_until
    }

    pub(crate) fn renew_at(&self) -> Instant {
        let renew_at = self.valid_until.checked_sub(self.renew_before);
        renew_at.unwrap_or(self.valid_until)
    }

    pub(crate) fn leases(&self) -> &[Lease] {
        &self.fence.leases
    }

    pub(crate) fn fence(&self) -> Arc<Fence> {
        Arc::clone(&self.fence)
    }
}

/// The partitions of `these` that are not among `others`, which are ordered, with the same epoch.
fn partitions_without(others: &[Lease], these: &[Lease]) -> Vec<u16> {
    let these = these.iter();
    let new = these.filter(|lease| others.binary_search(lease).is_err());
    new.map(|lease| lease.part).collect()
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
