//! The statements that list records, deliveries and lanes for operators. Only
//! [`inspect`](Operator::inspect) reads payloads.

use super::{
    Operator,
    rows::{blocked_lane, delivery, failure, inspected, listed, listed_delivery},
};
use crate::{
    operations::{BlockedLane, Cursor, DeliveryStatus, Inspected, Listed, Order, Status},
    store::{
        columns::Cells as _,
        dialect::{Dialect, Statement},
        statements::SqlFile,
    },
};

/// A [`Filter`](crate::operations::Filter) without its status, and the page of its result to read.
/// Ids are ids of deliveries where deliveries are listed, otherwise ids of records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListQuery<'a> {
    pub(crate) event: Option<&'a str>,
    pub(crate) handler: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    pub(crate) fingerprint: Option<&'a str>,
    /// In microseconds.
    pub(crate) older_than: Option<i64>,
    /// In microseconds.
    pub(crate) failed_since: Option<i64>,
    /// By the time of the failure only where deliveries are listed.
    pub(crate) order: Order,
    pub(crate) newest_first: bool,
    /// Only what comes after this place in the order.
    pub(crate) after: Option<Cursor>,
    pub(crate) limit: i64,
}

impl ListQuery<'_> {
    /// Adds the conditions on record `r`.
    fn of_record<Db: Dialect>(&self, mut statement: Statement<Db>) -> Statement<Db> {
        if let Some(event) = self.event {
            statement = statement.push(" and r.event = ?").bind(event);
        }
        if let Some(key) = self.key {
            let condition = format!(" and r.{} = ?", Db::WORDS.key);
            statement = statement.push(&condition).key(key);
        }
        if let Some(micros) = self.older_than {
            let condition = format!(" and r.created_at <= {}", Db::micros_ago());
            statement = statement.push(&condition).bind(micros);
        }
        statement
    }

    /// Adds the conditions on delivery `d`.
    fn of_delivery<Db: Dialect>(&self, mut statement: Statement<Db>) -> Statement<Db> {
        if let Some(handler) = self.handler {
            statement = statement.push(" and d.handler = ?").bind(handler);
        }
        if let Some(fingerprint) = self.fingerprint {
            let condition = " and d.fingerprint = ?";
            statement = statement.push(condition).bind(fingerprint);
        }
        if let Some(micros) = self.failed_since {
            let condition = format!(" and d.failed_at >= {}", Db::micros_ago());
            statement = statement.push(&condition).bind(micros);
        }
        statement
    }

    /// Whether a condition concerns deliveries.
    fn has_delivery_conditions(&self) -> bool {
        self.handler.is_some() || self.fingerprint.is_some() || self.failed_since.is_some()
    }

    /// Adds the start of the page, the order and the limit. `id` is the column of ids.
    fn page<Db: Dialect>(&self, mut statement: Statement<Db>, id: &str) -> Statement<Db> {
        let (beyond, direction) = if self.newest_first {
            ("<", "desc")
        } else {
            (">", "asc")
        };
        let order = match self.order {
            Order::Published => {
                let start = if self.newest_first { i64::MAX } else { 0 };
                let after = self.after.map_or(start, |cursor| cursor.id);
                let condition = format!(" and {id} {beyond} ?");
                statement = statement.push(&condition).bind(after);
                format!("{id} {direction}")
            }
            Order::Failed => {
                statement = statement.push(" and d.failed_at is not null");
                if let Some((failed_at, id)) = self.after.and_then(Cursor::failure) {
                    // Not a comparison of rows: MySQL would not use the index for it.
                    let time = Db::time_from_micros();
                    let condition = format!(
                        " and d.failed_at {beyond}= {time} and (d.failed_at {beyond} {time} or d.id {beyond} ?)"
                    );
                    statement = statement.push(&condition);
                    statement = statement.bind(failed_at).bind(failed_at).bind(id);
                }
                format!("d.failed_at {direction}, d.id {direction}")
            }
        };
        let order = format!(" order by {order} limit ?");
        statement.push(&order).bind(self.limit)
    }
}

/// Whether the index of failed deliveries has the rows of this list in their order.
fn reads_failure_index(status: Option<Status>, query: &ListQuery<'_>) -> bool {
    status == Some(DeliveryStatus::Failed.into()) && query.order == Order::Failed
}

/// The columns of [`listed`]; `r` is the table.
fn record_columns<Db: Dialect>() -> String {
    let micros = |time| Db::micros_between(Db::WORDS.epoch, time);
    format!(
        "r.id, r.event_id, r.event, {}, r.status, {}, {}, {}",
        Db::key_text("r"),
        micros("r.created_at"),
        micros("r.due_at"),
        micros("r.completed_at")
    )
}

/// The columns of [`delivery`]; `d` is the table.
fn delivery_columns<Db: Dialect>() -> String {
    let micros = |time| Db::micros_between(Db::WORDS.epoch, time);
    format!(
        "d.id, d.handler, d.status, d.blocking, d.attempt, d.failure_count, {}, {}, {}, {}, d.error_kind, d.fingerprint, d.error",
        micros("d.first_failed_at"),
        micros("d.failed_at"),
        micros("d.due_at"),
        micros("d.finished_at")
    )
}

