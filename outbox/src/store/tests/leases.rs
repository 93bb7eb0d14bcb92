//! The statements on instances, leases and sessions.

use uuid::Uuid;

use super::{every_partition, on_each_database, p, with_old_epochs, with_other_owner};
use crate::store::{Lease, LeaseSql as _};

fn epochs(leases: &[Lease]) -> Vec<i64> {
    leases.iter().map(|lease| lease.epoch).collect()
}

on_each_database! {
    async fn the_first_owner_gets_every_partition(db) {
        let fence = db.own().await;
        let partitions: Vec<_> = fence.leases.iter().map(|lease| lease.partition).collect();
        assert_eq!(partitions, every_partition());
        assert_eq!(epochs(&fence.leases), [1; 64]);
    }

    async fn an_owned_partition_is_not_taken(db) {
        let first = db.own().await;
        assert!(db.own().await.leases.is_empty());
        assert_eq!(db.own_as(first.owner, 60).await.leases, first.leases);
    }

    async fn a_renewal_keeps_the_epoch_and_extends_the_lease(db) {
        let first = db.own_as(Uuid::now_v7(), 0).await;
        // Expired, but not taken by another owner.
        assert_eq!(db.own_as(first.owner, 60).await.leases, first.leases);
        assert!(db.own().await.leases.is_empty());
    }

    async fn an_expired_lease_is_taken_with_a_new_epoch(db) {
        let first = db.own_as(Uuid::now_v7(), 0).await;
        let second = db.own().await;
        assert_eq!(epochs(&second.leases), [2; 64]);
        assert!(db.own_as(first.owner, 60).await.leases.is_empty());
    }

    async fn a_released_lease_can_be_taken_at_once(db) {
        let mut first = db.own().await;
        first.leases.truncate(10);
        let mut connection = db.pool.acquire().await.unwrap();
        Db::release_leases(&mut connection, &db.sql, &first, None).await.unwrap();
        drop(connection);
        let second = db.own().await;
        assert_eq!(second.leases.len(), 10);
        assert_eq!(epochs(&second.leases), [2; 10]);
        assert_eq!(db.own_as(first.owner, 60).await.leases.len(), 54);
    }

    async fn each_partition_has_one_owner_after_concurrent_claims(db) {
        for seconds in [0, 0, 60] {
            let claims = (0..8).map(|_| db.own_as(Uuid::now_v7(), seconds));
            futures_util::future::join_all(claims).await;
        }
        let (owners, epochs) = (
            db.numbers("select count(owner) from outbox_lease").await,
            db.numbers("select epoch from outbox_lease").await,
        );
        assert_eq!(owners, [64]);
        // The epoch grew with each new owner.
        assert!(epochs.iter().all(|epoch| (3..=24).contains(epoch)), "{epochs:?}");
        assert!(db.own().await.leases.is_empty());
    }

    async fn a_released_partition_can_be_reserved(db) {
        let first = db.own().await;
        let mut connection = db.pool.acquire().await.unwrap();
        Db::release_leases(&mut connection, &db.sql, &first, Some(60_000_000)).await.unwrap();
        drop(connection);
        let leases = db.cluster_view().await.leases;
        assert!(leases.iter().all(|row| row.owner.is_none() && !row.is_expired));
        // An instance below its share can take it.
        assert_eq!(db.own().await.leases.len(), 64);
    }

    async fn only_leases_that_the_owner_still_has_are_locked(db) {
        let first = db.own_as(Uuid::now_v7(), 0).await;
        let mut connection = db.pool.acquire().await.unwrap();
        Db::take_partitions(&mut connection, &db.sql, Uuid::now_v7(), &[3, 4].map(p), 60_000_000).await.unwrap();
        let mut locked = Db::lock_leases(&mut connection, &db.sql, &first).await.unwrap();
        locked.sort_unstable();
        let mut rest = every_partition();
        rest.retain(|partition| ![3, 4].map(p).contains(partition));
        assert_eq!(locked, rest);
        for stale in [&with_old_epochs(&first), &with_other_owner(&first)] {
            assert!(Db::lock_leases(&mut connection, &db.sql, stale).await.unwrap().is_empty());
        }
    }

    async fn a_heartbeat_takes_no_partition_and_is_visible_to_peers(db) {
        let owner = Uuid::now_v7();
        let mut connection = db.pool.acquire().await.unwrap();
        Db::seed_partitions(&mut connection, &db.sql, 64).await.unwrap();
        Db::seed_partitions(&mut connection, &db.sql, 64).await.unwrap();
        Db::heartbeat(&mut connection, &db.sql, owner, 60_000_000).await.unwrap();
        Db::heartbeat(&mut connection, &db.sql, Uuid::nil(), 0).await.unwrap();
        drop(connection);
        let view = db.cluster_view().await;
        let left = |id| view.instances.iter().find(|instance| instance.id == id).map(|found| found.expires_in);
        assert!((30_000_000..=60_000_000).contains(&left(owner).unwrap()), "{view:?}");
        assert!((-30_000_000..=0).contains(&left(Uuid::nil()).unwrap()), "{view:?}");
        assert_eq!(view.instances.len(), 2);
        assert_eq!(view.leases.len(), 64);
        assert!(view.leases.iter().all(|row| row.owner.is_none() && row.is_expired && row.epoch == 0));
    }

    async fn a_reaped_instance_owns_nothing(db) {
        let (dead, alive) = (db.own_as(Uuid::now_v7(), 0).await, Uuid::now_v7());
        let mut connection = db.pool.acquire().await.unwrap();
        Db::take_partitions(&mut connection, &db.sql, alive, &[p(7)], 60_000_000).await.unwrap();
        Db::heartbeat(&mut connection, &db.sql, alive, 60_000_000).await.unwrap();
        // Only the expired instance is reaped.
        Db::reap_expired(&mut connection, &db.sql, alive).await.unwrap();
        Db::reap_expired(&mut connection, &db.sql, dead.owner).await.unwrap();
        drop(connection);
        let view = db.cluster_view().await;
        let alive_ids: Vec<Uuid> = view.instances.iter().map(|instance| instance.id).collect();
        assert_eq!(alive_ids, [alive]);
        assert_eq!(view.leases.iter().filter(|row| row.owner.is_none()).count(), 63);
        assert_eq!(db.leases_of(alive).await, [Lease { partition: p(7), epoch: 2 }]);
    }

    async fn an_instance_that_leaves_keeps_its_leases_but_has_no_share(db) {
        let leaving = db.own_as(Uuid::now_v7(), 0).await;
        let mut connection = db.pool.acquire().await.unwrap();
        Db::leave(&mut connection, &db.sql, leaving.owner, false).await.unwrap();
        Db::renew(&mut connection, &db.sql, leaving.owner, 60_000_000).await.unwrap();
        drop(connection);
        let view = db.cluster_view().await;
        assert!(view.instances.is_empty());
        assert!(view.leases.iter().all(|row| row.owner == Some(leaving.owner) && !row.is_expired));
        assert!(db.own().await.leases.is_empty());
        let mut connection = db.pool.acquire().await.unwrap();
        Db::leave(&mut connection, &db.sql, leaving.owner, true).await.unwrap();
        drop(connection);
        assert_eq!(db.own().await.leases.len(), 64);
    }

    async fn a_release_that_comes_too_late_changes_nothing(db) {
        let first = db.own_as(Uuid::now_v7(), 0).await;
        let second = db.own().await;
        for stale in [&first, &with_old_epochs(&second), &with_other_owner(&second)] {
            let mut connection = db.pool.acquire().await.unwrap();
            Db::release_leases(&mut connection, &db.sql, stale, None).await.unwrap();
        }
        assert!(db.own().await.leases.is_empty());
        assert_eq!(db.own_as(second.owner, 60).await.leases, second.leases);
    }
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn a_lease_that_settling_has_locked_in_mysql_is_not_taken() {
    let db = super::database::mysql().await;
    let first = db.own_as(Uuid::now_v7(), 0).await;
    // Settling locks a lease in this way.
    let mut tx = db.pool.begin().await.unwrap();
    sqlx::query("select part from outbox_lease where part = 3 lock in share mode")
        .execute(&mut *tx)
        .await
        .unwrap();
    assert_eq!(db.own().await.leases.len(), 63);
    // The owner does not skip the locked lease: its renewal waits.
    let (renewed, end) = tokio::join!(db.own_as(first.owner, 60), tx.commit());
    end.unwrap();
    assert_eq!(renewed.leases, first.leases[3..4]);
    assert!(db.own().await.leases.is_empty());
}

/// A process that is frozen in a write must not keep its partitions forever.
#[cfg(feature = "mysql")]
#[tokio::test]
async fn a_process_frozen_in_a_transaction_of_mariadb_loses_its_locks() {
    use crate::store::{Role, SettleSql as _};

    let db = super::database::mysql().await;
    db.own_as(Uuid::now_v7(), 0).await;
    let mut frozen = db.pool.acquire().await.unwrap();
    frozen.close_on_drop();
    sqlx::MySql::configure(&mut frozen, Role::Writer)
        .await
        .unwrap();
    for sql in ["begin", "select part from outbox_lease lock in share mode"] {
        sqlx::query(sql).execute(&mut *frozen).await.unwrap();
    }
    let second = Uuid::now_v7();
    assert!(db.own_as(second, 60).await.leases.is_empty());
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    assert_eq!(db.own_as(second, 60).await.leases.len(), 64);
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_process_frozen_in_a_batch_of_postgres_loses_its_locks() {
    use crate::store::{Batch, SettleSql as _};

    let db = super::database::postgres().await;
    let fence = db.own().await;
    let ids = db.publish(&[("key", 1), ("key", 1)]).await;
    // Another transaction locks the second record. The batch waits for it after writing the first one.
    let mut other = db.pool.begin().await.unwrap();
    let sql = format!(
        "select 1 from outbox_record where id = {} for update",
        ids[1]
    );
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .execute(&mut *other)
        .await
        .unwrap();
    let batch = Batch {
        completed: vec![ids[0]],
        unhandled: vec![ids[1]],
        ..Batch::default()
    };
    let mut frozen = db.pool.acquire().await.unwrap();
    let waiting = sqlx::Postgres::settle(&mut frozen, &db.sql, &fence, &batch, true);
    // The process is frozen here: the future is neither polled nor dropped.
    let mut waiting = Box::pin(waiting);
    let second = std::time::Duration::from_secs(1);
    assert!(tokio::time::timeout(second, &mut waiting).await.is_err());
    other.rollback().await.unwrap();
    let deleted = db.run("delete from outbox_record");
    tokio::time::timeout(30 * second, deleted)
        .await
        .expect("the lock ends");
    assert!(waiting.await.is_err());
}

/// A proxy may share a session with transactions of other programs. They must stay durable.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn settling_leaves_no_setting_in_the_session() {
    use crate::store::{Batch, Role, SettleSql as _};

    let db = super::database::postgres().await;
    let (fence, mut connection) = (db.own().await, db.pool.acquire().await.unwrap());
    let ids = db.publish(&[("key", 1), ("key", 1), ("key", 1)]).await;
    let batches = [
        Batch {
            completed: vec![ids[0]],
            ..Batch::default()
        },
        Batch {
            completed: vec![ids[1]],
            unhandled: vec![ids[2]],
            ..Batch::default()
        },
    ];
    for batch in &batches {
        sqlx::Postgres::configure(&mut connection, Role::Writer)
            .await
            .unwrap();
        let settled = sqlx::Postgres::settle(&mut connection, &db.sql, &fence, batch, true).await;
        assert!(settled.unwrap().refused.is_empty());
        for (setting, value) in [
            ("synchronous_commit", "on"),
            ("idle_in_transaction_session_timeout", "0"),
        ] {
            let sql = sqlx::AssertSqlSafe(format!("select current_setting('{setting}')"));
            let found: String = sqlx::query_scalar(sql)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            assert_eq!(found, value, "{setting}");
        }
    }
    assert_eq!(db.statuses().await, ["completed", "completed", "unhandled"]);
}
