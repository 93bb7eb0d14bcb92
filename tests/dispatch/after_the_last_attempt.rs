//! When a fallback runs, on a running dispatcher. Each row of the table in the guide has a test here, in
//! [`fallback`](crate::fallback) or in [`on_failed`](crate::on_failed).

use std::time::Duration;

use outbox::{Config, HandlerError, Metadata, Outbox, Registry, State, Tx, outbox_handler};
use outbox_tests::{database, on_each_database};
use sqlx::Postgres;

use crate::scene::{
    COMPLETED, Caught, FAILED, Notes, Thief, builder, eventually, publish, thief, to_catch,
};

on_each_database! {
    async fn a_fallback_runs_again_if_its_success_was_not_written(db) {
        let notes = Notes::default();
        let outbox = builder(&db.pool, &notes, thief!(db, database)).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &[to_catch("rescued")]).await;
        eventually("the completion", async || database::number(&db.pool, COMPLETED).await == 1).await;
        dispatcher.shutdown().await.unwrap();
        // The first failure was written, and the last attempt was not.
        assert_eq!(notes.all(), [
            "rescued attempt 1", "rescued attempt 2", "rescued fallback", "rescued attempt 2", "rescued fallback",
        ]);
    }

    async fn after_a_replay_a_fallback_runs_when_the_retries_are_used_up_again(db) {
        let notes = Notes::default();
        let outbox = builder(&db.pool, &notes, Thief::honest()).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &[to_catch("lost")]).await;
        eventually("the failure", async || database::number(&db.pool, FAILED).await == 1).await;
        database::replay(&db.pool).await;
        eventually("a second fallback", async || notes.all().len() == 6).await;
        eventually("the second failure", async || database::number(&db.pool, FAILED).await == 1).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(notes.all(), [
            "lost attempt 1", "lost attempt 2", "lost fallback", "lost attempt 3", "lost attempt 4", "lost fallback",
        ]);
    }

    async fn without_a_tx_a_fallback_runs_although_the_lease_of_the_start_is_over(db) {
        let notes = Notes::default();
        let mut config = Config::default();
        config.locking.lease = Some(Duration::from_secs(1));
        let outbox = builder(&db.pool, &notes, Thief::honest()).config(config).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &[to_catch("slow")]).await;
        eventually("the completion", async || database::number(&db.pool, COMPLETED).await == 1).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(notes.all(), ["slow attempt 1", "slow fallback"]);
    }
}

/// Takes longer than the lease.
#[outbox_handler(id = "with-tx", fallback = rescue_with_tx)]
async fn with_tx(
    event: Caught,
    meta: &Metadata,
    _tx: Tx<'_, Postgres>,
    State(notes): State<Notes>,
) -> Result<(), HandlerError> {
    notes.add(format!("{} attempt {}", event.how, meta.attempt()));
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    Err(HandlerError::permanent("no"))
}

async fn rescue_with_tx(event: Caught, _tx: Tx<'_, Postgres>, State(notes): State<Notes>) {
    notes.add(format!("{} fallback", event.how));
}

#[tokio::test]
async fn with_a_tx_a_fallback_runs_although_the_lease_of_the_start_is_over() {
    let db = database::postgres::fresh().await;
    let notes = Notes::default();
    let mut config = Config::default();
    config.locking.lease = Some(Duration::from_secs(1));
    let outbox = Outbox::builder(db.pool.clone())
        .registry(Registry::builder().handler::<with_tx>())
        .state(notes.clone())
        .config(config)
        .build()
        .await
        .unwrap();
    let dispatcher = outbox.start().await.unwrap();
    publish(&outbox, &[to_catch("late")]).await;
    eventually("the completion", async || {
        database::postgres::number(&db.pool, COMPLETED).await == 1
    })
    .await;
    dispatcher.shutdown().await.unwrap();
    assert_eq!(notes.all(), ["late attempt 1", "late fallback"]);
}