impl<Db: Dialect> Operator<'_, Db> {
    /// Lists deliveries if the status is one of deliveries. Otherwise lists records with this status, or
    /// with any status.
    pub(crate) async fn list(
        &mut self,
        status: Option<Status>,
        query: ListQuery<'_>,
    ) -> Result<Vec<Listed>, sqlx::Error> {
        let columns = record_columns::<Db>();
        if let Some(Status::Delivery(_)) = status {
            let columns = format!("{columns}, {}", delivery_columns::<Db>());
            let statement = self.selected(&columns, status, query);
            if !reads_failure_index(status, &query) {
                return self.rows(statement, listed_delivery).await;
            }
            let rows = Db::with_index_order(self.connection, statement.query()?).await?;
            return rows.iter().map(listed_delivery).collect();
        }
        let statement = self.selected(&columns, status, query);
        self.rows(statement, listed).await
    }

    /// The number of rows that [`list`](Self::list) selects.
    pub(crate) async fn count(
        &mut self,
        status: Option<Status>,
        query: ListQuery<'_>,
    ) -> Result<u64, sqlx::Error> {
        let id = match status {
            Some(Status::Delivery(_)) => "d.id",
            Some(Status::Record(_)) | None => "r.id",
        };
        let statement = self.selected(id, status, query);
        let statement = statement.inside("select count(*) from (", ") selected");
        let count = self.first(statement, |row| row.total(0));
        Ok(count.await?.unwrap_or(0))
    }

    /// The `select` of a query. The status is part of the text, so that the planner can use the partial
    /// index of the status.
    fn selected(
        &self,
        columns: &str,
        status: Option<Status>,
        query: ListQuery<'_>,
    ) -> Statement<Db> {
        let (record, delivery) = (self.table("record"), self.table("delivery"));
        let index = match status {
            Some(status) if reads_failure_index(Some(status), &query) => {
                Db::index_path(self.names, status).0
            }
            _ => String::new(),
        };
        let (from, id, status) = match status {
            Some(Status::Delivery(status)) => (
                format!("{delivery} d{index} join {record} r on r.id = d.record_id"),
                "d.id",
                format!("d.status = '{status}'"),
            ),
            Some(Status::Record(status)) => (
                format!("{record} r"),
                "r.id",
                format!("r.status = '{status}'"),
            ),
            None => (format!("{record} r"), "r.id", "true".to_owned()),
        };
        let statement = Statement::new(format!("select {columns} from {from} where {status}"));
        let mut statement = query.of_record(statement);
        if id == "d.id" {
            statement = query.of_delivery(statement);
        } else if query.has_delivery_conditions() {
            statement = statement.push(&format!(
                " and exists (select 1 from {delivery} d where d.record_id = r.id"
            ));
            statement = query.of_delivery(statement).push(")");
        }
        query.page(statement, id)
    }

    /// One record with its deliveries and failures.
    pub(crate) async fn inspect(
        &mut self,
        record_id: i64,
    ) -> Result<Option<Inspected>, sqlx::Error> {
        let files = SqlFile::read::<Db>(Db::WORDS.files, self.names);
        let sql = format!(
            "select r.status, {}, {}, {} as dedup, {} from {} r where r.id = ?",
            Db::micros_between(Db::WORDS.epoch, "r.due_at"),
            Db::micros_between(Db::WORDS.epoch, "r.completed_at"),
            Db::key_as_text("r.dedup_key"),
            files.fragment("record_columns"),
            self.table("record")
        );
        let record = self.first(Statement::new(sql).bind(record_id), inspected);
        let Some(mut found) = record.await? else {
            return Ok(None);
        };

        let (table, columns) = (self.table("delivery"), delivery_columns::<Db>());
        let sql = format!("select {columns} from {table} d where d.record_id = ? order by d.id");
        let statement = Statement::new(sql).bind(record_id);
        found.deliveries = self.rows(statement, |row| delivery(row, 0)).await?;

        let table = self.table("failure");
        let failed_at = Db::micros_between(Db::WORDS.epoch, "f.failed_at");
        let sql = format!(
            "select f.handler, f.attempt, {failed_at}, f.kind, f.fingerprint, f.error
from {table} f where f.record_id = ? order by f.handler, f.attempt"
        );
        let statement = Statement::new(sql).bind(record_id);
        found.failures = self.rows(statement, failure).await?;
        Ok(Some(found))
    }

    /// The first `query.limit` lanes whose head is not `waiting` and has this status, or any status. The
    /// longest lanes come first.
    pub(crate) async fn blocked_lanes(
        &mut self,
        status: Option<DeliveryStatus>,
        query: ListQuery<'_>,
    ) -> Result<Vec<BlockedLane>, sqlx::Error> {
        let (record, delivery) = (self.table("record"), self.table("delivery"));
        let (key_text, key, blocking) = (Db::key_text("d"), Db::WORDS.key, Db::WORDS.blocking);
        let until_due = Db::micros_between(Db::WORDS.now, "d.due_at");
        let mut statement = Statement::new(format!(
            "select {key_text}, d.handler, d.record_id, d.status, d.attempt, d.error, {until_due}, g.behind
from (
    select min(id) as head, count(*) - 1 as behind from {delivery} where {blocking} group by part, {key}, handler
) g
join {delivery} d on d.id = g.head
join {record} r on r.id = d.record_id
where d.status <> 'waiting'"
        ));
        if let Some(status) = status {
            statement = statement.push(&format!(" and d.status = '{status}'"));
        }
        let statement = query.of_delivery(query.of_record(statement));
        let statement = statement.push(" order by g.behind desc, d.id limit ?");
        self.rows(statement.bind(query.limit), blocked_lane).await
    }
}
