//! The kit and handlers that take a `Tx`.

use std::time::Duration;

use outbox::{Metadata, Tx, operations::RecordStatus, outbox_handler, testing::Kit};
use outbox_tests::effects::{Effect, TABLE};
use sqlx::Sqlite;

#[outbox_handler(id = "effect")]
async fn effect(
    event: Effect,
    meta: &Metadata,
    mut tx: Tx<'_, Sqlite>,
) -> Result<(), anyhow::Error> {
    event.write_sql().execute(&mut *tx).await?;
    assert_eq!(tx.attempt(), meta.attempt());
    anyhow::ensure!(meta.is_retry(), "after the write");
    Ok(())
}

#[tokio::test]
async fn the_kit_commits_the_write_of_a_handler_with_its_record() {
    let kit = Kit::new(|builder| builder.handler::<effect>())
        .await
        .unwrap();
    sqlx::query(TABLE).execute(kit.pool()).await.unwrap();
    let event = Effect {
        key: "a".to_owned(),
        n: 7,
    };
    let id = kit.publish(&event).await.unwrap();
    assert_eq!(kit.run_until_idle().await.unwrap().len(), 1);
    let written = "select count(*) from effect";
    let count: i64 = sqlx::query_scalar(written)
        .fetch_one(kit.pool())
        .await
        .unwrap();
    assert_eq!(count, 0, "the failure rolled the write back");
    assert_eq!(kit.run_for(Duration::from_secs(60)).await.unwrap().len(), 1);
    let count: i64 = sqlx::query_scalar(written)
        .fetch_one(kit.pool())
        .await
        .unwrap();
    assert_eq!(count, 1);
    assert_eq!(kit.status(id).await.unwrap(), RecordStatus::Completed);
}
