//! SQL that writes rows in the states that tests need.

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

/// A key with characters outside of ASCII and with characters that need escaping.
pub(crate) const KEY: &str = "Größe 🚀 'x' \"y\" \\ 日本語 %s ?1 $1";

/// Publishes a record and returns its id.
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

/// Publishes `count` records with the keys `{prefix}0`, `{prefix}1` and so on.
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

/// SQL that inserts a delivery for each record that the condition `records` selects, in attempt 4
/// after 3 failures. A retrying delivery is due in one hour.
pub(crate) fn deliver<Db: Database>(
    db: &Fresh<Db>,
    records: &str,
    handler: &str,
    status: &str,
    blocking: bool,
) -> String {
    let key = if Db::NAME == "MySQL" { "`key`" } else { "key" };
    let past = in_seconds(db, -60);
    let due = if status == "retrying" {
        in_seconds(db, 3600)
    } else {
        "null".to_owned()
    };
    format!(
        "insert into outbox_delivery (record_id, part, {key}, handler, status, blocking, attempt, failure_count,
    first_failed_at, due_at, error, error_kind, fingerprint)
select id, part, {key}, '{handler}', '{status}', {blocking}, 4, 3, {past}, {due}, 'card declined: 7', 'error', 'declined'
from outbox_record where {records} order by id;
update outbox_record set status = 'split' where ({records}) and status = 'pending'"
    )
}

/// Inserts a delivery with this status for one record.
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

/// The number that a query returns.
macro_rules! number {
    ($db:ident, $sql:expr) => {
        sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe($sql))
            .fetch_one(&$db.pool)
            .await
            .unwrap()
    };
}
pub(crate) use number;
