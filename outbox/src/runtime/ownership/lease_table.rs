//! [`LeaseTable`]: the leases of this process, as far as it knows.                         (pure)

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    outbox::clock::YEAR,
    record::Partition,
    store::{Fence, Lease, as_micros},
};

/// The leases of this process, as far as it knows. Claims write it; the runner, the writer and
/// housekeeping read it. The truth is in the database: every statement has these leases as its
/// condition. Leases that are not released expire.
#[derive(Debug)]
pub(crate) struct LeaseTable {
    /// The leases, ordered by partition.
    fence: Arc<Fence>,
    /// Leases that the database has refused, with the time of its answer. They do not count, even
    /// if the answer to an earlier claim contains them. The answer to a later claim clears them.
    refused: BTreeMap<Lease, Instant>,
    /// No other process can take them before this time, which counts from the sending of the claim.
    valid_until: Instant,
    duration: Duration,
    renew_before: Duration,
    has_claimed: bool,
}

/// The partitions that a claim gained and lost.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaseChanges {
    pub(crate) gained: Vec<Partition>,
    pub(crate) lost: Vec<Partition>,
}

impl LeaseTable {
    pub(crate) fn new(owner: Uuid, lease: Duration, renew_before: Duration, now: Instant) -> Self {
        let leases = Vec::new();
        Self {
            fence: Arc::new(Fence { owner, leases }),
            refused: BTreeMap::new(),
            valid_until: now,
            duration: lease.min(YEAR),
            renew_before: renew_before.min(YEAR),
            has_claimed: false,
        }
    }

    /// Applies the answer to a claim that was sent at `sent_at`. A partition whose epoch changed
    /// was lost in between: it is in both lists. Renews nothing: a claim need not.
    pub(crate) fn update(&mut self, leases: &[Lease], sent_at: Instant) -> LeaseChanges {
        self.refused.retain(|_, refused_at| *refused_at >= sent_at);
        let counts = |lease: &&Lease| !self.refused.contains_key(*lease);
        let mut leases: Vec<Lease> = leases.iter().filter(counts).copied().collect();
        leases.sort_unstable();
        let changes = LeaseChanges {
            gained: partitions_without(&self.fence.leases, &leases),
            lost: partitions_without(&leases, &self.fence.leases),
        };
        Arc::make_mut(&mut self.fence).leases = leases;
        self.has_claimed = true;
        changes
    }

    /// A statement that was sent at `sent_at` renewed all leases.
    pub(crate) fn renewed(&mut self, sent_at: Instant) {
        self.valid_until = sent_at + self.duration;
    }

    /// The database refused these leases, so they no longer count. Returns the partitions of those
    /// that counted before.
    pub(crate) fn refuse(&mut self, refused: &[Lease], now: Instant) -> Vec<Partition> {
        let leases = &mut Arc::make_mut(&mut self.fence).leases;
        let removed = leases.extract_if(.., |lease| refused.contains(lease));
        let removed: Vec<Lease> = removed.collect();
        self.refused
            .extend(removed.iter().map(|lease| (*lease, now)));
        removed.iter().map(|lease| lease.partition).collect()
    }

    /// Removes and returns the leases of these partitions. The caller releases them.
    pub(crate) fn remove(&mut self, partitions: &[Partition]) -> Vec<Lease> {
        let leases = &mut Arc::make_mut(&mut self.fence).leases;
        let removed = leases.extract_if(.., |lease| partitions.contains(&lease.partition));
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
        as_micros(self.duration)
    }

    /// No other process can take the leases before this time.
    pub(crate) fn valid_until(&self) -> Instant {
        self.valid_until
    }

    /// When less than `renew_before` remains of the leases.
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

/// The partitions of the leases in `these` that are not in `others` with the same epoch. `others`
/// is sorted.
fn partitions_without(others: &[Lease], these: &[Lease]) -> Vec<Partition> {
    let these = these.iter();
    let new = these.filter(|lease| others.binary_search(lease).is_err());
    new.map(|lease| lease.partition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(number: u16, epoch: i64) -> Lease {
        let partition = Partition::new(number);
        Lease { partition, epoch }
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_epoch_is_lost_and_gained() {
        let start = Instant::now();
        let secs = Duration::from_secs;
        let mut leases = LeaseTable::new(Uuid::nil(), secs(30), secs(20), start);
        assert_eq!(leases.valid_until(), start);
        let changes = leases.update(&[lease(1, 1), lease(2, 5)], start);
        leases.renewed(start);
        assert_eq!(changes.gained, [1, 2].map(Partition::new));
        assert!(changes.lost.is_empty());
        assert_eq!(leases.renew_at(), start + secs(10));
        let changes = leases.update(&[lease(2, 7), lease(3, 1)], start + secs(10));
        assert_eq!(changes.gained, [2, 3].map(Partition::new));
        assert_eq!(changes.lost, [1, 2].map(Partition::new));
        assert_eq!(
            leases.valid_until(),
            start + secs(30),
            "a claim renews nothing by itself"
        );
        leases.renewed(start + secs(10));
        assert_eq!(leases.valid_until(), start + secs(40));
        assert_eq!(leases.fence().leases, [lease(2, 7), lease(3, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_lease_counts_again_only_by_a_later_claim() {
        let start = Instant::now();
        let secs = Duration::from_secs;
        let mut leases = LeaseTable::new(Uuid::nil(), secs(30), secs(20), start);
        let both = [lease(1, 1), lease(2, 5)];
        let _ = leases.update(&both, start);
        let refused = leases.refuse(&[lease(1, 0), lease(2, 5)], start + secs(2));
        assert_eq!(
            refused,
            [Partition::new(2)],
            "the other epoch of 1 was lost long ago"
        );
        assert_eq!(leases.fence().leases, [lease(1, 1)]);
        let changes = leases.update(&both, start + secs(1));
        assert_eq!(changes, LeaseChanges::default(), "sent before the refusal");
        let changes = leases.update(&both, start + secs(3));
        assert_eq!(changes.gained, [Partition::new(2)]);
        assert!(changes.lost.is_empty());
    }
}
