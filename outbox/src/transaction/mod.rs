//! The service's own transactions, retried as a whole; commands that run once; an inbox.
//!
//! Retrying a transaction is safe under three conditions. The failure is temporary. The whole
//! transaction is repeated. Repeating it does no harm. This module takes care of the first two. The
//! third is the caller's, because **the closure may run more than once**:
//!
//! - An effect outside the database (a mail, a call of another service) would happen again.
//!   Publish an event instead: it is part of the transaction.
//! - Ids, random numbers and times that must be equal in every attempt are made before the call.
//! - If the connection is lost during the commit, the outcome is unknown. With a
//!   [`command_id`](RetryingTransaction::command_id) the result is stored in the same transaction,
//!   and the next attempt finds it.
//!
//! ```
//! # use outbox::{Outbox, OutboxEvent, Registry};
//! use std::time::Duration;
//! use outbox::transaction::{Deadline, Isolation, TxRetry};
//!
//! # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
//! # #[outbox_event(name = "case.approved", key = case)]
//! # struct CaseApproved { case: i64 }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
//! # sqlx::query("create table cases (id integer, approved bool)").execute(&pool).await?;
//! # let outbox = Outbox::builder(pool).registry(Registry::builder().allow_empty()).build().await?;
//! let case = 7;
//! let approved: u64 = outbox
//!     .transaction("ApproveCase")
//!     .isolation(Isolation::Serializable)
//!     .deadline(Deadline::after(Duration::from_secs(3)))
//!     .policy(TxRetry::interactive())
//!     .command_id("6f1c2e") // chosen by the caller; the same when it asks again
//!     .request(&case)
//!     .run(async |mut tx| {
//!         let update = sqlx::query("update cases set approved = true where id = ?1").bind(case);
//!         let done = update.execute(&mut *tx).await?;
//!         outbox.publish(&mut tx, &CaseApproved { case }).await?;
//!         Ok::<_, anyhow::Error>(done.rows_affected())
//!     })
//!     .await?;
//! # assert_eq!(approved, 0);
//! # Ok(())
//! # }
//! ```
//!
//! The closure's argument is a [`Tx`]. Calls and retries are counted by the metrics whose
//! names start with `outbox_transaction`; see [`metrics`](crate::telemetry::metrics).

mod attempt;
mod budget;
mod circuit;
mod closure_error;
mod command;
mod deadline;
mod decide;
mod error;
mod failure;
mod inbox;
mod isolation;
mod limits;
mod log;
mod reason;
mod retrying_transaction;
mod run;
mod session;
mod transactions;
mod tx;
mod tx_retry;

pub use budget::Budget;
pub use circuit::Circuit;
pub use closure_error::ClosureError;
pub use deadline::Deadline;
pub use error::{Cause, CommandError, Step, Stopped, TransactionError};
pub use inbox::{Inbox, Seen};
pub use isolation::Isolation;
pub use reason::Reason;
pub use retrying_transaction::{RetryingTransaction, WithCommand, WithoutCommand};
pub use transactions::Transactions;
pub(crate) use tx::Lent;
pub use tx::Tx;
pub use tx_retry::TxRetry;
