//! Handlers as methods of a type with its own fields: `cargo run --example impl_block`

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use outbox::{Handler, Metadata, Outbox, OutboxEvent, outbox_handler, retryable};
use outbox_examples::{say, sqlite, until};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "payment.received", key = account)]
struct PaymentReceived {
    account: i64,
    cents: i64,
}

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "payment.refunded", key = account)]
struct PaymentRefunded {
    account: i64,
    cents: i64,
}

/// A real service would have a connection pool or an HTTP client here.
struct Ledger {
    balance: Arc<AtomicI64>,
}

/// Each marked method is a handler with its own id and its own retries.
#[outbox_handler]
impl Ledger {
    #[outbox_handler(id = "ledger-received")]
    #[retryable(fixed("10ms"), max_retries = 5)]
    async fn on_received(&self, event: PaymentReceived, meta: &Metadata) -> Result<(), String> {
        if !meta.is_retry() {
            say(format!("  account {}: locked, try again", event.account));
            return Err("locked".to_owned());
        }
        self.book(event.account, event.cents);
        Ok(())
    }

    #[outbox_handler(id = "ledger-refunded")]
    async fn on_refunded(&self, event: PaymentRefunded) {
        self.book(event.account, -event.cents);
    }

    /// An ordinary method, not a handler.
    fn book(&self, account: i64, cents: i64) {
        say(format!("  account {account}: {cents:+} cents"));
        self.balance.fetch_add(cents, Ordering::Relaxed);
    }
}

/// The other form is a trait: one `impl` per event.
struct Audit;

#[outbox_handler]
impl Handler<PaymentRefunded> for Audit {
    async fn handle(&self, event: PaymentRefunded, meta: &Metadata) {
        let (id, cents) = (meta.event_id(), event.cents);
        say(format!("  audit: {cents} cents were refunded, event {id}"));
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    let balance = Arc::new(AtomicI64::new(0));
    let ledger = Ledger {
        balance: Arc::clone(&balance),
    };
    let outbox = Outbox::builder(db.pool.clone())
        .state(ledger)
        .state(Audit)
        .build()
        .await?;
    let dispatcher = outbox.start().await?;

    let (account, cents) = (7, 500);
    let mut tx = db.pool.begin().await?;
    let received = PaymentReceived { account, cents };
    outbox.publish(&mut tx, &received).await?;
    let refunded = PaymentRefunded {
        account,
        cents: 200,
    };
    outbox.publish(&mut tx, &refunded).await?;
    tx.commit().await?;

    until(&outbox, |now| now.completed == 2).await?;
    dispatcher.shutdown().await?;
    let cents = balance.load(Ordering::Relaxed);
    say(format!("the balance is {cents} cents"));
    anyhow::ensure!(cents == 300);
    Ok(())
}
