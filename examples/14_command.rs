//! A command with its id, and a rule that holds in every order: `cargo run --example command`

use std::time::Duration;

use outbox::{
    Outbox, OutboxEvent, Registry,
    transaction::{Deadline, Isolation, TransactionError, TxRetry},
};
use outbox_examples::{say, sqlite};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "reviewer.removed", key = case)]
struct ReviewerRemoved {
    case: i64,
    reviewer: i64,
}

/// The request of the command. The same id with another request is an error.
#[derive(Clone, Copy, serde::Serialize)]
struct RemoveReviewer {
    case: i64,
    reviewer: i64,
}

/// A refusal is an answer, not an error: it is stored too, and a repeated call gets the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Answer {
    Removed,
    LastReviewerStays,
}

/// Two calls at the same time cannot both count two reviewers: the transaction is serializable, and
/// the one that the database ends is repeated and counts again.
async fn remove(
    outbox: &Outbox<sqlx::Sqlite>,
    command_id: &str,
    request: RemoveReviewer,
) -> Result<Answer, TransactionError<anyhow::Error>> {
    let RemoveReviewer { case, reviewer } = request;
    let transaction = outbox
        .transaction("RemoveReviewer")
        .isolation(Isolation::Serializable)
        .deadline(Deadline::after(Duration::from_secs(3)))
        .policy(TxRetry::interactive())
        .command_id(command_id)
        .request(&request);
    transaction
        .run(async |mut tx| {
            let active = "select count(*) from reviewers where case_id = ?1 and active";
            let active: i64 = sqlx::query_scalar(active)
                .bind(case)
                .fetch_one(&mut *tx)
                .await?;
            if active <= 1 {
                return Ok(Answer::LastReviewerStays);
            }
            sqlx::query("update reviewers set active = false where case_id = ?1 and id = ?2")
                .bind(case)
                .bind(reviewer)
                .execute(&mut *tx)
                .await?;
            // Not a mail: the closure may run more than once. The event is part of the transaction.
            outbox
                .publish(&mut tx, &ReviewerRemoved { case, reviewer })
                .await?;
            Ok::<_, anyhow::Error>(Answer::Removed)
        })
        .await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    sqlx::raw_sql(
        "create table reviewers (id integer, case_id integer, active bool);
         insert into reviewers values (1, 7, true), (2, 7, true)",
    )
    .execute(&db.pool)
    .await?;
    let registry = Registry::builder().allow_empty();
    let outbox = Outbox::builder(db.pool.clone())
        .registry(registry)
        .build()
        .await?;

    let request = |reviewer| RemoveReviewer { case: 7, reviewer };
    let (ann, bob) = tokio::try_join!(
        remove(&outbox, "ann-1", request(1)),
        remove(&outbox, "bob-1", request(2)),
    )?;
    say(format!("ann: {ann:?}, bob: {bob:?}"));
    anyhow::ensure!(ann != bob, "one removes, and one is refused");

    // Both did not get the answer and ask again: the same answers, and nothing happens twice.
    anyhow::ensure!(remove(&outbox, "ann-1", request(1)).await? == ann);
    anyhow::ensure!(remove(&outbox, "bob-1", request(2)).await? == bob);
    let mistake = remove(&outbox, "ann-1", request(2)).await;
    let Err(mistake) = mistake else {
        anyhow::bail!("another request under the same id");
    };
    say(format!("{:#}", anyhow::Error::from(mistake)));

    let active: i64 = sqlx::query_scalar("select count(*) from reviewers where active")
        .fetch_one(&db.pool)
        .await?;
    let events: i64 = sqlx::query_scalar("select count(*) from outbox_record")
        .fetch_one(&db.pool)
        .await?;
    say(format!("{active} reviewer stays; {events} event"));
    anyhow::ensure!((active, events) == (1, 1));
    Ok(())
}
