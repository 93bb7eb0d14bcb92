//! [`ClaimDecision`]: the fair share, and the partitions to take and to offer.            (pure)
//!
//! There is no leader. Every instance computes its own share from the same rows, takes unowned
//! partitions up to it and hands over those above it. Two instances that see different rows for a
//! moment disagree about shares, never about ownership: a conditional update decides that.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::{
    record::Partition,
    store::{ClusterView, InstanceRow, Lease},
};

/// The decision of one instance, after it has read all instances and leases.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ClaimDecision {
    /// How many partitions it should own.
    pub(crate) share: usize,
    /// How many other instances are alive.
    pub(crate) peers: usize,
    /// Unowned partitions to take now.
    pub(crate) take: Vec<Partition>,
    /// Unowned partitions, left to instances below their share for 100 ms. If they do not take
    /// them, this instance does.
    pub(crate) offer: BTreeSet<Lease>,
    /// Whether partitions are reserved for instances below their share, which may not take them.
    pub(crate) has_reserved: bool,
    /// Instances whose heartbeat is too old.
    pub(crate) expired: Vec<Uuid>,
    /// Microseconds until the heartbeat of the next instance is too old.
    pub(crate) next_expiry: Option<i64>,
}

impl ClaimDecision {
    /// `offered_before`: partitions that `me` has left to the others for long enough.
    pub(crate) fn decide(view: &ClusterView, me: Uuid, offered_before: &BTreeSet<Lease>) -> Self {
        let others = view.instances.iter().filter(|other| other.id != me);
        let (expired, alive): (Vec<&InstanceRow>, Vec<&InstanceRow>) =
            others.partition(|other| other.is_expired());
        let before_me = alive.iter().filter(|other| other.id < me).count();
        let share = fair_share(view.leases.len(), alive.len() + 1, before_me);
        let owned = view.leases_of(me).len();

        // Each instance starts at another partition. Otherwise all would try to take the same ones.
        let start = before_me * view.leases.len() / (alive.len() + 1);
        let mut unowned: Vec<_> = view.leases.iter().collect();
        unowned.sort_unstable_by_key(|row| row.partition);
        unowned.rotate_left(start);
        unowned.retain(|row| row.owner.is_none() || row.is_expired && row.owner != Some(me));

        let mut missing = share.saturating_sub(owned);
        let mut decision = Self {
            share,
            peers: alive.len(),
            expired: expired.iter().map(|instance| instance.id).collect(),
            next_expiry: alive.iter().map(|instance| instance.expires_in).min(),
            ..Self::default()
        };
        for row in unowned {
            let lease = row.lease();
            if missing > 0 || offered_before.contains(&lease) {
                missing = missing.saturating_sub(1);
                decision.take.push(row.partition);
            } else if row.owner.is_none() && !row.is_expired {
                // It is reserved for instances below their share.
                decision.has_reserved = true;
            } else {
                decision.offer.insert(lease);
            }
        }
        decision
    }
}

