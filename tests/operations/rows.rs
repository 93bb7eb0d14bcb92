//! Brings rows into their states.

use outbox::{Database, OutboxEvent, Scheduled};
use serde::{Deserialize, Serialize};

use outbox_tests::database::Fresh;
pub(crate) use outbox_tests::database::in_seconds;

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
pub(crate) struct OrderCreated {
    pub(crate) order_id: String,
}

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.paid", key = order_id)]
pub(crate) struct OrderPaid {
    pub(crate) order_id: String,
}

/// A key that is not ASCII, with everything that escaping could trip over.
pub(crate) const KEY: &str = "Größe 🚀 'x' \"y\" \\ 日本語 %s ?1 $1";

/// The id of a new pending record.
pub(crate) async fn publish<Db: Database>(db: &Fresh<Db>, key: &str) -> i64 {
    let event = OrderCreated {
        order_id: key.to_owned(),
    };
    publish_event(db, &event).await
}

pub(crate) async fn publish_event<Db: Database>(db: &Fresh<Db>, event: &impl OutboxEvent) -> i64 {
    let mut tx = db.pool.begin().await.unwrap();
    let sent = db.outbox.schedule(event).send(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    let Scheduled::Published { record_id } = sent else {
        panic!("{sent:?}")
    };
    record_id
}

/// Many pending records with keys `{prefix}{0..count}`; their ids, in order.
pub(crate) async fn publish_many<Db: Database>(db: &Fresh<Db>, prefix: &str, count: usize) {
    let events: Vec<OrderCreated> = (0..count)
        .map(|n| OrderCreated {
            order_id: format!("{prefix}{n}"),
        })
        .collect();
    let mut tx = db.pool.begin().await.unwrap();
    db.outbox.publish_all(&mut tx, &events).await.unwrap();
    tx.commit().await.unwrap();
}

/// A delivery of each record that the condition selects: in attempt 4 after 3 failures, due in an
/// hour if retrying.
pub(crate) fn deliver<Db: Database>(
    db: &Fresh<Db>,
    records: &str,
    handler: &str,
    status: &str,
    blocking: bool,
) -> String {
    let (key, past, due) = match Db::NAME {
        "MySQL" => ("`key`", in_seconds(db, -60), in_seconds(db, 3600)),
        _ => ("key", in_seconds(db, -60), in_seconds(db, 3600)),
    };
    let due = if status == "retrying" { &due } else { "null" };
    format!(
        "insert into outbox_delivery (record_id, part, {key}, handler, status, blocking, attempt, failure_count,
    first_failed_at, due_at, error, error_kind, fingerprint)
select id, part, {key}, '{handler}', '{status}', {blocking}, 4, 3, {past}, {due}, 'card declined: 7', 'error', 'declined'
from outbox_record where {records} order by id;
update outbox_record set status = 'split' where ({records}) and status = 'pending'"
    )
}

/// One record whose handler left it with this status.
macro_rules! delivered {
    ($db:ident, $record:expr, $handler:expr, $status:expr, $blocking:expr) => {
        crate::rows::run!(
            $db,
            crate::rows::deliver(
                &$db,
                &format!("id = {}", $record),
                $handler,
                $status,
                $blocking
            )
        )
    };
}
pub(crate) use delivered;

/// Runs SQL.
macro_rules! run {
    ($db:ident, $sql:expr) => {
        sqlx::raw_sql(sqlx::AssertSqlSafe($sql))
            .execute(&$db.pool)
            .await
            .unwrap()
    };
}
pub(crate) use run;

/// The number that SQL gives.
macro_rules! number {
    ($db:ident, $sql:expr) => {
        sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe($sql))
            .fetch_one(&$db.pool)
            .await
            .unwrap()
    };
}
pub(crate) use number;
