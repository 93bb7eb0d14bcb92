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
        Db::release_leases(&mut connection, &db.sql, &first, None).await.unwrap();
        drop(connection);
        let second = db.own().await;
        assert_eq!(second.leases.len(), 10);
        assert_eq!(epochs(&second.leases), [2; 10]);
        assert_eq!(db.own_as(first.owner, 60).await.leases.len(), 54);
    }

    async fn of_many_that_claim_at_once_each_partition_has_one(db) {
        for seconds in [0, 0, 60] {
            let claims = (0..8).map(|_| db.own_as(Uuid::now_v7(), seconds));
            futures_util::future::join_all(claims).await;
        }
        let (owners, epochs) = (
            db.numbers("select count(owner) from outbox_lease").await,
            db.numbers("select epoch from outbox_lease").await,
        );
        assert_eq!(owners, [64]);
        // Each change of hands was counted, however many there were.
        assert!(epochs.iter().all(|epoch| (3..=24).contains(epoch)), "{epochs:?}");
        assert!(db.own().await.leases.is_empty());
    }

    async fn what_is_handed_over_is_reserved_for_a_while(db) {
        let first = db.own().await;
        let mut connection = db.pool.acquire().await.unwrap();
        Db::release_leases(&mut connection, &db.sql, &first, Some(60_000_000)).await.unwrap();
        drop(connection);
        let leases = db.survey().await.leases;
        assert!(leases.iter().all(|row| row.owner.is_none() && !row.expired));
        // Who has too few takes it all the same.
        assert_eq!(db.own().await.leases.len(), 64);
    }

    async fn only_what_is_still_held_is_held(db) {
        let first = db.own_as(Uuid::now_v7(), 0).await;
        let mut connection = db.pool.acquire().await.unwrap();
        Db::take_partitions(&mut connection, &db.sql, Uuid::now_v7(), &[3, 4], 60_000_000).await.unwrap();
        let mut held = Db::lock_leases(&mut connection, &db.sql, &first).await.unwrap();
        held.sort_unstable();
        let rest: Vec<u16> = (0..64).filter(|part| ![3, 4].contains(part)).collect();
        assert_eq!(held, rest);
        for stale in [&older(&first), &foreign(&first)] {
            assert!(Db::lock_leases(&mut connection, &db.sql, stale).await.unwrap().is_empty());
        }
    }

    async fn a_heartbeat_takes_nothing_and_is_seen_by_others(db) {
        let owner = Uuid::now_v7();
        let mut connection = db.pool.acquire().await.unwrap();
        Db::seed_partitions(&mut connection, &db.sql, 64).await.unwrap();
        Db::seed_partitions(&mut connection, &db.sql, 64).await.unwrap();
        Db::heartbeat(&mut connection, &db.sql, owner, 60_000_000).await.unwrap();
        Db::heartbeat(&mut connection, &db.sql, Uuid::nil(), 0).await.unwrap();
        drop(connection);
        let survey = db.survey().await;
        let left = |id| survey.instances.iter().find(|instance| instance.id == id).map(|found| found.expires_in);
        assert!((30_000_000..=60_000_000).contains(&left(owner).unwrap()), "{survey:?}");
        assert!((-30_000_000..=0).contains(&left(Uuid::nil()).unwrap()), "{survey:?}");
        assert_eq!(survey.instances.len(), 2);
        assert_eq!(survey.leases.len(), 64);
        assert!(survey.leases.iter().all(|row| row.owner.is_none() && row.expired && row.epoch == 0));
    }

    async fn who_is_buried_owns_nothing_any_more(db) {
        let (dead, alive) = (db.own_as(Uuid::now_v7(), 0).await, Uuid::now_v7());
        let mut connection = db.pool.acquire().await.unwrap();
        Db::take_partitions(&mut connection, &db.sql, alive, &[7], 60_000_000).await.unwrap();
        Db::heartbeat(&mut connection, &db.sql, alive, 60_000_000).await.unwrap();
        // Only the dead.
        Db::reap_expired(&mut connection, &db.sql, alive).await.unwrap();
        Db::reap_expired(&mut connection, &db.sql, dead.owner).await.unwrap();
        drop(connection);
        let survey = db.survey().await;
        let alive_ids: Vec<Uuid> = survey.instances.iter().map(|instance| instance.id).collect();
        assert_eq!(alive_ids, [alive]);
        assert_eq!(survey.leases.iter().filter(|row| row.owner.is_none()).count(), 63);
        assert_eq!(db.leases_of(alive).await, [Lease { part: 7, epoch: 2 }]);
    }

    async fn who_retires_owns_what_it_has_but_has_no_share(db) {
        let leaves = db.own_as(Uuid::now_v7(), 0).await;
        let mut connection = db.pool.acquire().await.unwrap();
        Db::leave(&mut connection, &db.sql, leaves.owner, false).await.unwrap();
        Db::renew(&mut connection, &db.sql, leaves.owner, 60_000_000).await.unwrap();
        drop(connection);
        let survey = db.survey().await;
        assert!(survey.instances.is_empty());
        assert!(survey.leases.iter().all(|row| row.owner == Some(leaves.owner) && !row.expired));
        assert!(db.own().await.leases.is_empty());
        let mut connection = db.pool.acquire().await.unwrap();
        Db::leave(&mut connection, &db.sql, leaves.owner, true).await.unwrap();
        drop(connection);
        assert_eq!(db.own().await.leases.len(), 64);
    }

    async fn a_release_that_comes_too_late_changes_nothing(db) {
        let first = db.own_as(Uuid::now_v7(), 0).await;
        let second = db.own().await;
        for stale in [&first, &older(&second), &foreign(&second)] {
            let mut connection = db.pool.acquire().await.unwrap();
            Db::release_leases(&mut connection, &db.sql, stale, None).await.unwrap();
        }
        assert!(db.own().await.leases.is_empty());
        assert_eq!(db.own_as(second.owner, 60).await.leases, second.leases);
    }
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn what_is_settled_in_mysql_is_not_taken_meanwhile() {
    let db = super::database::mysql().await;
    let first = db.own_as(Uuid::now_v7(), 0).await;
    // As settling does.
    let mut tx = db.pool.begin().await.unwrap();
    sqlx::query("select part from outbox_lease where part = 3 lock in share mode")
        .execute(&mut *tx)
        .await
        .unwrap();
    assert_eq!(db.own().await.leases.len(), 63);
    // Its owner does not pass it over: it waits.
    let (renewed, end) = tokio::join!(db.own_as(first.owner, 60), tx.commit());
    end.unwrap();
    assert_eq!(renewed.leases, first.leases[3..4]);
    assert!(db.own().await.leases.is_empty());
}

