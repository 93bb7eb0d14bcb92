//! SQL that writes rows in the states that tests need.

use outbox::{Database, OutboxEvent};
use outbox_tests::database::Fresh;
pub(crate) use outbox_tests::database::in_seconds;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
pub(crate) struct OrderCreated {
    pub(crate) order_id: String,
}

/// Publishes records with these keys. Ids start at 1.
pub(crate) async fn publish<Db: Database>(db: &Fresh<Db>, keys: &[&str]) {
    let order = |key: &&str| OrderCreated {
        order_id: (*key).to_owned(),
    };
    let events: Vec<OrderCreated> = keys.iter().map(order).collect();
    let mut tx = db.pool.begin().await.unwrap();
    db.outbox.publish_all(&mut tx, &events).await.unwrap();
    tx.commit().await.unwrap();
}

/// Two statements: the first inserts a delivery for each record that the condition `records`
/// selects, in attempt 4 after 3 failures. The second gives these records the status `split`.
pub(crate) fn deliver<Db: Database>(
    db: &Fresh<Db>,
    records: &str,
    handler: &str,
    status: &str,
    blocking: bool,
) -> [String; 2] {
    let key = if Db::NAME == "MySQL" { "`key`" } else { "key" };
    let due = match status {
        "scheduled" | "retrying" => in_seconds(db, 3600),
        _ => "null".to_owned(),
    };
    [
        format!(
            "insert into outbox_delivery (record_id, part, {key}, handler, status, blocking, attempt, failure_count,
    due_at, error, error_kind, fingerprint)
select id, part, {key}, '{handler}', '{status}', {blocking}, 4, 3, {due}, 'card declined: 7', 'error', 'declined'
from outbox_record where {records} order by id"
        ),
        format!("update outbox_record set status = 'split' where ({records}) and status = 'pending'"),
    ]
}

/// Runs several statements.
macro_rules! execute {
    ($db:ident, $statements:expr) => {
        for statement in $statements {
            database::execute(&$db.pool, &statement).await;
        }
    };
}
pub(crate) use execute;

/// All columns that a command could change, as one text per row.
macro_rules! everything {
    ($db:ident) => {{
        // The type of texts is `char` in MySQL and `text` in the others.
        let text = if database::NOW.starts_with("utc") {
            "char"
        } else {
            "text"
        };
        let cast = |column: &str| format!("coalesce(cast({column} as {text}), '-')");
        let joined = |columns: &[&str]| {
            let cells: Vec<String> = columns.iter().map(|column| cast(column)).collect();
            match text {
                "char" => format!("concat_ws(' ', {})", cells.join(", ")),
                _ => cells.join(" || ' ' || "),
            }
        };
        let mut all = Vec::new();
        for (table, columns) in [
            ("record", &["id", "status", "due_at", "completed_at"][..]),
            (
                "delivery",
                &[
                    "id",
                    "status",
                    "blocking",
                    "attempt",
                    "failure_count",
                    "due_at",
                    "finished_at",
                ],
            ),
            ("pause", &["handler", "paused_at"]),
        ] {
            let line = joined(columns);
            let sql = format!("select {line} from outbox_{table} order by 1");
            all.extend(database::texts(&$db.pool, &sql).await);
        }
        all
    }};
}
pub(crate) use everything;
