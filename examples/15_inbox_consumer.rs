//! A consumer of a broker that sends some messages twice: `cargo run --example inbox_consumer`

use outbox::{
    Outbox, OutboxEvent, Registry,
    transaction::{Seen, TransactionError, TxRetry},
};
use outbox_examples::{say, sqlite};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "payment.booked", key = account)]
struct PaymentBooked {
    account: i64,
    cents: i64,
}

/// A message. Its id is the sender's, and the same when the broker sends the message again.
#[derive(Debug, Clone, Copy)]
struct Message {
    id: &'static str,
    account: i64,
    cents: i64,
}

/// The id of the message, its effect and the event commit together. If this returns an error, the
/// consumer does not acknowledge the message, and the broker sends it again.
async fn receive(
    outbox: &Outbox<sqlx::Sqlite>,
    message: Message,
) -> Result<Seen, TransactionError<anyhow::Error>> {
    let Message { id, account, cents } = message;
    outbox
        .transaction("BookPayment")
        // One retry: the broker repeats too, and the attempts of both layers multiply.
        .policy(TxRetry::background().max_attempts(2))
        .run(async |mut tx| {
            let seen = outbox.inbox().once(&mut tx, "bank", id).await?;
            if seen == Seen::First {
                sqlx::query("update accounts set cents = cents + ?1 where id = ?2")
                    .bind(cents)
                    .bind(account)
                    .execute(&mut *tx)
                    .await?;
                let booked = PaymentBooked { account, cents };
                outbox.publish(&mut tx, &booked).await?;
            }
            Ok::<_, anyhow::Error>(seen)
        })
        .await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    sqlx::raw_sql(
        "create table accounts (id integer, cents integer); insert into accounts values (1, 0)",
    )
    .execute(&db.pool)
    .await?;
    let registry = Registry::builder().allow_empty();
    let outbox = Outbox::builder(db.pool.clone())
        .registry(registry)
        .build()
        .await?;

    let message = |id, cents| Message {
        id,
        account: 1,
        cents,
    };
    let rent = message("m-1", 900);
    // Two consumers get the same message at the same time.
    let (one, other) = tokio::try_join!(receive(&outbox, rent), receive(&outbox, rent))?;
    say(format!("m-1 at two consumers: {one:?} and {other:?}"));
    anyhow::ensure!(one != other);
    for again in [message("m-2", 50), message("m-2", 50), rent] {
        let seen = receive(&outbox, again).await?;
        say(format!("{}: {seen:?}", again.id));
    }

    let cents: i64 = sqlx::query_scalar("select cents from accounts")
        .fetch_one(&db.pool)
        .await?;
    let events: i64 = sqlx::query_scalar("select count(*) from outbox_record")
        .fetch_one(&db.pool)
        .await?;
    say(format!(
        "five deliveries of two messages: {cents} cents, {events} events"
    ));
    anyhow::ensure!((cents, events) == (950, 2));
    Ok(())
}
