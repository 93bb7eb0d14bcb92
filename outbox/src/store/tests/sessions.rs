//! The statements on sessions.

use uuid::Uuid;

use super::database::{Store, TestSql};
use crate::store::SessionKey;

/// No peer sees an instance without its session. Registering an existing instance changes nothing.
async fn registers_once<Db: TestSql>(db: &Store<Db>) {
    let (owner, key) = (Uuid::now_v7(), SessionKey::new());
    let mut watch = Db::open(&db.pool, &db.sql).await.unwrap();
    Db::lock_session(&mut watch, &db.sql, key).await.unwrap();
    for _ in 0..2 {
        Db::register(&mut watch, &db.sql, owner, key, 60_000_000)
            .await
            .unwrap();
    }
    let own = Db::poll(&mut watch, &db.sql, owner, Some(key), 0)
        .await
        .unwrap();
    assert!(
        own.has_session_lock && own.is_advertised && own.lost_sessions.is_empty() && own.peers == 0,
        "{own:?}"
    );
    let mut other = Db::open(&db.pool, &db.sql).await.unwrap();
    let seen = Db::poll(&mut other, &db.sql, Uuid::nil(), None, 0)
        .await
        .unwrap();
    assert!(
        !seen.has_session_lock && seen.peers == 1 && seen.lost_sessions.is_empty(),
        "{seen:?}"
    );
    Db::unlock_session(&mut watch, &db.sql).await.unwrap();
    drop(watch);
    // The database may take some time to end the session.
    for _ in 0..100 {
        let seen = Db::poll(&mut other, &db.sql, Uuid::nil(), None, 0)
            .await
            .unwrap();
        if let [lost] = &*seen.lost_sessions {
            assert_eq!(lost.id, owner);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("no poll saw the end of the session");
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_peer_sees_the_end_of_a_session_of_postgres() {
    registers_once(&super::database::postgres().await).await;
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn a_peer_sees_the_end_of_a_session_of_mysql() {
    registers_once(&super::database::mysql().await).await;
}

/// An instance whose row changes to a new session during the statement is not reaped.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn an_instance_with_a_new_session_is_not_reaped_for_the_old_one() {
    use crate::store::WatchSql as _;

    let db = super::database::postgres().await;
    let fence = db.own().await;
    db.run("update outbox_instance set session = 111").await;
    let mut watch = sqlx::Postgres::open(&db.pool, &db.sql).await.unwrap();
    let mut alive = db.pool.begin().await.unwrap();
    for sql in [
        "select pg_advisory_lock(222)",
        "update outbox_instance set session = 222",
    ] {
        sqlx::query(sql).execute(&mut *alive).await.unwrap();
    }
    let reap = sqlx::Postgres::reap_lost(&mut watch, &db.sql, fence.owner);
    let commit = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        sqlx::query("commit").execute(&mut *alive).await.unwrap();
    };
    let (reaped, ()) = tokio::join!(reap, commit);
    reaped.unwrap();
    assert_eq!(db.leases_of(fence.owner).await.len(), 64);
    // After the new session has ended too, the instance is reaped.
    sqlx::query("select pg_advisory_unlock(222)")
        .execute(&mut *alive)
        .await
        .unwrap();
    sqlx::Postgres::reap_lost(&mut watch, &db.sql, fence.owner)
        .await
        .unwrap();
    assert!(db.leases_of(fence.owner).await.is_empty());
    assert!(db.cluster_view().await.instances.is_empty());
}
