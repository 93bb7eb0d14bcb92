//! What claims change.

use std::{collections::BTreeSet, sync::Arc};

use tokio::time::Instant;

use crate::{
    registry::HandlerIx,
    runtime::{
        engine::Engine,
        ownership::{
            claim::ClaimRequest,
            lease_table::{LeaseChanges, LeaseTable},
        },
    },
    store::Lease,
};

impl Engine {
    /// The leases, to be read. Claims and [`leases_renewed`](Self::leases_renewed) change them.
    pub(crate) fn leases(&self) -> &LeaseTable {
        &self.leases
    }

    /// A statement that was sent at `asked_at` renewed all leases.
    pub(crate) fn leases_renewed(&mut self, asked_at: Instant) {
        self.leases.renewed(asked_at);
    }

    /// What to ask the database for to keep what is owned, to release what is drained and to get a
    /// fair share. From now on nothing of what is drained is in memory.
    pub(crate) fn claim_request(
        &mut self,
        lease_micros: i64,
        offered: BTreeSet<Lease>,
    ) -> ClaimRequest {
        ClaimRequest {
            owner: self.leases.owner(),
            partitions: self.partition_count,
            lease_micros,
            is_first: !self.leases.has_claimed(),
            to_release: self.release_drained(),
            owned: self.leases.leases(),
            offered,
            renames: self.renames.clone(),
            router: Arc::clone(&self.router),
        }
    }

    /// Forgets closing partitions of which nothing is in memory. The caller releases their leases.
    pub(crate) fn release_drained(&mut self) -> Vec<Lease> {
        let drained = self.lanes.drained();
        if !drained.is_empty() {
            self.lanes.drop_partitions(&drained, &[]);
        }
        let blocking_keys = Arc::make_mut(&mut self.blocking_keys);
        drained
            .iter()
            .for_each(|partition| blocking_keys.drop_partition(*partition));
        self.leases.remove(&drained)
    }

    /// The answer to a claim. The caller cancels what runs in lost partitions, and then
    /// [drops](Self::drop_partitions) them.
    pub(crate) fn on_claimed(&mut self, leases: &[Lease], asked_at: Instant) -> LeaseChanges {
        let changes = self.leases.update(leases, asked_at);
        let blocking_keys = Arc::make_mut(&mut self.blocking_keys);
        for partition in &changes.lost {
            self.watermarks.remove(*partition);
            blocking_keys.drop_partition(*partition);
        }
        for partition in &changes.gained {
            self.watermarks.add(*partition);
            blocking_keys.assume_all(*partition);
        }
        changes
    }

    /// These partitions belong to others now: memory forgets everything about them. `cancelled`: the
    /// handlers of the invocations that the caller has cancelled, one entry per slot.
    pub(crate) fn drop_partitions(&mut self, lost: &[u16], cancelled: &[HandlerIx]) {
        self.lanes.drop_partitions(lost, cancelled);
    }

    /// Closes partitions, or opens closing ones again, until `count` are open. No fetch may be under
    /// way that is to be applied. Whether some are open again, and have to be swept.
    pub(crate) fn keep_open(&mut self, count: usize) -> bool {
        let open = self.watermarks.partitions();
        if open.len() > count {
            self.close_least_loaded(open, count);
            return false;
        }
        let leases = self.leases.leases();
        let closing = leases.iter().map(|lease| lease.part);
        let reopened: Vec<u16> = closing
            .filter(|partition| self.lanes.is_closing(*partition))
            .take(count - open.len())
            .collect();
        let blocking_keys = Arc::make_mut(&mut self.blocking_keys);
        for partition in &reopened {
            self.watermarks.add(*partition);
            blocking_keys.assume_all(*partition);
        }
        self.lanes.reopen(&reopened);
        !reopened.is_empty()
    }

    /// Closes partitions until `count` are open, those with the least in memory first: they are
    /// drained soonest.
    fn close_least_loaded(&mut self, mut open: Vec<u16>, count: usize) {
        open.sort_by_key(|partition| self.lanes.memory_of(*partition));
        open.truncate(open.len() - count);
        open.iter()
            .for_each(|partition| self.watermarks.remove(*partition));
        self.lanes.close(&open);
    }

    /// How many partitions are closing: nothing is started in them, and they are to be released.
    pub(crate) fn closing_count(&self) -> usize {
        self.lanes.closing_count()
    }

    /// Whether a closing partition can be released now.
    pub(crate) fn has_drained(&self) -> bool {
        self.lanes.has_drained()
    }
}
