//! The statements that read instances and the version of the schema.

use std::time::Duration;

use super::Operator;
use crate::{
    operations::Instance,
    store::{
        columns::Cells as _,
        dialect::{Dialect, Statement},
    },
};

impl<Db: Dialect> Operator<'_, Db> {
    /// All instances, the oldest first.
    pub(crate) async fn instances(&mut self) -> Result<Vec<Instance>, sqlx::Error> {
        let (instances, lease) = (self.table("instance"), self.table("lease"));
        let started = Db::micros_between(Db::WORDS.epoch, "i.started_at");
        let left = Db::micros_between(Db::WORDS.now, "i.expires_at");
        let sql = format!(
            "select i.id, {started}, {left}, (select count(*) from {lease} l where l.owner = i.id)
from {instances} i order by i.started_at, i.id"
        );
        self.rows(Statement::new(sql), |row| {
            let left = u64::try_from(row.number(2)?).ok().filter(|left| *left > 0);
            Ok(Instance {
                id: row.uuid(0)?,
                started_at: row.time_from_micros(1)?,
                expires_in: left.map(Duration::from_micros),
                partitions: row.total(3)?,
            })
        })
        .await
    }

    /// The newest migration that was applied.
    pub(crate) async fn schema_version(&mut self) -> Result<Option<i64>, sqlx::Error> {
        let sql = format!("select max(version) from {}", self.table("schema"));
        let version = self.first(Statement::new(sql), |row| row.optional_number(0));
        Ok(version.await?.flatten())
    }
}
