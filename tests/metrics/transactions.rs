//! The counters of retried transactions.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use outbox::{
    metrics::names,
    transaction::{Deadline, Reason, TxRetry},
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
}
