//! Tests of handlers without a server, without sleeping, and with the same result each time.
//!
//! A [`Kit`] is an outbox on a database of its own, with a clock that the test moves. What a
//! dispatcher does with many tasks, the kit does one thing after the other in the test's own task:
//! the same decisions, the same statements, the same tables.
//!
//! ```
//! use std::time::Duration;
//! use outbox::{outbox_handler, testing::{Kit, StepOutcome}, Metadata, OutboxEvent};
//!
//! #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize, OutboxEvent)]
//! #[outbox_event(name = "order.created", key = order_id)]
//! struct OrderCreated {
//!     order_id: i64,
//! }
//!
//! #[outbox_handler(id = "charge-card")] // the default policy: 1 s, 2 s, 4 s
//! async fn charge_card(event: OrderCreated, meta: &Metadata) -> Result<(), &'static str> {
//!     if meta.is_retry() { Ok(()) } else { Err("the bank is closed") }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> outbox::Result<()> {
//! let kit = Kit::new(|builder| builder.handler::<charge_card>()).await?;
//!
//! let mut tx = kit.begin().await?;
//! kit.outbox().publish(&mut tx, &OrderCreated { order_id: 1 }).await?; // or your service does
//! assert_eq!(kit.published::<OrderCreated>(&mut tx).await?, [OrderCreated { order_id: 1 }]);
//! tx.commit().await.expect("a commit");
//!
//! let steps = kit.run_until_idle().await?;
//! assert_eq!(steps[0].outcome, StepOutcome::Retry { delay: Duration::from_secs(1) });
//! assert_eq!(steps[0].error.as_deref(), Some("the bank is closed"));
//!
//! assert!(kit.run_until_idle().await?.is_empty()); // no time has passed
//! kit.advance(Duration::from_secs(1));
//! let steps = kit.run_until_idle().await?;
//! assert_eq!((steps[0].attempt, steps[0].outcome), (2, StepOutcome::Completed));
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! One handler runs at a time. Of all that could run now, the record with the lowest id is first;
//! of one record, the handler whose id comes first. A handler's `concurrency` makes no difference.
//! A record that waits in its lane cannot run, here as anywhere. [`Kit::step`] again and again
//! does what [`Kit::run_until_idle`] does.
//!
//! # Time
//!
//! The clock stands still until the test moves it, also while handlers run.
//! Due times, the time of publishing and the times of failures are exact to the microsecond.
//! Delays are taken as they are: a retry after an hour runs when the clock has moved by an hour.
//! The clock starts a minute ahead of the machine's, so that what the database itself dates "now",
//! as when a person replays a record, is not in the kit's future. For `at(..)`, ask
//! [`Kit::now`], not the machine.
//!
//! What a handler waits for itself, with `tokio::time::sleep` or a `timeout` in its attribute, takes
//! as long as it takes.
//!
//! # The database
//!
//! A SQLite file in the folder for temporary files, in WAL mode, that is gone with the kit. Not
//! `sqlite::memory:`, which is a database per connection: a pool of one would hang a handler, or
//! the kit, as soon as anybody holds a second connection. Nor a shared cache, in which readers wait
//! for writers. With a file, handlers use [`Kit::pool`] as they would in production, and an open
//! transaction can be compared with what is committed. SQLite has one writer at a time, however:
//! a transaction that has written has to end before the kit runs, which says so after a second
//! ([`KitError::TransactionOpen`]).
//!
//! Only the handlers that the test names are there, whatever is linked; for all of them use
//! `builder.registry(Registry::linked())`.

mod error;
mod folder;
mod hands;
mod look;
mod restore;
mod run;
mod step;

use std::{fmt, time::Duration};

use jiff::Timestamp;
use sqlx::{Sqlite, SqlitePool, Transaction};
use tokio::sync::Mutex;

pub use error::KitError;
pub use restore::Restore;
pub use step::{Step, StepOutcome};

use crate::{
    outbox::{
        Outbox, OutboxBuilder, Result, Scheduled,
        clock::{Clock as _, ManualClock, SystemClock, later},
    },
    record::OutboxEvent,
    registry::Registry,
};
use error::database;
use folder::Folder;
use hands::Hands;

