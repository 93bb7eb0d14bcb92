//! An event that a retried transaction publishes is stored and delivered exactly once.

use std::{
    pin::Pin,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use outbox::{
    Metadata, Outbox, OutboxEvent, State,
    clock::{Clock, SystemClock},
    operations::Precision,
    outbox_handler,
};
use outbox_tests::on_each_database;

use crate::scene::{Oops, policy};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "transaction.approved", key = case)]
struct Approved {
    case: i64,
}

/// The time of the system, which the dispatcher needs, without delays between attempts.
#[derive(Debug)]
struct NoSleep;

impl Clock for NoSleep {
    fn now(&self) -> jiff::Timestamp {
        SystemClock.now()
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
}

#[derive(Clone, Default)]
struct Seen(std::sync::Arc<std::sync::Mutex<Vec<uuid::Uuid>>>);

#[outbox_handler(id = "transaction-approved")]
async fn note(_: Approved, meta: &Metadata, State(seen): State<Seen>) {
    seen.0.lock().unwrap().push(meta.event_id());
}

on_each_database! {
    async fn an_event_of_a_retried_transaction_is_delivered_once(db) {
        let seen = Seen::default();
        let outbox = Outbox::builder(db.pool.clone())
            .registry(outbox::Registry::builder().handler::<note>().state(seen.clone()))
            .clock(NoSleep)
            .build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        let calls = AtomicU32::new(0);
        for case in 0..20 {
            outbox.transaction("Approve").policy(policy()).run(async |mut tx| {
                calls.fetch_add(1, Ordering::Relaxed);
                outbox.publish(&mut tx, &Approved { case }).await?;
                if tx.attempt() < 3 {
                    return Err(Oops::Deadlock);
                }
                Ok(())
            }).await.unwrap();
        }
        while outbox.operations().counts(Precision::Exact).await.unwrap().completed < 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        dispatcher.shutdown().await.unwrap();
        assert_eq!(calls.into_inner(), 60);
        let mut ids = seen.0.lock().unwrap().clone();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), seen.0.lock().unwrap().len()), (20, 20));
    }
}
