//! The counters of retried transactions.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use outbox::{
    metrics::names,
    transaction::{Circuit, Deadline, Reason, Transactions, TxRetry},
};
use outbox_tests::on_each_database;

use crate::scrape::Scraped;

#[derive(Debug, thiserror::Error)]
enum Oops {
    #[error("conflict")]
    Conflict(Reason),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

fn policy() -> TxRetry {
    TxRetry::background()
        .max_attempts(3)
        .base_delay(Duration::from_millis(1))
        .classify(|error| match error.downcast_ref::<Oops>() {
            Some(Oops::Conflict(reason)) => Some(*reason),
            Some(Oops::Database(_)) | None => None,
        })
}

on_each_database! {
    async fn every_retry_is_counted_by_operation_and_reason(db) {
        let scraped = Scraped::start().await;
        let calls = AtomicU32::new(0);
        for (reason, metric) in [
            (Reason::Deadlock, Some(names::TRANSACTION_DEADLOCKS)),
            (Reason::SerializationFailure, Some(names::TRANSACTION_SERIALIZATION_FAILURES)),
            (Reason::LockTimeout, Some(names::TRANSACTION_LOCK_TIMEOUTS)),
            (Reason::Transient, None),
        ] {
            let before = calls.load(Ordering::Relaxed);
            // This transaction fails twice and then succeeds.
            db.outbox.transaction("Ship").policy(policy()).run(async |mut tx| {
                sqlx::query("select 1").execute(&mut *tx).await?;
                match calls.fetch_add(1, Ordering::Relaxed) - before {
                    0 | 1 => Err(Oops::Conflict(reason)),
                    _ => Ok(()),
                }
            }).await.unwrap();
            assert_eq!(calls.load(Ordering::Relaxed) - before, 3);
            // This transaction always fails.
            db.outbox.transaction("Ship").policy(policy()).run(async |_| {
                Err::<(), _>(Oops::Conflict(reason))
            }).await.unwrap_err();
            let page = scraped.scrape().await;
            assert_eq!(page.value(&names::TRANSACTION_RETRIES, &["Ship", reason.as_str()]), Some(4.0));
            assert_eq!(page.value(&names::TRANSACTION_EXHAUSTED, &["Ship", reason.as_str()]), Some(1.0));
            if let Some(metric) = metric {
                assert_eq!(page.value(&metric, &["Ship"]), Some(5.0), "{}", metric.name);
            }
        }
        // The deadline leaves time for an attempt, but not for the delay before the next one.
        let slow = policy().base_delay(Duration::from_secs(60)).max_delay(Duration::from_secs(60));
        db.outbox.transaction("Hurry").policy(slow).deadline(Deadline::after(Duration::from_secs(5))).run(async |_| {
            Err::<(), _>(Oops::Conflict(Reason::Deadlock))
        }).await.unwrap_err();
        let page = scraped.scrape().await;
        assert_eq!(page.value(&names::TRANSACTION_SUCCESSES, &["Ship", "3"]), Some(4.0));
        assert_eq!(page.value(&names::TRANSACTION_SKIPPED, &["Hurry"]), Some(1.0));
        assert_eq!(page.value(&names::TRANSACTION_RETRIES, &["Hurry", "deadlock"]), None);
        assert_eq!(page.total(&names::TRANSACTION_RETRIES), 16.0);
        assert_eq!(page.total(&names::TRANSACTION_SUCCESSES), 4.0);
    }

    async fn every_call_is_counted_once_by_its_outcome(db) {
        let scraped = Scraped::start().await;
        let pay = || db.outbox.transaction("Pay").policy(policy());
        let works = async |_| Ok::<_, Oops>(7);
        // Two commits, one of them after a retry.
        pay().run(async |tx| match tx.attempt() {
            1 => Err(Oops::Conflict(Reason::Deadlock)),
            _ => Ok(()),
        }).await.unwrap();
        pay().command_id("c-1").run(works).await.unwrap();
        pay().command_id("c-1").run(works).await.unwrap();
        pay().command_id("c-1").run(works).await.unwrap();
        pay().run(async |_| Err::<(), _>(Oops::Conflict(Reason::StatementTimeout))).await.unwrap_err();
        pay().run(async |_| Err::<(), _>(Oops::Conflict(Reason::Deadlock))).await.unwrap_err();
        pay().run(async |mut tx| {
            sqlx::query("insert into nowhere values (1)").execute(&mut *tx).await?;
            Ok::<_, Oops>(())
        }).await.unwrap_err();
        pay().deadline(Deadline::after(Duration::ZERO)).run(works).await.unwrap_err();
        pay().command_id("").run(works).await.unwrap_err();
        let page = scraped.scrape().await;
        for (outcome, reason, calls) in [
            ("committed", "none", 2.0),
            ("replayed", "none", 2.0),
            ("failed", "statement_timeout", 1.0),
            ("failed", "deadlock", 1.0),
            ("failed", "missing_object", 1.0),
            ("refused", "deadline", 1.0),
            ("refused", "command", 1.0),
        ] {
            let counted = page.value(&names::TRANSACTIONS, &["Pay", outcome, reason]);
            assert_eq!(counted, Some(calls), "{outcome} {reason}");
        }
        assert_eq!(page.total(&names::TRANSACTIONS), 9.0);
    }

    async fn the_gauge_shows_whether_the_circuit_is_open(db) {
        let scraped = Scraped::start().await;
        let pool = db.pool.options().clone()
            .max_connections(1)
            .acquire_timeout(Duration::from_millis(30))
            .connect_with((*db.pool.connect_options()).clone()).await.unwrap();
        let transactions = Transactions::new(pool.clone());
        let circuit = Circuit::default().failures(2).first_pause(Duration::ZERO);
        let run = async || {
            let policy = TxRetry::never().circuit(circuit);
            let run = transactions.transaction("Any").policy(policy);
            let ended = run.run(async |_| Ok::<_, Oops>(())).await;
            let page = scraped.scrape().await;
            (ended.is_ok(), page.value(&names::TRANSACTION_CIRCUIT_OPEN, &[]))
        };
        assert_eq!(run().await, (true, Some(0.0)));
        let occupied = pool.acquire().await.unwrap();
        assert_eq!(run().await, (false, Some(0.0)));
        assert_eq!(run().await, (false, Some(1.0)));
        assert_eq!(run().await, (false, Some(1.0)));
        drop(occupied);
        // The connection goes back to the pool in a task.
        let mut last = run().await;
        for _ in 0..100 {
            if last == (true, Some(0.0)) {
                break;
            }
            last = run().await;
        }
        assert_eq!(last, (true, Some(0.0)));
    }
}
