//! Who owns a partition.

use uuid::Uuid;

use super::{foreign, older, on_each_database};
use crate::store::{Lease, LeaseSql as _};

fn epochs(leases: &[Lease]) -> Vec<i64> {
    leases.iter().map(|lease| lease.epoch).collect()
}

on_each_database! {
    async fn the_first_owner_gets_every_partition(db) {
        let fence = db.own().await;
        let parts: Vec<u16> = fence.leases.iter().map(|lease| lease.part).collect();
        assert_eq!(parts, (0..64).collect::<Vec<u16>>());
        assert_eq!(epochs(&fence.leases), [1; 64]);
    }

    async fn what_is_owned_is_not_given_to_another(db) {
        let first = db.own().await;
        assert!(db.own().await.leases.is_empty());
        assert_eq!(db.own_as(first.owner, 60).await.leases, first.leases);
    }

    async fn a_renewal_keeps_the_epoch_and_moves_the_end(db) {
        let first = db.own_as(Uuid::now_v7(), 0).await;
        // Expired already, but nobody else has taken it.
        assert_eq!(db.own_as(first.owner, 60).await.leases, first.leases);
        assert!(db.own().await.leases.is_empty());
    }

    async fn an_expired_lease_changes_hands_with_a_new_epoch(db) {
        let first = db.own_as(Uuid::now_v7(), 0).await;
        let second = db.own().await;
        assert_eq!(epochs(&second.leases), [2; 64]);
        assert!(db.own_as(first.owner, 60).await.leases.is_empty());
    }

    async fn a_released_lease_changes_hands_at_once(db) {
        let mut first = db.own().await;
        first.leases.truncate(10);
        let mut connection = db.pool.acquire().await.unwrap();
        Db::release(&mut connection, &db.names, &first).await.unwrap();
        drop(connection);
        let second = db.own().await;
        assert_eq!(second.leases.len(), 10);
        assert_eq!(epochs(&second.leases), [2; 10]);
        assert_eq!(db.own_as(first.owner, 60).await.leases.len(), 54);
    }

    async fn a_release_that_comes_too_late_changes_nothing(db) {
        let first = db.own_as(Uuid::now_v7(), 0).await;
        let second = db.own().await;
        for stale in [&first, &older(&second), &foreign(&second)] {
            let mut connection = db.pool.acquire().await.unwrap();
            Db::release(&mut connection, &db.names, stale).await.unwrap();
        }
        assert!(db.own().await.leases.is_empty());
        assert_eq!(db.own_as(second.owner, 60).await.leases, second.leases);
    }
}
