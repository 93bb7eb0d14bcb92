//! [`Inbox`]: messages that are handled once, however often they arrive.

use std::{collections::BTreeSet, fmt, marker::PhantomData};

use crate::{
    outbox::{Error, Result, error::While as _},
    store::{Database, TableNames},
};

/// Messages that are handled once, however often they arrive. For consumers of brokers that
/// deliver at least once, as all of them do.
///
/// What was received is noted in the caller's transaction: it and the effects of the message are
/// committed together, or neither. Where the same message arrives twice at once, the second waits
/// for the first.
///
/// ```
/// # use outbox::Outbox;
/// use outbox::transaction::Seen;
///
/// # async fn consume(outbox: &Outbox<sqlx::Sqlite>) -> Result<(), Box<dyn std::error::Error>> {
/// let message_id = "8d3c"; // the sender's; the same when it sends again
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
pub struct Inbox<'a, Db: Database> {
    names: &'a TableNames,
    database: PhantomData<fn() -> Db>,
}

/// Whether a message is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a message that was seen before is not to be handled again"]
pub enum Seen {
    /// It has not been here before.
    First,
    /// It has been here before, and its effects are there: do nothing.
    Again,
}

impl<'a, Db: Database> Inbox<'a, Db> {
    pub(crate) fn new(names: &'a TableNames) -> Self {
        Self {
            names,
            database: PhantomData,
        }
    }

    /// Notes a message of this source, in the caller's transaction.
    ///
    /// # Errors
    /// When the source or the id has no or more than 255 bytes, before any SQL; or when the
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

    /// Notes many messages of this source at once: one answer for each, in their order. Of a
    /// message that is there twice, the second is seen again.
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
        check("a source", source)?;
        // Sorted, so that two batches that share messages do not wait for each other.
        let mut sorted = BTreeSet::new();
        for id in message_ids {
            check("a message id", id.as_ref())?;
            sorted.insert(id.as_ref());
        }
        let sorted: Vec<&str> = sorted.into_iter().collect();
        if sorted.is_empty() {
            return Ok(Vec::new());
        }
        let new = Db::receive(connection, self.names, source, &sorted)
            .await
            .doing("noting messages in the inbox")?;
        let mut new: BTreeSet<String> = new.into_iter().collect();
        let seen = message_ids.iter().map(|id| {
            if new.remove(id.as_ref()) {
                Seen::First
            } else {
                Seen::Again
            }
        });
        Ok(seen.collect())
    }
}

fn check(what: &'static str, text: &str) -> Result<()> {
    if (1..=255).contains(&text.len()) && !text.contains('\0') {
        return Ok(());
    }
    Err(Error::BadMessage {
        what,
        bytes: text.len(),
    })
}

impl<Db: Database> fmt::Debug for Inbox<'_, Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}
