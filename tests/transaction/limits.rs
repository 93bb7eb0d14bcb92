//! Deadlines, cancellation, retry budgets and the circuit breaker.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use outbox::transaction::{
    Budget, Cause, Circuit, Deadline, Reason, Stopped, Transactions, TxRetry,
};
use outbox_tests::on_each_database;

use crate::scene::{FastClock, Oops, Scene, policy};

const EFFECTS: &str = "create table effects (id bigint not null)";
const EFFECT: &str = "insert into effects values (1)";
const COUNT: &str = "select count(*) from effects";

on_each_database! {
    async fn no_attempt_starts_shortly_before_the_deadline(db) {
        let (scene, calls) = (Scene::of(&db), AtomicU32::new(0));
        let error = scene.transactions.transaction("Late").policy(policy())
            .deadline(Deadline::after(Duration::from_millis(50)))
            .run(async |_| {
                calls.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Oops>(())
            }).await.unwrap_err();
        assert_eq!((error.attempts(), error.stopped()), (0, Stopped::Deadline));
        assert_eq!(calls.into_inner(), 0);
    }

    async fn an_attempt_that_exceeds_the_deadline_is_rolled_back(db) {
        database::execute(&db.pool, EFFECTS).await;
        let error = db.outbox.transaction("Long").policy(policy())
            .deadline(Deadline::after(Duration::from_millis(300)))
            .run(async |mut tx| {
                sqlx::query(EFFECT).execute(&mut *tx).await?;
                std::future::pending::<()>().await;
                Ok::<_, Oops>(())
            }).await.unwrap_err();
        assert_eq!((error.attempts(), error.stopped(), error.reason()), (1, Stopped::Deadline, Reason::Deadline));
        assert_eq!(database::number(&db.pool, COUNT).await, 0);
        database::execute(&db.pool, EFFECT).await;
        assert_eq!(database::number(&db.pool, COUNT).await, 1);
    }

    async fn cancellation_rolls_back_the_running_attempt(db) {
        database::execute(&db.pool, EFFECTS).await;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let stop = std::sync::Mutex::new(Some(stop));
        let error = db.outbox.transaction("Stop")
            .cancel_on(async { stopped.await.unwrap() })
            .run(async |mut tx| {
                sqlx::query(EFFECT).execute(&mut *tx).await?;
                stop.lock().unwrap().take().unwrap().send(()).unwrap();
                std::future::pending::<()>().await;
                Ok::<_, Oops>(())
            }).await.unwrap_err();
        assert_eq!((error.attempts(), error.stopped()), (1, Stopped::Cancelled));
        assert_eq!(database::number(&db.pool, COUNT).await, 0);
    }

    async fn the_budget_stops_a_storm_of_retries(db) {
        let (scene, calls) = (Scene::of(&db), AtomicU32::new(0));
        let policy = policy().budget(Budget::new(5, 0.1, 0));
        let mut budget_stopped = 0;
        for _ in 0..100 {
            let error = scene.transactions.transaction("Storm").policy(policy.clone()).run(async |_| {
                calls.fetch_add(1, Ordering::Relaxed);
                Err::<(), _>(Oops::Deadlock)
            }).await.unwrap_err();
            budget_stopped += u32::from(error.stopped() == Stopped::Budget);
        }
                // 100 first attempts, 5 retries from the bucket, and one retry per ten attempts.
                let attempts = calls.into_inner();
                assert!((110..=115).contains(&attempts), "{attempts} attempts");
        assert!(budget_stopped > 80, "{budget_stopped}");
        // Each operation has its own budget.
        let other = scene.transactions.transaction("Other").policy(policy).run(async |tx| {
            if tx.attempt() == 1 { Err(Oops::Deadlock) } else { Ok(()) }
        });
        other.await.unwrap();
    }
}

/// Transactions on a server that does not exist.
pub(crate) fn unreachable() -> Transactions<sqlx::Postgres> {
    let options = "postgres://user@127.0.0.1:1/nothing"
        .parse::<sqlx::postgres::PgConnectOptions>()
        .unwrap();
    let pool = sqlx::postgres::PgPoolOptions::new()
        .acquire_timeout(Duration::from_millis(20))
        .connect_lazy_with(options);
    Transactions::new(pool)
}

#[tokio::test]
async fn an_unreachable_database_opens_the_circuit_until_a_probe() {
    let clock = FastClock::default();
    let transactions = unreachable().clock(clock.clone());
    let run = || {
        let transaction = transactions.transaction("Any");
        transaction.run(async |_| Ok::<_, Oops>(()))
    };
    for _ in 0..5 {
        let error = run().await.unwrap_err();
        assert_eq!((error.attempts(), error.reason()), (1, Reason::PoolTimeout));
        assert_eq!(
            error.stopped(),
            Stopped::NotRetryable,
            "a full pool is not retried"
        );
    }
    let refused = run().await.unwrap_err();
    assert_eq!(
        (refused.attempts(), refused.stopped()),
        (0, Stopped::CircuitOpen)
    );
    assert!(matches!(refused.cause(), Cause::Stopped));
    clock.advance(Duration::from_secs(1));
    let probe = run().await.unwrap_err();
    assert_eq!(
        (probe.attempts(), probe.stopped()),
        (1, Stopped::NotRetryable)
    );
    assert_eq!(run().await.unwrap_err().stopped(), Stopped::CircuitOpen);
}

#[tokio::test]
async fn each_operation_chooses_its_circuit_or_has_none() {
    let clock = FastClock::default();
    let transactions = unreachable().clock(clock.clone());
    let run = async |operation, circuit: Option<Circuit>| {
        let policy = TxRetry::never().circuit(circuit);
        let run = transactions.transaction(operation).policy(policy);
        run.run(async |_| Ok::<_, Oops>(()))
            .await
            .unwrap_err()
            .stopped()
    };
    let quick = Circuit::default()
        .failures(2)
        .first_pause(Duration::from_secs(60));
    let quick = quick.max_pause(Duration::from_secs(60));
    let (tried, refused) = (Stopped::NotRetryable, Stopped::CircuitOpen);
    assert_eq!(run("Quick", Some(quick)).await, tried);
    assert_eq!(run("Quick", Some(quick)).await, tried);
    assert_eq!(run("Quick", Some(quick)).await, refused);
    // Two failures do not open the circuit of another operation, and six do not stop one without.
    assert_eq!(run("Default", Some(Circuit::default())).await, tried);
    for _ in 0..6 {
        assert_eq!(run("Without", None).await, tried);
    }
    assert_eq!(run("Default", Some(Circuit::default())).await, refused);
    clock.advance(Duration::from_secs(59));
    assert_eq!(run("Quick", Some(quick)).await, refused);
    clock.advance(Duration::from_secs(1));
    assert_eq!(run("Quick", Some(quick)).await, tried, "the probe");
}
