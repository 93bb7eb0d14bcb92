//! Retried transactions on MySQL.
//!
//! A deadlock ends the transaction. MySQL would then commit each later statement of the closure at
//! once. So `autocommit` is off during the closure. A savepoint shows at the end whether the
//! transaction is still the one that began.

use std::time::Duration;

use sqlx::{
    Executor as _, MySql, MySqlConnection, MySqlPool, Row as _, Transaction, error::DatabaseError,
    mysql::MySqlDatabaseError, pool::PoolConnection,
};

use crate::{
    store::{NotCommitted, TransactSql, transaction::execute_elsewhere, trusted},
    transaction::{Isolation, Reason},
};

const RESTORE: &str = "set autocommit = @outbox_autocommit";

impl TransactSql for MySql {
    const CHANGES_SESSION: bool = true;

    /// The id of the connection.
    type Interrupt = u64;

    fn begin_sql(isolation: Option<Isolation>, read_only: bool) -> String {
        let level = isolation.map_or(String::new(), |level| {
            format!("set transaction isolation level {level}; ")
        });
        let mode = if read_only { " read only" } else { "" };
        // The isolation level holds for the next transaction only, so it is set last.
        format!(
            "set @outbox_autocommit = @@autocommit; set autocommit = 0; {level}start transaction{mode}; savepoint outbox_transaction"
        )
    }

    async fn begin_attempt(
        mut connection: PoolConnection<Self>,
        begin_sql: String,
        _: Option<Duration>,
    ) -> Result<(Transaction<'static, Self>, u64), sqlx::Error> {
        // Not `max_execution_time`, which does not limit a statement that writes, and not
        // `innodb_lock_wait_timeout`, which limits only waiting, in whole seconds.
        let asked = connection
            .fetch_one("select cast(connection_id() as unsigned)")
            .await?;
        let id = asked.try_get(0)?;
        let transaction = Transaction::begin(connection, Some(trusted(begin_sql))).await?;
        Ok((transaction, id))
    }

    /// A user may end the statements of its own connections without a privilege.
    async fn interrupt(pool: &MySqlPool, id: &u64) -> Result<(), sqlx::Error> {
        execute_elsewhere!(pool, MySqlConnection, format!("kill query {id}"))
    }

    async fn commit(
        mut transaction: Transaction<'static, Self>,
        _: bool,
    ) -> Result<(), NotCommitted> {
        let connection: &mut MySqlConnection = &mut transaction;
        let alive = connection
            .execute("release savepoint outbox_transaction")
            .await;
        if let Err(source) = alive {
            // The error of the savepoint is the cause. An error of the rollback adds nothing.
            let _ = Self::rollback(transaction).await;
            return Err(NotCommitted::before(source));
        }
        // Not `transaction.commit()`, which would return the connection with `autocommit` off.
        if let Err(source) = connection.execute("commit").await {
            let _ = Self::rollback(transaction).await;
            return Err(NotCommitted::during(source));
        }
        // The commit succeeded. If the session cannot be restored, the pool finds that out.
        let _ = Self::rollback(transaction).await;
        Ok(())
    }

    async fn rollback(mut transaction: Transaction<'static, Self>) -> Result<(), sqlx::Error> {
        let connection: &mut MySqlConnection = &mut transaction;
        // Rollback first: switching `autocommit` on commits an open transaction.
        connection.execute("rollback").await?;
        connection.execute(RESTORE).await?;
        transaction.rollback().await
    }

    fn reason(error: &dyn DatabaseError) -> Reason {
        let number = error.try_downcast_ref().map(MySqlDatabaseError::number);
        match number.unwrap_or(0) {
            1213 | 1614 => Reason::Deadlock,
            1020 => Reason::SerializationFailure, // MariaDB: a row that was read has changed
            1205 | 3572 => Reason::LockTimeout,
            3024 | 1969 | 1317 => Reason::StatementTimeout,
            1040 | 1203 | 1226 => Reason::PoolTimeout,
            1053 | 1152 | 1158..=1161 | 1184 | 1927 | 2006 | 2013 | 4031 => Reason::ConnectionLost,
            1022 | 1062 | 1169 | 1586 => Reason::UniqueViolation,
            1216 | 1217 | 1451 | 1452 => Reason::ForeignKeyViolation,
            3819 | 4025 => Reason::CheckViolation,
            1048 | 1364 => Reason::NotNullViolation,
            1064 | 1149 => Reason::SyntaxError,
            1044 | 1045 | 1142 | 1143 | 1227 | 1370 | 1698 => Reason::PermissionDenied,
            1305 if error.message().starts_with("SAVEPOINT") => Reason::Aborted,
            1049 | 1054 | 1109 | 1146 | 1305 => Reason::MissingObject,
            _ => Reason::Other,
        }
    }
}
