//! [`Inbox`]: distinguishes new messages from repeated ones.

use std::collections::HashSet;

use super::Transactions;
use crate::{
    outbox::{DbContext as _, Error, Operation, Result, error::MessageField},
    store::Database,
};

/// Distinguishes new messages from repeated ones, so that each message has its effect once. For consumers
/// of brokers, which deliver a message at least once.
///
/// The inbox stores the message id in the caller's transaction, so the id and the effects of the
/// message commit together. If a message arrives twice at the same time, the second call waits for
/// the end of the first transaction.
///
/// ```
/// # use outbox::Outbox;
/// use outbox::transaction::Seen;
///
/// # async fn consume(outbox: &Outbox<sqlx::Sqlite>) -> Result<(), Box<dyn std::error::Error>> {
/// let message_id = "8d3c"; // chosen by the sender; the same when it sends again
/// outbox.transaction("ReceivePayment").run(async |mut tx| {
///     if outbox.inbox().once(&mut tx, "payments", message_id).await? == Seen::Again {
///         return Ok(());
///     }
///     sqlx::query("update accounts set cents = cents + 100").execute(&mut *tx).await?;
///     Ok::<_, anyhow::Error>(())
/// }).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Inbox<'a, Db: Database> {
    pub(super) transactions: &'a Transactions<Db>,
}

/// Whether a message is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a message that was seen before must not be handled again"]
pub enum Seen {
    /// The message is new.
    First,
    /// The message was stored before, together with its effects: do nothing.
    Again,
}

impl<Db: Database> Inbox<'_, Db> {
    /// Stores the id of a message from this source in the caller's transaction.
    ///
    /// # Errors
    /// If the source or the id is not 1 to 255 bytes without NUL, before any SQL; or if the
    /// database fails.
    pub async fn once(
        &self,
        connection: &mut Db::Connection,
        source: &str,
        message_id: &str,
    ) -> Result<Seen> {
        let seen = self.once_each(connection, source, &[message_id]).await?;
        Ok(seen.into_iter().next().unwrap_or(Seen::Again))
    }

    /// Stores the ids of several messages from this source in one statement. Returns one answer for
    /// each, in their order. If an id occurs twice, the second is [`Seen::Again`].
    ///
    /// ```
    /// # use outbox::{Outbox, transaction::Seen};
    /// # async fn consume(outbox: &Outbox<sqlx::Sqlite>, tx: &mut sqlx::SqliteConnection) -> outbox::Result<()> {
    /// let batch = ["m-1", "m-2", "m-1"];
    /// let seen = outbox.inbox().once_each(tx, "payments", &batch).await?;
    /// assert_eq!(seen, [Seen::First, Seen::First, Seen::Again]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`once`](Self::once).
    pub async fn once_each(
        &self,
        connection: &mut Db::Connection,
        source: &str,
        message_ids: &[impl AsRef<str> + Sync],
    ) -> Result<Vec<Seen>> {
        check(MessageField::Source, source)?;
        let mut sorted: Vec<&str> = message_ids.iter().map(AsRef::as_ref).collect();
        for id in &sorted {
            check(MessageField::Id, id)?;
        }
        if sorted.is_empty() {
            return Ok(Vec::new());
        }
        // In a fixed order, so that two batches with common messages cannot deadlock.
        sorted.sort_unstable();
        sorted.dedup();
        let inserted = Db::receive(connection, &self.transactions.names, source, &sorted).await;
        let mut first: HashSet<String> = inserted.during(Operation::Receive)?.into_iter().collect();
        let seen = message_ids.iter().map(|id| {
            let is_first = first.remove(id.as_ref());
            if is_first { Seen::First } else { Seen::Again }
        });
        Ok(seen.collect())
    }
}

fn check(field: MessageField, text: &str) -> Result<()> {
    let bytes = text.len();
    if !(1..=255).contains(&bytes) || text.contains('\0') {
        return Err(Error::BadMessage { field, bytes });
    }
    Ok(())
}
