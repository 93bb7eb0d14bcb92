//! The statements that write an exported record. All of them run in the transaction of the caller.

use super::Operator;
use crate::{
    operations::{Delivery, Inspected},
    record::Partition,
    store::{
        call::Param,
        columns::Cells as _,
        dialect::{Dialect, Statement},
        publish::{headers_as_json, retries_as_number},
    },
};

impl<Db: Dialect> Operator<'_, Db> {
    pub(crate) async fn has_dedup_key(&mut self, key: &str) -> Result<bool, sqlx::Error> {
        let sql = format!(
            "select id from {} where dedup_key = ?",
            self.table("record")
        );
        let found = self.first(Statement::new(sql).key(key), |row| row.number(0));
        Ok(found.await?.is_some())
    }

    pub(crate) async fn has_delivery(&mut self, id: i64) -> Result<bool, sqlx::Error> {
        let sql = format!("select id from {} where id = ?", self.table("delivery"));
        let found = self.first(Statement::new(sql).bind(id), |row| row.number(0));
        Ok(found.await?.is_some())
    }

    /// The partition of a key. The tables have a lease for each partition.
    pub(crate) async fn partition_of(
        &mut self,
        key: &str,
    ) -> Result<Option<Partition>, sqlx::Error> {
        let sql = format!("select count(*) from {}", self.table("lease"));
        let count = self.first(Statement::new(sql), |row| row.number(0)).await?;
        let count = u16::try_from(count.unwrap_or(0)).unwrap_or(u16::MAX);
        Ok((count > 0).then(|| Partition::of(key, count)))
    }

    /// Takes a partition that has no owner, or whose lease has expired, and gives it back, like an instance
    /// that takes and releases it: an earlier owner can no longer write, and the next one reads
    /// everything. Until this transaction ends, no instance can take the partition. Returns whether the
    /// partition was free.
    pub(crate) async fn free_partition(
        &mut self,
        partition: Partition,
    ) -> Result<bool, sqlx::Error> {
        let (lease, now) = (self.table("lease"), Db::WORDS.now);
        let sql = format!(
            "update {lease} set owner = null, epoch = epoch + 1, expires_at = null
where part = ? and (owner is null or expires_at <= {now})"
        );
        let statement = Statement::new(sql).bind(Param::Partition(partition));
        Ok(self.execute(statement).await? > 0)
    }

    /// Writes the record with its deliveries and failures.
    pub(crate) async fn restore(
        &mut self,
        inspected: &Inspected,
        partition: Partition,
    ) -> Result<(), sqlx::Error> {
        let record = &inspected.record;
        let (table, key, time) = (self.table("record"), Db::WORDS.key, Db::time_from_micros());
        let sql = format!(
            "insert into {table} (id, part, status, {key}, event, version, event_id, payload, headers, max_retries,
    dedup_key, created_at, due_at, completed_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {time}, {time}, {time})"
        );
        let headers = headers_as_json(record);
        let statement = Statement::new(sql)
            .bind(record.id)
            .bind(Param::Partition(partition))
            .bind(inspected.status.as_str())
            .key(&record.key)
            .bind(&*record.event)
            .bind(i64::from(record.version))
            .bind(record.event_id)
            .bind(&*record.payload)
            .bind(headers.as_deref())
            .bind(retries_as_number(record))
            .bind(Param::Key(inspected.dedup_key.as_deref()))
            .bind(record.created_at.as_microsecond())
            .bind(inspected.due_at.map(|at| at.as_microsecond()))
            .bind(inspected.completed_at.map(|at| at.as_microsecond()));
        self.execute(statement).await?;
        for delivery in &inspected.deliveries {
            self.restore_delivery(inspected, delivery, partition)
                .await?;
        }
        let table = self.table("failure");
        let sql = format!(
            "insert into {table} (record_id, handler, attempt, failed_at, kind, fingerprint, error)
values (?, ?, ?, {time}, ?, ?, ?)"
        );
        for failure in &inspected.failures {
            let statement = Statement::new(&*sql)
                .bind(record.id)
                .bind(&*failure.handler)
                .bind(i64::from(failure.attempt))
                .bind(failure.failed_at.as_microsecond())
                .bind(&*failure.kind)
                .bind(&*failure.fingerprint)
                .bind(&*failure.error);
            self.execute(statement).await?;
        }
        Ok(())
    }

    /// Writes one delivery. Without an id, the database gives it one, behind the others of its lane.
    async fn restore_delivery(
        &mut self,
        inspected: &Inspected,
        delivery: &Delivery,
        partition: Partition,
    ) -> Result<(), sqlx::Error> {
        let (table, key) = (self.table("delivery"), Db::WORDS.key);
        let time = Db::time_from_micros();
        let (column, value) = if delivery.id > 0 {
            ("id, ", "?, ")
        } else {
            ("", "")
        };
        let mut statement = Statement::new(format!(
            "insert into {table} ({column}record_id, part, {key}, handler, status, blocking, attempt, failure_count,
    first_failed_at, failed_at, due_at, finished_at, error_kind, fingerprint, error)
values ({value}?, ?, ?, ?, ?, ?, ?, ?, {time}, {time}, {time}, {time}, ?, ?, ?)"
        ));
        if delivery.id > 0 {
            statement = statement.bind(delivery.id);
        }
        let micros = |at: Option<jiff::Timestamp>| at.map(|at| at.as_microsecond());
        let statement = statement
            .bind(inspected.record.id)
            .bind(Param::Partition(partition))
            .key(&inspected.record.key)
            .bind(&*delivery.handler)
            .bind(delivery.status.as_str())
            .bind(delivery.blocking)
            .bind(i64::from(delivery.attempt))
            .bind(i64::from(delivery.failure_count))
            .bind(micros(delivery.first_failed_at))
            .bind(micros(delivery.failed_at))
            .bind(micros(delivery.due_at))
            .bind(micros(delivery.finished_at))
            .bind(delivery.kind.as_deref())
            .bind(delivery.fingerprint.as_deref())
            .bind(delivery.error.as_deref());
        self.execute(statement).await?;
        Ok(())
    }
}