/// A process that is frozen in the middle of a write must not keep its partitions for ever.
#[cfg(feature = "mysql")]
#[tokio::test]
async fn who_freezes_in_a_transaction_of_mariadb_loses_its_locks() {
    use crate::store::SettleSql as _;

    let db = super::database::mysql().await;
    db.own_as(Uuid::now_v7(), 0).await;
    let mut frozen = db.pool.acquire().await.unwrap();
    frozen.close_on_drop();
    sqlx::MySql::configure(&mut frozen, true).await.unwrap();
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
async fn who_freezes_in_a_batch_of_postgres_loses_its_locks() {
    use crate::store::{Batch, SettleSql as _};

    let db = super::database::postgres().await;
    let fence = db.own().await;
    let ids = db.publish(&[("key", 1), ("key", 1)]).await;
    // Somebody holds the second record: the batch waits for it, with the first one written.
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
    // It is frozen there: not polled again, not dropped.
    let mut waiting = Box::pin(waiting);
    let second = std::time::Duration::from_secs(1);
    assert!(tokio::time::timeout(second, &mut waiting).await.is_err());
    other.rollback().await.unwrap();
    let deleted = db.run("delete from outbox_record");
    tokio::time::timeout(30 * second, deleted)
        .await
        .expect("not to wait for ever");
    assert!(waiting.await.is_err());
}

/// A proxy may share a session with transactions of others: they must not become forgetful.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn nothing_of_settling_stays_in_the_session() {
    use crate::store::{Batch, SettleSql as _};

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
        sqlx::Postgres::configure(&mut connection, true)
            .await
            .unwrap();
        sqlx::Postgres::settle(&mut connection, &db.sql, &fence, batch, true)
            .await
            .unwrap();
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

/// Nobody sees an instance without its session; one that is there already is left as it is.
#[cfg(any(feature = "postgres", feature = "mysql"))]
async fn joins_once<Db: super::database::Look>(db: &super::database::Store<Db>) {
    use crate::store::SessionKey;

    let (owner, key) = (Uuid::now_v7(), SessionKey::new());
    let mut line = Db::open(&db.pool, &db.sql).await.unwrap();
    Db::lock_session(&mut line, &db.sql, key).await.unwrap();
    for _ in 0..2 {
        Db::register(&mut line, &db.sql, owner, key, 60_000_000)
            .await
            .unwrap();
    }
    let tick = Db::poll(&mut line, &db.sql, owner, Some(key), 0)
        .await
        .unwrap();
    assert!(
        tick.held && tick.shown && tick.gone.is_empty() && tick.peers == 0,
        "{tick:?}"
    );
    let mut other = Db::open(&db.pool, &db.sql).await.unwrap();
    let seen = Db::poll(&mut other, &db.sql, Uuid::nil(), None, 0)
        .await
        .unwrap();
    assert!(
        !seen.held && seen.peers == 1 && seen.gone.is_empty(),
        "{seen:?}"
    );
    Db::unlock_session(&mut line, &db.sql).await.unwrap();
    drop(line);
    // Its end may take a moment.
    for _ in 0..100 {
        let seen = Db::poll(&mut other, &db.sql, Uuid::nil(), None, 0)
            .await
            .unwrap();
        if let [gone] = &*seen.gone {
            assert_eq!(gone.id, owner);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("nobody saw its end");
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn the_end_of_a_session_of_postgres_is_seen() {
    joins_once(&super::database::postgres().await).await;
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn the_end_of_a_session_of_mysql_is_seen() {
    joins_once(&super::database::mysql().await).await;
}

/// Whose row says at this moment that it has another session is not buried for the one before.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn who_has_a_new_session_is_not_buried_for_the_old_one() {
    use crate::store::WatchSql as _;

    let db = super::database::postgres().await;
    let fence = db.own().await;
    db.run("update outbox_instance set session = 111").await;
    let mut line = sqlx::Postgres::open(&db.pool, &db.sql).await.unwrap();
    let mut alive = db.pool.begin().await.unwrap();
    for sql in [
        "select pg_advisory_lock(222)",
        "update outbox_instance set session = 222",
    ] {
        sqlx::query(sql).execute(&mut *alive).await.unwrap();
    }
    let burial = sqlx::Postgres::reap_lost(&mut line, &db.sql, fence.owner);
    let commit = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        sqlx::query("commit").execute(&mut *alive).await.unwrap();
    };
    let (buried, ()) = tokio::join!(burial, commit);
    buried.unwrap();
    assert_eq!(db.leases_of(fence.owner).await.len(), 64);
    // And once that one is gone too, it is.
    sqlx::query("select pg_advisory_unlock(222)")
        .execute(&mut *alive)
        .await
        .unwrap();
    sqlx::Postgres::reap_lost(&mut line, &db.sql, fence.owner)
        .await
        .unwrap();
    assert!(db.leases_of(fence.owner).await.is_empty());
    assert!(db.survey().await.instances.is_empty());
}
