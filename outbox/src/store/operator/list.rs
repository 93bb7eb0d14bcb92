//! Records, deliveries and lanes that a person reads. Only [`inspect`](Operator::inspect) reads
//! payloads.

use super::{
    Operator,
    rows::{blocked_lane, delivery, failure, inspected, listed, listed_delivery},
};
use crate::{
    operations::{BlockedLane, DeliveryStatus, Inspected, Listed, Status},
    store::{
        columns::Cells as _,
        dialect::{Dialect, Statement},
        statements::SqlFile,
    },
};

/// A [`Filter`](crate::operations::Filter) without its status, and the part of its result that is
/// wanted. Ids are those of deliveries where deliveries are listed, else those of records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListQuery<'a> {
    pub(crate) event: Option<&'a str>,
    pub(crate) handler: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    pub(crate) fingerprint: Option<&'a str>,
    /// In microseconds.
    pub(crate) older_than: Option<i64>,
    /// The highest ids first, and only those below `after`; else the lowest, above it.
    pub(crate) newest_first: bool,
    pub(crate) after: i64,
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
        statement
    }
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
        "d.id, d.handler, d.status, d.blocking, d.attempt, d.failure_count, {}, {}, {}, d.error_kind, d.fingerprint, d.error",
        micros("d.first_failed_at"),
        micros("d.due_at"),
        micros("d.finished_at")
    )
}

impl<Db: Dialect> Operator<'_, Db> {
    /// Deliveries with the status of a delivery; else records with this status, or with any.
    pub(crate) async fn list(
        &mut self,
        status: Option<Status>,
        query: ListQuery<'_>,
    ) -> Result<Vec<Listed>, sqlx::Error> {
        let columns = record_columns::<Db>();
        if let Some(Status::Delivery(_)) = status {
            let columns = format!("{columns}, {}", delivery_columns::<Db>());
            let statement = self.selected(&columns, status, query);
            return self.rows(statement, listed_delivery).await;
        }
        let statement = self.selected(&columns, status, query);
        self.rows(statement, listed).await
    }

    /// How many there are of what [`list`](Self::list) selects.
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

    /// What the query selects. The status is in the text, so that the planner sees which index
    /// has it.
    fn selected(
        &self,
        columns: &str,
        status: Option<Status>,
        query: ListQuery<'_>,
    ) -> Statement<Db> {
        let (record, delivery) = (self.table("record"), self.table("delivery"));
        let (from, id, status) = match status {
            Some(Status::Delivery(status)) => (
                format!("{delivery} d join {record} r on r.id = d.record_id"),
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
        } else if query.handler.is_some() || query.fingerprint.is_some() {
            statement = statement.push(&format!(
                " and exists (select 1 from {delivery} d where d.record_id = r.id"
            ));
            statement = query.of_delivery(statement).push(")");
        }
        let (beyond, order) = if query.newest_first {
            ("<", "desc")
        } else {
            (">", "asc")
        };
        statement
            .push(&format!(
                " and {id} {beyond} ? order by {id} {order} limit ?"
            ))
            .bind(query.after)
            .bind(query.limit)
    }

    /// Everything of one record.
    pub(crate) async fn inspect(
        &mut self,
        record_id: i64,
    ) -> Result<Option<Inspected>, sqlx::Error> {
        let files = SqlFile::read::<Db>(Db::WORDS.files, self.names);
        let sql = format!(
            "select r.status, {}, {}, {} from {} r where r.id = ?",
            Db::micros_between(Db::WORDS.epoch, "r.due_at"),
            Db::micros_between(Db::WORDS.epoch, "r.completed_at"),
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

    /// The first `query.limit` lanes whose head is not about to run and has this status, or any,
    /// the longest first.
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