/// An outbox in a test: see [the module](self).
///
/// Dropped, its database is gone, also for whoever still has its pool.
#[must_use = "the database is gone when it is dropped"]
pub struct Kit {
    outbox: Outbox<Sqlite>,
    clock: ManualClock,
    hands: Mutex<Hands>,
    folder: Folder,
    most_at_once: usize,
}

/// How far the clock starts ahead of the machine's.
const AHEAD: Duration = Duration::from_secs(60);
/// As many invocations without time passing are no end in sight.
const MOST_AT_ONCE: usize = 100_000;

impl Kit {
    /// An outbox with what the closure adds: handlers, their state, policies, configuration. The
    /// builder has the [pool](OutboxBuilder::pool) and the [clock](OutboxBuilder::shared_clock) for
    /// handlers that need them.
    ///
    /// ```
    /// # use outbox::{outbox_handler, OutboxEvent, State, testing::Kit};
    /// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
    /// # #[outbox_event(name = "order.created", key = order_id)]
    /// # struct OrderCreated { order_id: i64 }
    /// # #[derive(Clone)] struct Bank;
    /// #[outbox_handler]
    /// async fn charge_card(event: OrderCreated, State(bank): State<Bank>) {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> outbox::Result<()> {
    /// let kit = Kit::new(|builder| builder.handler::<charge_card>().state(Bank)).await?;
    /// let publisher = Kit::new(|builder| builder.allow_empty()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the outbox cannot be built, as in [`OutboxBuilder::build`].
    pub async fn new(
        build: impl FnOnce(OutboxBuilder<Sqlite>) -> OutboxBuilder<Sqlite>,
    ) -> Result<Self> {
        let folder = Folder::new()?;
        // In whole microseconds, as it is stored.
        let start = later(SystemClock.now(), AHEAD).as_microsecond();
        let start = Timestamp::from_microsecond(start).unwrap_or_default();
        let clock = ManualClock::at(start);
        let builder = Outbox::builder(folder.pool().await?)
            .registry(Registry::builder())
            .manual_clock(clock.clone());
        // Again, for a closure that comes with a builder of its own.
        let outbox = build(builder).manual_clock(clock.clone()).build().await?;
        let hands = Hands::new(outbox.clone(), clock.clone());
        let kit = Self {
            outbox,
            clock,
            hands: Mutex::new(hands),
            folder,
            most_at_once: MOST_AT_ONCE,
        };
        kit.tell_the_offset();
        Ok(kit)
    }

    /// So many invocations without time passing are [`KitError::Endless`]; 100,000 unless given.
    pub fn most_at_once(mut self, invocations: usize) -> Self {
        self.most_at_once = invocations;
        self
    }

    /// The outbox to publish with.
    #[must_use]
    pub fn outbox(&self) -> &Outbox<Sqlite> {
        &self.outbox
    }

    /// The database, for the tables of the test and for handlers.
    #[must_use]
    pub fn pool(&self) -> &SqlitePool {
        self.outbox.pool()
    }

    /// The time, for the test and for handlers.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// What the clock shows.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Starts a transaction; the same as `pool().begin()`.
    ///
    /// # Errors
    /// When there is no connection left.
    pub async fn begin(&self) -> Result<Transaction<'static, Sqlite>> {
        self.pool().begin().await.map_err(database)
    }

    /// Publishes an event in a transaction of its own. The id of its record.
    ///
    /// # Errors
    /// As [`Outbox::publish`]; when a transaction of the test is open.
    pub async fn publish<E: OutboxEvent>(&self, event: &E) -> Result<i64> {
        let mut tx = self.begin().await?;
        let sent = self.outbox.schedule(event).send(&mut tx).await?;
        tx.commit().await.map_err(database)?;
        match sent {
            Scheduled::Published { record_id } => Ok(record_id),
            // It has no dedup key.
            Scheduled::Duplicate => Ok(0),
        }
    }

    /// Moves the clock. Nothing runs until it is told to.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.tell_the_offset();
    }

    /// For what asks the database for the time. Not exact: its clock goes on.
    fn tell_the_offset(&self) {
        let offset = self.clock.now().as_microsecond() - SystemClock.now().as_microsecond();
        self.outbox.inner.set_offset(offset);
    }
}

impl fmt::Debug for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit")
            .field("now", &self.clock.now())
            .field("folder", &self.folder.path())
            .finish_non_exhaustive()
    }
}
