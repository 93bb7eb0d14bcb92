//! [`Tx`]: an open transaction, lent to user code.

use std::{fmt, ops};

use sqlx::Transaction;
use tokio::sync::{MutexGuard, OwnedMappedMutexGuard};

use super::session::Session;
use crate::store::Database;

/// An open transaction of the outbox's database: the argument of a handler, and of the closure of
/// a [retried transaction](crate::transaction).
///
/// It is a connection: use it as `&mut *tx`, and pass it to
/// [`publish`](crate::outbox::Outbox::publish) as `&mut tx`. It cannot be committed or rolled back by
/// hand; the dispatcher, or `run`, does that afterwards.
///
/// # In a handler
///
/// The effects of the handler and the completion of the record commit together. So the handler's
/// effects in this database happen exactly once, even if the process is killed. If the handler
/// fails, they are rolled back. Effects elsewhere (a mail, another service) may still be repeated.
///
/// ```
/// # use outbox::{outbox_handler, OutboxEvent, Tx};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created", key = order_id)]
/// # struct OrderCreated { order_id: i64, total_cents: i64 }
/// #[outbox_handler]
/// async fn add_to_revenue(event: OrderCreated, mut tx: Tx<'_, sqlx::Sqlite>) -> Result<(), sqlx::Error> {
///     sqlx::query("update revenue set cents = cents + ?1")
///         .bind(event.total_cents)
///         .execute(&mut *tx)
///         .await?;
///     Ok(())
/// }
/// ```
///
/// Keep such a handler short: it holds a connection of the pool, and on SQLite the only writer.
///
/// # In the closure of a transaction
///
/// The closure gets a `Tx<'static, Db>` by value: with a borrowed one the compiler could not tell
/// that the future of `run` is `Send`. The closure has to drop it before it returns; otherwise
/// nothing is committed. If a statement fails in a way that ends the transaction, and the closure
/// continues, nothing is committed either.
///
/// ```
/// use outbox::Tx;
///
/// // For a handler and for a closure.
/// async fn approve(tx: &mut Tx<'_, sqlx::Sqlite>, case: i64) -> Result<(), sqlx::Error> {
///     println!("attempt {}", tx.attempt());
///     let update = sqlx::query("update cases set approved = true where id = ?1").bind(case);
///     update.execute(&mut **tx).await?;
///     Ok(())
/// }
///
/// # async fn run(outbox: outbox::Outbox<sqlx::Sqlite>) -> Result<(), Box<dyn std::error::Error>> {
/// outbox.transaction("ApproveCase").run(async |mut tx| approve(&mut tx, 7).await).await?;
/// # Ok(())
/// # }
/// ```
pub struct Tx<'a, Db: Database> {
    lent: Lent<'a, Db>,
    attempt: u32,
}

/// Where the transaction goes back to when the `Tx` is dropped.
pub(crate) enum Lent<'a, Db: Database> {
    ToHandler(MutexGuard<'a, Transaction<'static, Db>>),
    ToClosure(OwnedMappedMutexGuard<Session<Db>, Transaction<'static, Db>>),
}

impl<'a, Db: Database> Tx<'a, Db> {
    pub(crate) fn new(lent: Lent<'a, Db>, attempt: u32) -> Self {
        Self { lent, attempt }
    }

    /// The number of this attempt, counted from 1: of the handler at its record, or of the closure
    /// in this call of `run`.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}

impl<Db: Database> ops::Deref for Tx<'_, Db> {
    type Target = Db::Connection;

    fn deref(&self) -> &Self::Target {
        match &self.lent {
            Lent::ToHandler(transaction) => transaction,
            Lent::ToClosure(transaction) => transaction,
        }
    }
}

impl<Db: Database> ops::DerefMut for Tx<'_, Db> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.lent {
            Lent::ToHandler(transaction) => transaction,
            Lent::ToClosure(transaction) => transaction,
        }
    }
}

impl<Db: Database> fmt::Debug for Tx<'_, Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx")
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
