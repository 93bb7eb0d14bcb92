//! An order and its event in one transaction, a handler that is retried, and one that fails
//! permanently and is replayed: `cargo run --example quickstart`

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use outbox::{
    Metadata, Outbox, OutboxEvent, State,
    operations::{Change, DeliveryStatus, Filter, Paging},
    outbox_handler, retryable,
};
use outbox_examples::{say, sqlite, until};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

/// Whether the certificate of the mail server is valid.
#[derive(Clone, Default)]
struct Mail(Arc<AtomicBool>);

/// The bank does not answer the first two attempts. The retries come after 40 ms and after 80 ms.
#[outbox_handler(id = "charge-card")]
#[retryable(
    exponential(initial = "40ms", multiplier = 2.0, max = "1s"),
    max_retries = 3
)]
async fn charge_card(event: OrderCreated, meta: &Metadata) -> Result<(), std::io::Error> {
    let (order, attempt) = (event.order_id, meta.attempt());
    if attempt <= 2 {
        say(format!("  charge-card, attempt {attempt}: no answer"));
        return Err(std::io::Error::other("the bank does not answer"));
    }
    say(format!(
        "  charge-card, attempt {attempt}: order {order} is paid"
    ));
    Ok(())
}

/// Fails permanently after one retry.
#[outbox_handler(id = "send-mail")]
#[retryable(fixed("20ms"), max_retries = 1)]
async fn send_mail(event: OrderCreated, State(mail): State<Mail>) -> Result<(), String> {
    if !mail.0.load(Ordering::Relaxed) {
        say("  send-mail: the certificate has expired");
        return Err("the certificate has expired".to_owned());
    }
    say(format!("  send-mail: thanks for order {}", event.order_id));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    sqlx::query("create table orders (id integer primary key)")
        .execute(&db.pool)
        .await?;
    let mail = Mail::default();
    // Finds the handlers of this program and creates the tables.
    let outbox = Outbox::builder(db.pool.clone())
        .state(mail.clone())
        .build()
        .await?;
    let dispatcher = outbox.start().await?;

    for order_id in [1, 2] {
        let mut tx = db.pool.begin().await?;
        sqlx::query("insert into orders values (?1)")
            .bind(order_id)
            .execute(&mut *tx)
            .await?;
        outbox.publish(&mut tx, &OrderCreated { order_id }).await?;
        if order_id == 1 {
            tx.commit().await?;
            say("order 1 and its event are committed");
        } else {
            tx.rollback().await?;
            say("order 2 is rolled back, and its event with it");
        }
    }

    until(&outbox, |now| now.failed == 1 && now.retrying == 0).await?;
    let failed = Filter::new().status(DeliveryStatus::Failed);
    let operations = outbox.operations();
    let page = operations.list(&failed, Paging::oldest(10)).await?;
    say(
        "send-mail has failed permanently. The certificate is renewed, and the record is replayed:",
    );
    mail.0.store(true, Ordering::Relaxed);
    for failed in page.items {
        let replayed = operations.replay(failed.record_id, "send-mail").await?;
        anyhow::ensure!(replayed == Change::Applied);
    }

    let counts = until(&outbox, |now| now.completed == 1).await?;
    anyhow::ensure!(counts.failed == 0 && counts.pending == 0);
    dispatcher.shutdown().await?;
    say("all handlers are done with order 1; order 2 was never delivered");
    Ok(())
}