/// How many of `partitions` one of `instances` should own. If they cannot be shared evenly, the
/// first instances, by id, own one more. `before` instances come before this one.
fn fair_share(partitions: usize, instances: usize, before: usize) -> usize {
    let (each, rest) = (partitions / instances, partitions % instances);
    each + usize::from(before < rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::LeaseRow;

    fn id(n: u8) -> Uuid {
        Uuid::from_u128(u128::from(n))
    }

    fn instances(of: &[u8]) -> Vec<InstanceRow> {
        let instance = |n: &u8| InstanceRow {
            id: id(*n),
            expires_in: 30_000_000 + i64::from(*n),
        };
        of.iter().map(instance).collect()
    }

    fn row(number: u16, owner: Option<u8>, is_expired: bool) -> LeaseRow {
        LeaseRow {
            partition: Partition::new(number),
            epoch: 1,
            owner: owner.map(id),
            is_expired,
        }
    }

    #[test]
    fn the_first_takes_all_and_the_second_waits_for_its_share() {
        let free = (0..4).map(|number| row(number, None, true));
        let mut view = ClusterView {
            instances: instances(&[1]),
            leases: free.collect(),
            paused: Vec::new(),
        };
        let decision = ClaimDecision::decide(&view, id(1), &BTreeSet::new());
        assert_eq!((decision.take.len(), decision.share), (4, 4));
        view.leases = (0..4).map(|number| row(number, Some(1), false)).collect();
        view.instances = instances(&[1, 2]);
        for me in [1, 2] {
            let decision = ClaimDecision::decide(&view, id(me), &BTreeSet::new());
            assert_eq!(
                (decision.take.len(), decision.share, decision.peers),
                (0, 2, 1)
            );
        }
    }

    #[test]
    fn reserved_partitions_go_to_instances_below_their_share() {
        let view = ClusterView {
            instances: instances(&[1, 2]),
            leases: vec![
                row(0, Some(1), false),
                row(1, Some(1), false),
                row(2, None, false),
                row(3, None, false),
            ],
            paused: Vec::new(),
        };
        let first = ClaimDecision::decide(&view, id(1), &BTreeSet::new());
        assert_eq!(
            (first.take, first.offer.len(), first.has_reserved),
            (vec![], 0, true)
        );
        let decision = ClaimDecision::decide(&view, id(2), &BTreeSet::new());
        assert_eq!(decision.take, [2, 3].map(Partition::new));
    }

    #[test]
    fn an_offered_partition_is_taken_by_the_second_claim() {
        let view = ClusterView {
            instances: instances(&[1, 2]),
            leases: vec![
                row(0, Some(1), false),
                row(1, None, true),
                row(2, Some(3), true),
            ],
            paused: Vec::new(),
        };
        let first = ClaimDecision::decide(&view, id(1), &BTreeSet::new());
        assert_eq!((first.take.len(), first.offer.len()), (1, 1));
        let second = ClaimDecision::decide(&view, id(1), &first.offer);
        assert_eq!((second.take.len(), second.offer.len()), (2, 0));
    }

    #[test]
    fn an_expired_instance_does_not_count() {
        let mut view = ClusterView {
            instances: instances(&[1, 2]),
            leases: vec![row(0, Some(1), false), row(1, Some(2), true)],
            paused: Vec::new(),
        };
        let decision = ClaimDecision::decide(&view, id(1), &BTreeSet::new());
        assert_eq!(
            (decision.expired, decision.next_expiry),
            (vec![], Some(30_000_002))
        );
        view.instances[1].expires_in = 0;
        let decision = ClaimDecision::decide(&view, id(1), &BTreeSet::new());
        assert_eq!(decision.take, [Partition::new(1)]);
        assert_eq!(decision.expired, [id(2)]);
        assert_eq!(decision.next_expiry, None);
    }

    /// Each instance claims and hands over by its own decision, four times. Returns the owners.
    fn rebalance(alive: &[u8], mut owners: Vec<Option<u8>>) -> Vec<Option<u8>> {
        let mut offered = vec![BTreeSet::new(); 256];
        for _ in 0..4 {
            for me in alive {
                let mut leases: Vec<LeaseRow> = Vec::new();
                for (number, owner) in (0..).zip(&owners) {
                    let is_unowned = owner.is_none_or(|owner| !alive.contains(&owner));
                    leases.push(row(number, owner.filter(|_| !is_unowned), is_unowned));
                }
                let view = ClusterView {
                    instances: instances(alive),
                    leases,
                    paused: Vec::new(),
                };
                let decision = ClaimDecision::decide(&view, id(*me), &offered[usize::from(*me)]);
                decision
                    .take
                    .iter()
                    .for_each(|partition| owners[partition.index()] = Some(*me));
                let mine = owners.iter().filter(|owner| **owner == Some(*me)).count();
                let surplus = mine.saturating_sub(decision.share);
                let mine = owners.iter_mut().filter(|owner| **owner == Some(*me));
                mine.take(surplus).for_each(|owner| *owner = None);
                offered[usize::from(*me)] = decision.offer;
            }
        }
        owners
    }

    proptest! {
        /// Whatever the owners at first, in the end every partition has an owner, and the counts of
        /// two instances differ by one at most.
        #[test]
        fn shares_become_fair_and_nothing_stays_unowned(
            alive in prop::collection::btree_set(1u8..20, 1..9),
            owners in prop::collection::vec(prop::option::of(1u8..20), 1..65),
        ) {
            let alive: Vec<u8> = alive.into_iter().collect();
            let owners = rebalance(&alive, owners);
            let count = |me: &u8| owners.iter().filter(|owner| **owner == Some(*me)).count();
            let counts: Vec<usize> = alive.iter().map(count).collect();
            prop_assert_eq!(counts.iter().sum::<usize>(), owners.len());
            let (least, most) = (counts.iter().min(), counts.iter().max());
            prop_assert!(most.unwrap() - least.unwrap() <= 1, "{:?}", counts);
        }
    }
}
