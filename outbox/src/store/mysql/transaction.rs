//! Transactions that may be tried again, on MySQL.
//!
//! A deadlock ends the transaction here, and what is executed after it would be committed at once,
//! each statement for itself. So `autocommit` is off meanwhile, and a savepoint tells whether the
//! transaction at the end is the one that was begun.

use sqlx::{
    Executor as _, MySql, MySqlConnection, Transaction, error::DatabaseError,
    mysql::MySqlDatabaseError,
};

use crate::{
    store::{NotCommitted, TransactSql},
    transaction::{Isolation, Reason},
};

const RESTORE: &str = "set autocommit = @outbox_autocommit";

impl TransactSql for MySql {
    const CHANGES_SESSION: bool = true;

    fn begin_sql(isolation: Option<Isolation>, read_only: bool) -> String {
        let level = isolation.map_or(String::new(), |level| {
            format!("set transaction isolation level {level}; ")
        });
        let mode = if read_only { " read only" } else { "" };
        // The level is the next transaction's, so it is set last.
        format!(
            "set @outbox_autocommit = @@autocommit; set autocommit = 0; {level}start transaction{mode}; savepoint outbox_transaction"
        )
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
            // The first cause is the interesting one.
            let _ = Self::rollback(transaction).await;
            return Err(NotCommitted::before(source));
        }
        // Not by its own `commit`, which would give the connection back as it is.
        if let Err(source) = connection.execute("commit").await {
            let _ = Self::rollback(transaction).await;
            return Err(NotCommitted::during(source));
        }
        // It is committed: a session that cannot be restored is the pool's to find out.
        let _ = Self::rollback(transaction).await;
        Ok(())
    }

    async fn rollback(mut transaction: Transaction<'static, Self>) -> Result<(), sqlx::Error> {
        let connection: &mut MySqlConnection = &mut transaction;
        // In this order: `autocommit` that is switched on commits.
        connection.execute("rollback").await?;
        connection.execute(RESTORE).await?;
        transaction.rollback().await
    }

    fn reason(error: &dyn DatabaseError) -> Reason {
        let number = error.try_downcast_ref().map(MySqlDatabaseError::number);
        match number.unwrap_or(0) {
            1213 | 1614 => Reason::Deadlock,
            1020 => Reason::SerializationFailure, // MariaDB: what was read has changed
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
