//! The tables, and every statement on them.
//!
//! The statements of publishing and of the dispatcher are in `*/sql/*.sql`, one folder per database
//! and one file per topic. They are rendered once per outbox, see [`statements`]. A [`call`] binds
//! parameters by name; [`columns`] reads rows by the names of their columns. Each topic has a trait
//! with one function per statement. A database overrides only the functions in which it differs.

mod batch;
mod call;
mod columns;
mod connection;
mod delivery;
mod dialect;
mod fetch;
mod lease;
mod migrate;
#[cfg(feature = "mysql")]
mod mysql;
mod names;
mod operator;
#[cfg(feature = "postgres")]
mod postgres;
mod publish;
mod settle;
mod sql;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
mod statements;
#[cfg(test)]
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod tests;
mod transaction;
mod watch;

pub(crate) use batch::{Batch, DeliveryRow, FailureRow};
pub(crate) use connection::{KeptConnection, Role};
pub(crate) use delivery::{DeliverySql, DueDeliveryName, FetchedDelivery, LaneName, RunnableOrder};
pub(crate) use dialect::Dialect;
pub(crate) use fetch::{
    DueQuery, FetchSql, FetchedRecord, InMemory, OpenWriters, Page, PendingQuery,
};
use lease::ClusterViewRow;
pub(crate) use lease::{ClusterView, Fence, InstanceRow, Lease, LeaseRow, LeaseSql};
pub(crate) use migrate::{SchemaSql, as_script};
pub(crate) use names::TableNames;
pub(crate) use operator::{
    CommandClaim, CommandKey, ListQuery, OPEN, Operator, Prunable, Retained, SAMPLE_END,
    SampleExtent, StatusCount, StatusSample, Table,
};
pub(crate) use publish::{Due, NewRecord, PublishSql, as_micros};
pub(crate) use settle::{DeliveryCompletion, HandlerRename, SettleOutcome, SettleSql};
pub(crate) use statements::{Statements, trusted};
pub(crate) use transaction::{NotCommitted, TransactSql};
pub(crate) use watch::{LostSession, Notification, PollResult, SessionKey, WatchSql};

/// A database that can hold the outbox: `sqlx::Sqlite`, `sqlx::Postgres` or `sqlx::MySql`, each
/// with the feature of the same name.
#[diagnostic::on_unimplemented(
    message = "the outbox cannot be stored in `{Self}`",
    note = "use a pool of `sqlx::Sqlite`, `sqlx::Postgres` or `sqlx::MySql`, and the feature `sqlite`, `postgres` or `mysql` of `outbox`"
)]
pub trait Database: sqlx::Database + Driver {}

/// All traits that a driver implements. Sealed: users choose a database, they do not write one.
pub trait Driver:
    SchemaSql + PublishSql + LeaseSql + FetchSql + DeliverySql + SettleSql + WatchSql + TransactSql
{
}
