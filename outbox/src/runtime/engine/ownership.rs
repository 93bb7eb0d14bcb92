//! Changes of ownership: claims, refused leases, closed and reopened partitions.

use std::{collections::BTreeSet, sync::Arc};

use tokio::time::Instant;

use super::Engine;
use crate::{
    record::Partition,
    registry::HandlerIx,
    runtime::ownership::{ClaimRequest, LeaseChanges, LeaseTable},
    store::Lease,
};

impl Engine {
    /// The leases. Claims and [`leases_renewed`](Self::leases_renewed) change them.
    pub(crate) fn leases(&self) -> &LeaseTable {
        &self.leases
    }

    /// A statement that was sent at `sent_at` renewed all leases.
    pub(crate) fn leases_renewed(&mut self, sent_at: Instant) {
        self.leases.renewed(sent_at);
    }

    /// The claim that releases drained partitions, takes a fair share and, if asked, renews the leases.
    /// Drained partitions are not in memory after this.
    pub(crate) fn claim_request(&mut self, offered: BTreeSet<Lease>, renews: bool) -> ClaimRequest {
        ClaimRequest {
            to_release: self.release_drained(),
            fence: self.leases.fence(),
            partitions: self.partition_count,
            lease_micros: self.leases.duration_micros(),
            renews,
            is_first: !self.leases.has_claimed(),
            offered,
            router: Arc::clone(&self.router),
        }
    }

    /// Forgets closing partitions of which nothing is in memory. The caller releases their leases.
    pub(crate) fn release_drained(&mut self) -> Vec<Lease> {
        let drained = self.lanes.drained();
        if drained.is_empty() {
            return Vec::new();
        }
        self.lanes.drop_partitions(&drained, &[]);
        self.remove_partitions(&drained);
        self.leases.remove(&drained)
    }

    /// Applies the answer to a claim. If the claim renewed the leases, the caller also calls
    /// [`leases_renewed`](Self::leases_renewed). The caller cancels what runs in lost partitions, and then
    /// [drops](Self::drop_partitions) them.
    pub(crate) fn on_claimed(&mut self, leases: &[Lease], sent_at: Instant) -> LeaseChanges {
        let changes = self.leases.update(leases, sent_at);
        self.remove_partitions(&changes.lost);
        self.add_partitions(&changes.gained);
        changes
    }

    /// The fence refused these leases. Returns the partitions that this process owned so far:
    /// nothing of them is read or started before the answer to a claim that is sent after `now`.
    /// The caller cancels what runs in them, and then [drops](Self::drop_partitions) them.
    pub(crate) fn on_refused(&mut self, refused: &[Lease], now: Instant) -> Vec<Partition> {
        let lost = self.leases.refuse(refused, now);
        self.remove_partitions(&lost);
        lost
    }

    /// Reads these partitions from now on. Until they are read, each of their keys may block.
    fn add_partitions(&mut self, partitions: &[Partition]) {
        let blocking_keys = Arc::make_mut(&mut self.blocking_keys);
        for partition in partitions {
            self.watermarks.add(*partition);
            blocking_keys.assume_all(*partition);
        }
    }

    /// Reads these partitions no longer, because this process does not own them.
    fn remove_partitions(&mut self, partitions: &[Partition]) {
        let blocking_keys = Arc::make_mut(&mut self.blocking_keys);
        for partition in partitions {
            self.watermarks.remove(*partition);
            blocking_keys.drop_partition(*partition);
        }
    }

    /// Forgets everything about partitions that other processes may own. `cancelled`: the handlers
    /// of the invocations that the caller has cancelled, one entry per slot.
    pub(crate) fn drop_partitions(&mut self, lost: &[Partition], cancelled: &[HandlerIx]) {
        self.lanes.drop_partitions(lost, cancelled);
    }

    /// Closes partitions, or reopens closing ones, until `count` are open. Must not be called while
    /// a fetch is under way whose rows will be admitted. Returns whether a sweep has to follow
    /// because partitions were reopened.
    pub(crate) fn keep_open(&mut self, count: usize) -> bool {
        let open = self.watermarks.partitions();
        if open.len() > count {
            self.close_least_loaded(open, count);
            return false;
        }
        let closing = self.leases.leases().iter().map(|lease| lease.partition);
        let reopened: Vec<Partition> = closing
            .filter(|partition| self.lanes.is_closing(*partition))
            .take(count - open.len())
            .collect();
        self.add_partitions(&reopened);
        self.lanes.reopen(&reopened);
        !reopened.is_empty()
    }

    /// Closes partitions until `count` are open. Those with the fewest records in memory come
    /// first, because they drain soonest.
    fn close_least_loaded(&mut self, mut open: Vec<Partition>, count: usize) {
        open.sort_by_key(|partition| self.lanes.memory_of(*partition));
        open.truncate(open.len() - count);
        open.iter()
            .for_each(|partition| self.watermarks.remove(*partition));
        self.lanes.close(&open);
    }
}
