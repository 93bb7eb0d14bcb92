//! A handler whose effects happen exactly once: `cargo run --example transactional_handler`

use outbox::{Metadata, Outbox, OutboxEvent, Tx, outbox_handler, retryable};
use outbox_examples::{say, sqlite, until};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
    total_cents: i64,
}

/// Everything that the handler writes with `tx` commits together with the completion of the record, or
/// not at all, so the handler needs no idempotency of its own. This holds for effects in this
/// database only: a mail could be sent twice.
#[outbox_handler(id = "add-to-revenue")]
#[retryable(fixed("10ms"), max_retries = 3)]
async fn add_to_revenue(
    event: OrderCreated,
    meta: &Metadata,
    mut tx: Tx<'_, sqlx::Sqlite>,
) -> anyhow::Result<()> {
    let update = "update revenue set cents = cents + ?1 returning cents";
    let cents: i64 = sqlx::query_scalar(update)
        .bind(event.total_cents)
        .fetch_one(&mut *tx)
        .await?;
    let order = event.order_id;
    if !meta.is_retry() {
        say(format!("  order {order}: {cents} cents, then a failure"));
        anyhow::bail!("something after the write");
    }
    say(format!("  order {order}: {cents} cents, committed"));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    sqlx::raw_sql("create table revenue (cents integer); insert into revenue values (0)")
        .execute(&db.pool)
        .await?;
    let outbox = Outbox::builder(db.pool.clone()).build().await?;
    let dispatcher = outbox.start().await?;

    let orders = [1, 2, 3].map(|order_id| OrderCreated {
        order_id,
        total_cents: 100,
    });
    let mut tx = db.pool.begin().await?;
    outbox.publish_all(&mut tx, &orders).await?; // one statement
    tx.commit().await?;

    until(&outbox, |now| now.completed == 3).await?;
    dispatcher.shutdown().await?;
    let cents: i64 = sqlx::query_scalar("select cents from revenue")
        .fetch_one(&db.pool)
        .await?;
    say(format!("three orders, six attempts, {cents} cents"));
    anyhow::ensure!(cents == 300);
    Ok(())
}
