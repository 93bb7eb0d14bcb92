//! The events that a transaction has published.

use outbox::{OutboxEvent as _, operations::RecordStatus};

use crate::shop::{Forgotten, Placed, Script, kit, placed, publish, run};

#[tokio::test]
async fn the_kit_shows_only_the_events_that_a_transaction_published() {
    let kit = kit(Script::succeeds()).await;
    publish(&kit, "before", 1).await;
    let mut tx = kit.pool().begin().await.expect("a transaction");
    let none = kit.published::<Placed>(&mut tx).await;
    assert_eq!(none.expect("events"), []);
    for n in [2, 3] {
        let sent = kit.outbox().publish(&mut tx, &placed("a", n)).await;
        sent.expect("a record");
    }
    let sent = kit.outbox().publish(&mut tx, &Forgotten {}).await;
    sent.expect("a record");
    let event = placed("a", 4);
    let later = kit
        .outbox()
        .schedule(&event)
        .delay(std::time::Duration::from_secs(9));
    later
        .header("tenant", "acme")
        .send(&mut tx)
        .await
        .map(drop)
        .expect("a record");

    let events = kit.published::<Placed>(&mut tx).await.expect("events");
    assert_eq!(events, [2, 3, 4].map(|n| placed("a", n)));
    let records = kit.published_records(&mut tx).await.expect("records");
    let names: Vec<&str> = records.iter().map(|record| &*record.event).collect();
    let name = Placed::NAME;
    assert_eq!(names, [name, name, Forgotten::NAME, name]);
    assert_eq!(records[3].headers["tenant"], "acme");
    // Before the commit no other connection sees them.
    assert_eq!(kit.committed::<Placed>().await.expect("events").len(), 1);
    tx.commit().await.expect("a commit");
    assert_eq!(kit.committed::<Placed>().await.expect("events").len(), 4);
}

#[tokio::test]
async fn an_event_of_a_rolled_back_transaction_is_never_handled() {
    let kit = kit(Script::succeeds()).await;
    let mut tx = kit.begin().await.expect("a transaction");
    let sent = kit.outbox().publish(&mut tx, &placed("a", 1)).await;
    sent.expect("a record");
    let events = kit.published::<Placed>(&mut tx).await.expect("events");
    assert_eq!(events, [placed("a", 1)]);
    tx.rollback().await.expect("a rollback");
    assert_eq!(run(&kit).await, []);
    assert_eq!(kit.committed::<Placed>().await.expect("events"), []);
}

#[tokio::test]
async fn an_event_without_a_handler_stays_unhandled() {
    let kit = kit(Script::succeeds()).await;
    let id = kit.publish(&Forgotten {}).await.expect("a record");
    assert_eq!(run(&kit).await, []);
    assert_eq!(
        kit.status(id).await.expect("a status"),
        RecordStatus::Unhandled
    );
}
