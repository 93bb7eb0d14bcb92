//! [`ClaimDecision`]: fair share, what to take, what to offer.                            (pure)
//!
//! There is no leader. Every instance computes its own share from the same rows, takes unowned
//! partitions up to it and hands over what is beyond it. Two instances that see different rows for a
//! moment disagree about shares, never about ownership: one conditional update of a row decides that.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::store::{ClusterView, Instance, Lease};

/// What one instance does with what it sees.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ClaimDecision {
    /// How many partitions it should own.
    pub(crate) share: usize,
    /// How many other instances are alive.
    pub(crate) peers: usize,
    /// Unowned, to be taken now.
    pub(crate) take: Vec<u16>,
    /// Unowned, left to instances below their share for a moment. If they do not take them, this
    /// instance does.
    pub(crate) offer: BTreeSet<Lease>,
    /// Whether partitions are reserved for instances below their share, which may not take them.
    pub(crate) has_reserved: bool,
    /// Instances whose heartbeat is too old.
    pub(crate) expired: Vec<Uuid>,
    /// Microseconds until the heartbeat of the next one is.
    pub(crate) next_expiry: Option<i64>,
}

impl ClaimDecision {
    /// `offered_before`: what `me` has left to the others for long enough.
    pub(crate) fn decide(view: &ClusterView, me: Uuid, offered_before: &BTreeSet<Lease>) -> Self {
        let others = view.instances.iter().filter(|other| other.id != me);
        let (expired, alive): (Vec<&Instance>, Vec<&Instance>) =
            others.partition(|other| other.expired());
        let before_me = alive.iter().filter(|other| other.id < me).count();
        let share = fair_share(view.leases.len(), alive.len() + 1, before_me);
        let owned = view.leases_of(me).len();

        // Each instance starts at another partition: otherwise all would try to take the same ones.
        let start = before_me * view.leases.len() / (alive.len() + 1);
        let mut unowned: Vec<_> = view.leases.iter().collect();
        unowned.sort_unstable_by_key(|row| row.part);
        unowned.rotate_left(start);
        unowned.retain(|row| row.owner.is_none() || row.expired && row.owner != Some(me));

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
                decision.take.push(row.part);
            } else if row.owner.is_none() && !row.expired {
                // It is reserved.
                decision.has_reserved = true;
            } else {
                decision.offer.insert(lease);
            }
        }
        decision
    }
}

