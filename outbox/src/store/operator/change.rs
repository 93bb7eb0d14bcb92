//! Changes that operators make. Each has the old status as a condition, so that the second of two
//! operators changes nothing. Lists of ids are short: the caller splits them into batches.
//!
//! Deliveries are locked before their records, in the same order as in settling.

use super::Operator;
use crate::{
    operations::{DeliveryStatus, RecordStatus},
    record::Partition,
    store::{
        columns::Cells as _,
        dialect::{Dialect, Statement},
    },
};

/// A record that pruning looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prunable {
    pub(crate) id: i64,
    pub(crate) partition: Partition,
    /// The record finished long enough ago, and no delivery of it is unfinished.
    pub(crate) is_over: bool,
    /// The record was published too recently to be over.
    pub(crate) is_recent: bool,
}

/// The statuses of a delivery that is not finished.
const UNFINISHED: &str = "('waiting', 'retrying', 'failed')";

impl<Db: Dialect> Operator<'_, Db> {
    pub(crate) async fn record_status(
        &mut self,
        record_id: i64,
    ) -> Result<Option<RecordStatus>, sqlx::Error> {
        let record = self.table("record");
        let sql = format!("select status from {record} where id = ?");
        self.first(Statement::new(sql).bind(record_id), |row| {
            RecordStatus::stored(&row.text(0)?)
        })
        .await
    }

    /// Ids and statuses of the record's deliveries, of one handler or of all handlers.
    pub(crate) async fn deliveries_of(
        &mut self,
        record_id: i64,
        handler: Option<&str>,
    ) -> Result<Vec<(i64, DeliveryStatus)>, sqlx::Error> {
        let delivery = self.table("delivery");
        let sql = format!("select id, status from {delivery} where record_id = ?");
        let mut statement = Statement::new(sql).bind(record_id);
        if let Some(handler) = handler {
            statement = statement.push(" and handler = ?").bind(handler);
        }
        self.rows(statement.push(" order by id"), |row| {
            Ok((row.number(0)?, DeliveryStatus::stored(&row.text(1)?)?))
        })
        .await
    }

    /// Makes failed and retrying deliveries due now. Failed deliveries get all their retries again.
    /// Returns how many.
    pub(crate) async fn replay(&mut self, ids: &[i64]) -> Result<u64, sqlx::Error> {
        let now = Db::WORDS.now;
        // Retrying deliveries come first: after the second statement, failed ones are retrying too.
        let set = format!("due_at = {now}");
        let retrying = self.update("delivery", &set, "('retrying')", ids).await?;
        let set = format!(
            "attempt = attempt + 1, failure_count = 0, first_failed_at = null, due_at = {now}, status = 'retrying'"
        );
        Ok(retrying + self.update("delivery", &set, "('failed')", ids).await?)
    }

    /// Makes scheduled records due now. Returns how many.
    pub(crate) async fn make_due_now(&mut self, record_ids: &[i64]) -> Result<u64, sqlx::Error> {
        let set = format!("due_at = {}", Db::WORDS.now);
        self.update("record", &set, "('scheduled')", record_ids)
            .await
    }

    /// Discards unfinished deliveries. Returns how many.
    pub(crate) async fn discard(&mut self, ids: &[i64]) -> Result<u64, sqlx::Error> {
        let now = Db::WORDS.now;
        let set =
            format!("status = 'discarded', blocking = false, due_at = null, finished_at = {now}");
        self.update("delivery", &set, UNFINISHED, ids).await
    }

    /// Discards split records that have no unfinished delivery left. The caller runs it after
    /// [`discard`](Self::discard), in the same transaction.
    pub(crate) async fn close_discarded(&mut self, record_ids: &[i64]) -> Result<(), sqlx::Error> {
        let (no_index, for_update) = (Db::WORDS.no_index, Db::WORDS.for_update);
        // Two operators that discard deliveries of one record at the same time must see each
        // other's change. The second waits for this lock until the first has committed.
        let when = format!("{no_index}t.status = 'split'{for_update}");
        let split = self
            .select("t.id", "record", "id", &when, record_ids)
            .await?;
        // This read does not lock, and in MySQL it is the first such read of the transaction, so it
        // sees all commits before the lock was granted. A locking read could wait for a transaction
        // that waits for this one.
        let when = format!("t.status in {UNFINISHED}");
        let open = self
            .select("t.record_id", "delivery", "record_id", &when, &split)
            .await?;
        let finished: Vec<i64> = split.into_iter().filter(|id| !open.contains(id)).collect();
        let set = format!("status = 'discarded', completed_at = {}", Db::WORDS.now);
        self.update("record", &set, "('split')", &finished).await?;
        Ok(())
    }

    /// Makes the heads of the lanes of these deliveries due now if they are waiting.
    pub(crate) async fn release_lane_heads(&mut self, ids: &[i64]) -> Result<(), sqlx::Error> {
        let (delivery, in_lane) = (self.table("delivery"), Db::in_lane("h", "t"));
        // Only waiting heads are updated below. In MySQL, an update locks each row that it reads, and
        // the owner of another head may be waiting for this transaction.
        let head = format!(
            "(select case when h.status = 'waiting' then h.id end from {delivery} h where {in_lane} limit 1)"
        );
        let heads = self.select(&head, "delivery", "id", "true", ids).await?;
        let (no_index, blocking) = (Db::WORDS.no_index, Db::WORDS.blocking);
        let set = format!("status = 'retrying', due_at = {}", Db::WORDS.now);
        let waiting = format!("('waiting') and {no_index}{blocking}");
        self.update("delivery", &set, &waiting, &heads).await?;
        Ok(())
    }

    /// Discards records that no handler has started. Returns how many.
    pub(crate) async fn discard_records(&mut self, record_ids: &[i64]) -> Result<u64, sqlx::Error> {
        let set = format!("status = 'discarded', completed_at = {}", Db::WORDS.now);
        let not_started = "('pending', 'scheduled', 'unhandled')";
        self.update("record", &set, not_started, record_ids).await
    }

    /// Pauses a handler. The dispatchers start no attempt of it until it is resumed.
    pub(crate) async fn pause(&mut self, handler: &str) -> Result<(), sqlx::Error> {
        let (pause, now) = (self.table("pause"), Db::WORDS.now);
        let (insert, if_new) = Db::WORDS.insert_new;
        let sql = format!("{insert} into {pause} (handler, paused_at) values (?, {now}){if_new}");
        self.execute(Statement::new(sql).bind(handler)).await?;
        Ok(())
    }

    /// The ids of paused handlers.
    pub(crate) async fn paused(&mut self) -> Result<Vec<String>, sqlx::Error> {
        let sql = format!("select handler from {}", self.table("pause"));
        self.rows(Statement::new(sql), |row| row.text(0)).await
    }

    /// Ends a pause. Returns whether there was one.
    pub(crate) async fn resume(&mut self, handler: &str) -> Result<bool, sqlx::Error> {
        let sql = format!("delete from {} where handler = ?", self.table("pause"));
        let ended = self.execute(Statement::new(sql).bind(handler)).await?;
        Ok(ended > 0)
    }

    /// The next `limit` records after this id, in the order of their ids. A record that finished less
    /// than `micros` microseconds ago is not over.
    pub(crate) async fn prunable(
        &mut self,
        after: i64,
        micros: i64,
        limit: i64,
    ) -> Result<Vec<Prunable>, sqlx::Error> {
        let (record, delivery, ago) = (
            self.table("record"),
            self.table("delivery"),
            Db::micros_ago(),
        );
        // `count`: with `not exists`, PostgreSQL may read all deliveries for each batch.
        let sql = format!(
            "select r.id, r.part,
    coalesce(r.status in ('completed', 'discarded') and r.completed_at <= {ago} and 0 = (
        select count(*) from {delivery} d where d.record_id = r.id and d.status in {UNFINISHED}
    ), false),
    r.created_at > {ago}
from {record} r where r.id > ? order by r.id limit ?"
        );
        let statement = Statement::new(sql);
        let statement = statement.bind(micros).bind(micros).bind(after).bind(limit);
        self.rows(statement, |row| {
            Ok(Prunable {
                id: row.number(0)?,
                partition: row.partition(1)?,
                is_over: row.flag(2)?,
                is_recent: row.flag(3)?,
            })
        })
        .await
    }

    /// Deletes finished records with their deliveries and failures, in a transaction. Returns how
    /// many records.
    pub(crate) async fn delete(&mut self, record_ids: &[i64]) -> Result<u64, sqlx::Error> {
        let finished = "status in ('completed', 'discarded')";
        let mut deleted = 0;
        for (table, column, when) in [
            ("delivery", "record_id", finished),
            ("failure", "record_id", "true"),
            ("record", "id", finished),
        ] {
            let sql = Db::delete_given(&self.table(table), column, when);
            deleted = self.execute(Statement::new(sql).bind(record_ids)).await?;
        }
        Ok(deleted)
    }

    /// The expression `id` for rows of table `t` whose `column` is in `ids`. Nulls are left out.
    async fn select(
        &mut self,
        id: &str,
        table: &str,
        column: &str,
        when: &str,
        ids: &[i64],
    ) -> Result<Vec<i64>, sqlx::Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let sql = Db::select_given(id, &self.table(table), column, when);
        let found = self
            .rows(Statement::new(sql).bind(ids), |row| row.optional_number(0))
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Changes given rows that have one of these statuses. Returns how many.
    async fn update(
        &mut self,
        table: &str,
        set: &str,
        statuses: &str,
        ids: &[i64],
    ) -> Result<u64, sqlx::Error> {
        if ids.is_empty() {
            return Ok(0);
        }
        let when = format!("{}status in {statuses}", Db::WORDS.no_index);
        let sql = Db::update_given(&self.table(table), set, &when);
        self.execute(Statement::new(sql).bind(ids)).await
    }
}
