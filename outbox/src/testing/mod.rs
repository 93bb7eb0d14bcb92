//! Tests handlers without a server, without sleeping, and with the same result each time.
//!
//! A [`Kit`] is an outbox on a database of its own, with a clock that the test moves. It works like a
//! dispatcher, with the same decisions, statements and tables, but runs one handler at a time in the
//! test's own task.
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
//! One handler runs at a time. Of all records that are due, the kit takes the one with the lowest id;
//! of its handlers, the one whose id sorts first. A handler's `concurrency` makes no difference. A
//! record that waits in its lane does not run, as with a dispatcher. Calling [`Kit::step`] until it
//! returns `None` has the same effect as [`Kit::run_until_idle`].
//!
//! # Time
//!
//! The clock stands still until the test moves it, also while handlers run. Due times, publishing
//! times and failure times are exact to the microsecond. A retry after an hour runs when the test has
//! moved the clock by an hour.
//!
//! The clock starts a minute ahead of the machine's clock. The database uses the machine's clock for
//! "now", for example when a record is replayed, and this time must not be in the kit's future. For
//! `at(..)`, use [`Kit::now`] and not the machine's clock.
//!
//! `tokio::time::sleep` in a handler and the `timeout` of a handler take real time.
//!
//! # The database
//!
//! The database is a SQLite file in WAL mode, in the folder for temporary files. Dropping the kit
//! removes it. It is not `sqlite::memory:`, which is a database per connection: a pool of one
//! connection would hang as soon as a handler needs a second one. It is not a shared cache either,
//! because its readers wait for writers. With a file, handlers use [`Kit::pool`] as in production, and
//! a test can compare an open transaction with the committed state.
//!
//! SQLite has one writer at a time. A transaction of the test that has written has to end before the
//! kit runs. Otherwise the kit returns [`KitError::TransactionOpen`] after a second.
//!
//! The kit has only the handlers that the test names. `builder.registry(Registry::linked())` adds all
//! handlers that are linked.

mod error;
mod inspect;
mod manual_dispatcher;
mod restore;
mod run;
mod step;
mod temp_folder;

use std::{fmt, time::Duration};

use jiff::Timestamp;
use sqlx::{Sqlite, SqlitePool, Transaction};
use tokio::sync::Mutex;

pub use crate::retry::decision::FailedBecause;
pub use error::KitError;
pub use restore::Restore;
pub use step::{Step, StepOutcome};

use crate::{
    outbox::{
        Outbox, OutboxBuilder, Result, Scheduled,
        clock::{Clock as _, ManualClock, SystemClock, later},
    },
    record::OutboxEvent,
};
use error::database;
use manual_dispatcher::{ManualDispatcher, clock_offset};
use temp_folder::TempFolder;

/// An outbox in a test: see [the module](self).
///
/// Dropping it removes its database, also for clones of its pool.
#[must_use = "dropping the kit removes its database"]
pub struct Kit {
    outbox: Outbox<Sqlite>,
    clock: ManualClock,
    dispatcher: Mutex<ManualDispatcher>,
    folder: TempFolder,
    max_invocations: usize,
}

/// The kit's clock starts this far ahead of the machine's clock.
const AHEAD: Duration = Duration::from_secs(60);
/// The default of [`Kit::max_invocations`].
const MAX_INVOCATIONS: usize = 100_000;

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
    /// The outbox cannot be built, as in [`OutboxBuilder::build`].
    pub async fn new(
        build: impl FnOnce(OutboxBuilder<Sqlite>) -> OutboxBuilder<Sqlite>,
    ) -> Result<Self> {
        let folder = TempFolder::new()?;
        // Times are stored in whole microseconds.
        let start = later(SystemClock.now(), AHEAD).as_microsecond();
        let start = Timestamp::from_microsecond(start).unwrap_or_default();
        let clock = ManualClock::at(start);
        let builder = Outbox::builder(folder.pool().await?)
            .without_linked()
            .manual_clock(clock.clone());
        // Set again, because the closure may return another builder.
        let outbox = build(builder).manual_clock(clock.clone()).build().await?;
        let dispatcher = ManualDispatcher::new(outbox.clone(), clock.clone());
        let kit = Self {
            outbox,
            clock,
            dispatcher: Mutex::new(dispatcher),
            folder,
            max_invocations: MAX_INVOCATIONS,
        };
        kit.update_clock_offset();
        Ok(kit)
    }

    /// After this many invocations while the clock stands still, the kit returns
    /// [`KitError::Endless`]. Default: 100,000.
    pub fn max_invocations(mut self, invocations: usize) -> Self {
        self.max_invocations = invocations;
        self
    }

    /// The outbox to publish with.
    #[must_use]
    pub fn outbox(&self) -> &Outbox<Sqlite> {
        &self.outbox
    }

    /// The pool of the database, for the tables of the test and for handlers.
    #[must_use]
    pub fn pool(&self) -> &SqlitePool {
        self.outbox.pool()
    }

    /// The kit's clock, for the test and for handlers.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// The time on the kit's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Starts a transaction; the same as `pool().begin()`.
    ///
    /// # Errors
    /// The pool has no free connection.
    pub async fn begin(&self) -> Result<Transaction<'static, Sqlite>> {
        self.pool().begin().await.map_err(database)
    }

    /// Publishes an event in a transaction of its own, and returns the id of its record.
    ///
    /// # Errors
    /// Those of [`Outbox::publish`], or a transaction of the test is open.
    pub async fn publish<E: OutboxEvent>(&self, event: &E) -> Result<i64> {
        let mut tx = self.begin().await?;
        let sent = self.outbox.schedule(event).send(&mut tx).await?;
        tx.commit().await.map_err(database)?;
        match sent {
            Scheduled::Published { record_id } => Ok(record_id),
            // Does not happen: the event has no deduplication key.
            Scheduled::Duplicate => Ok(0),
        }
    }

    /// Moves the clock. No handler runs until the test calls one of the `run` methods or `step`.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.update_clock_offset();
    }

    /// Tells the outbox how far the two clocks are apart, for statements that use the database's
    /// time. It is not exact, because the database's clock moves on.
    fn update_clock_offset(&self) {
        self.outbox.inner.set_offset(clock_offset(&self.clock));
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