/// How many of `partitions` one of `instances` should own. The first ones, by their ids, own one
/// more if they cannot be shared evenly; `before` instances come before this one.
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

    fn instances(of: &[u8]) -> Vec<Instance> {
        let instance = |n: &u8| Instance {
            id: id(*n),
            expires_in: 30_000_000 + i64::from(*n),
        };
        of.iter().map(instance).collect()
    }

    fn row(part: u16, owner: Option<u8>, expired: bool) -> LeaseRow {
        LeaseRow {
            part,
            epoch: 1,
            owner: owner.map(id),
            expired,
        }
    }

    #[test]
    fn the_first_takes_all_and_the_second_waits_for_its_share() {
        let free = (0..4).map(|part| row(part, None, true));
        let mut survey = ClusterView {
            instances: instances(&[1]),
            leases: free.collect(),
            paused: Vec::new(),
        };
        let plan = ClaimDecision::decide(&survey, id(1), &BTreeSet::new());
        assert_eq!((plan.take.len(), plan.share), (4, 4));
        survey.leases = (0..4).map(|part| row(part, Some(1), false)).collect();
        survey.instances = instances(&[1, 2]);
        for me in [1, 2] {
            let plan = ClaimDecision::decide(&survey, id(me), &BTreeSet::new());
            assert_eq!((plan.take.len(), plan.share, plan.peers), (0, 2, 1));
        }
    }

    #[test]
    fn what_is_reserved_goes_to_those_who_have_too_few() {
        let survey = ClusterView {
            instances: instances(&[1, 2]),
            leases: vec![
                row(0, Some(1), false),
                row(1, Some(1), false),
                row(2, None, false),
                row(3, None, false),
            ],
            paused: Vec::new(),
        };
        let first = ClaimDecision::decide(&survey, id(1), &BTreeSet::new());
        assert_eq!(
            (first.take, first.offer.len(), first.has_reserved),
            (vec![], 0, true)
        );
        let plan = ClaimDecision::decide(&survey, id(2), &BTreeSet::new());
        assert_eq!(plan.take, [2, 3]);
    }

    #[test]
    fn what_nobody_wants_is_taken_at_the_second_look() {
        let survey = ClusterView {
            instances: instances(&[1, 2]),
            leases: vec![
                row(0, Some(1), false),
                row(1, None, true),
                row(2, Some(3), true),
            ],
            paused: Vec::new(),
        };
        let first = ClaimDecision::decide(&survey, id(1), &BTreeSet::new());
        assert_eq!((first.take.len(), first.offer.len()), (1, 1));
        let second = ClaimDecision::decide(&survey, id(1), &first.offer);
        assert_eq!((second.take.len(), second.offer.len()), (2, 0));
    }

    #[test]
    fn who_has_expired_does_not_count() {
        let mut survey = ClusterView {
            instances: instances(&[1, 2]),
            leases: vec![row(0, Some(1), false), row(1, Some(2), true)],
            paused: Vec::new(),
        };
        let plan = ClaimDecision::decide(&survey, id(1), &BTreeSet::new());
        assert_eq!((plan.expired, plan.next_expiry), (vec![], Some(30_000_002)));
        survey.instances[1].expires_in = 0;
        let plan = ClaimDecision::decide(&survey, id(1), &BTreeSet::new());
        assert_eq!((plan.take, plan.expired), (vec![1], vec![id(2)]));
        assert_eq!(plan.next_expiry, None);
    }

    /// Instances come and go; each looks, takes and hands over by its own plan.
    fn settle(alive: &[u8], mut owners: Vec<Option<u8>>) -> Vec<Option<u8>> {
        let mut offered = vec![BTreeSet::new(); 256];
        for _ in 0..4 {
            for me in alive {
                let mut leases: Vec<LeaseRow> = Vec::new();
                for (part, owner) in (0..).zip(&owners) {
                    let gone = owner.is_none_or(|owner| !alive.contains(&owner));
                    leases.push(row(part, owner.filter(|_| !gone), gone));
                }
                let survey = ClusterView {
                    instances: instances(alive),
                    leases,
                    paused: Vec::new(),
                };
                let plan = ClaimDecision::decide(&survey, id(*me), &offered[usize::from(*me)]);
                plan.take
                    .iter()
                    .for_each(|part| owners[usize::from(*part)] = Some(*me));
                let mine = owners.iter().filter(|owner| **owner == Some(*me)).count();
                let surplus = mine.saturating_sub(plan.share);
                let mine = owners.iter_mut().filter(|owner| **owner == Some(*me));
                mine.take(surplus).for_each(|owner| *owner = None);
                offered[usize::from(*me)] = plan.offer;
            }
        }
        owners
    }

    proptest! {
        /// From wherever it starts, every partition has an owner in the end and nobody has more
        /// than one partition more than another.
        #[test]
        fn shares_become_fair_and_nothing_stays_unowned(
            alive in prop::collection::btree_set(1u8..20, 1..9),
            owners in prop::collection::vec(prop::option::of(1u8..20), 1..65),
        ) {
            let alive: Vec<u8> = alive.into_iter().collect();
            let owners = settle(&alive, owners);
            let count = |me: &u8| owners.iter().filter(|owner| **owner == Some(*me)).count();
            let counts: Vec<usize> = alive.iter().map(count).collect();
            prop_assert_eq!(counts.iter().sum::<usize>(), owners.len());
            let (least, most) = (counts.iter().min(), counts.iter().max());
            prop_assert!(most.unwrap() - least.unwrap() <= 1, "{:?}", counts);
        }
    }
}
