//! [`ManualDispatcher`]: the same engine, reader and writer as a dispatcher's, one after the other
//! in the caller's task.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    mem,
    sync::Arc,
};

use jiff::Timestamp;
use sqlx::{Sqlite, pool::PoolConnection};
use tokio::time::Instant;
use uuid::Uuid;

use super::{KitError, Step, error::database};
use crate::{
    outbox::{
        Outbox, Result,
        clock::{Clock as _, ManualClock, SystemClock},
    },
    registry::HandlerIx,
    retry::Decision,
    runtime::{
        engine::Engine,
        fetch::{FetchRequest, Fetcher, PollReason},
        lane::{AttemptEnd, Work},
        settle::settler::Settler,
        work::attempt::HandlerAttempt,
    },
    store::{Batch, Fence, SettleOutcome, sqlite::testing as sql},
};

/// All kits use the same owner id, so a kit keeps the leases of the kit before it.
const OWNER: Uuid = Uuid::from_u128(0x6f75_7462_6f78_7465_7374_696e_676b_6974);
/// One hour in microseconds. No other owner gets the leases while a handler is being debugged.
const LEASE_MICROS: i64 = 3_600_000_000;
/// One second in microseconds. The kit cannot read its clock and the database's at the same moment.
/// It asks for everything that is due up to a second later, and drops the rows that are too early.
const SLACK_MICROS: i64 = 1_000_000;

/// The kit keeps it between two calls. It holds connections and no other state.
#[derive(Debug)]
pub(super) struct ManualDispatcher {
    pub(super) outbox: Outbox<Sqlite>,
    pub(super) clock: ManualClock,
    fetcher: Fetcher<Sqlite>,
    settler: Settler<Sqlite>,
}

/// One call of the kit. It begins like a process that starts: with the state in the database.
pub(super) struct ManualRun<'a> {
    pub(super) dispatcher: &'a mut ManualDispatcher,
    engine: Engine,
    /// The work that can run now, in the order in which the kit runs it.
    ready: BTreeMap<(i64, HandlerIx), Work>,
    /// Records that one handler has finished. The work of their other handlers may be in `ready`.
    partly_done: HashSet<i64>,
    /// When the kit last read the database; `None` before the first time.
    read_at: Option<Timestamp>,
    /// The first time after `read_at` at which something is due, in microseconds since 1970.
    pub(super) next_due: Option<i64>,
}

impl ManualDispatcher {
    pub(super) fn new(outbox: Outbox<Sqlite>, clock: ManualClock) -> Self {
        Self {
            fetcher: outbox.inner.fetcher(),
            settler: outbox.inner.settler(),
            outbox,
            clock,
        }
    }

    pub(super) async fn run(&mut self) -> Result<ManualRun<'_>> {
        // The kit runs one invocation at a time, so the number of slots does not matter.
        let mut engine = self.outbox.engine_with_limits(OWNER, |_| u32::MAX, 1);
        let mut claim = engine.claim_request(BTreeSet::new(), true);
        claim.lease_micros = LEASE_MICROS;
        let claimed = self.fetcher.claim(&claim).await.map_err(database)?;
        if claimed.leases.len() < usize::from(claim.partitions) {
            return Err(KitError::DispatcherRuns.into());
        }
        engine.on_claimed(&claimed.leases, Instant::now());
        engine.apply_pauses(&claimed.view.paused);
        Ok(ManualRun {
            dispatcher: self,
            engine,
            ready: BTreeMap::new(),
            partly_done: HashSet::new(),
            read_at: None,
            next_due: None,
        })
    }

    pub(super) async fn connection(&self) -> Result<PoolConnection<Sqlite>> {
        self.outbox.inner.pool.acquire().await.map_err(database)
    }

    /// The records and deliveries that are due at a time, without those of handlers that the kit
    /// does not have.
    async fn scheduled(&self) -> Result<Vec<sql::Scheduled>> {
        let inner = &self.outbox.inner;
        let mut connection = self.connection().await?;
        let found = sql::scheduled(&mut connection, &inner.names).await;
        let mut all = found.map_err(database)?;
        all.retain(|row| {
            let handler = row.handler.as_deref();
            handler.is_none_or(|id| inner.registry.handler(id).is_some())
        });
        Ok(all)
    }

    /// Writes a batch whose delays are shifted by `offset`, and then the exact due times by the
    /// kit's clock, to the microsecond.
    pub(super) async fn write(&mut self, fence: &Fence, batch: &Batch, offset: i64) -> Result<()> {
        let now = self.clock.now().as_microsecond().saturating_sub(offset);
        let written = self.settler.write_once(fence, batch).await;
        // A test that takes leases away on purpose sees what a process does that does not know it
        // yet.
        let SettleOutcome { refused: _ } = written.map_err(database)?;
        let (mut connection, names) = (self.connection().await?, &self.outbox.inner.names);
        for row in batch.new_deliveries.iter().chain(&batch.changed_deliveries) {
            if let Some(due_in) = row.due_in {
                let (id, due_at) = (row.record_id, now.saturating_add(due_in));
                let set = sql::set_due(&mut connection, names, id, row.handler, due_at).await;
                set.map_err(database)?;
            }
        }
        Ok(())
    }
}

/// How far the kit's clock is from the machine's, in microseconds.
pub(super) fn clock_offset(clock: &ManualClock) -> i64 {
    let ours = clock.now().as_microsecond();
    ours.saturating_sub(SystemClock.now().as_microsecond())
}

impl ManualRun<'_> {
    pub(super) fn fence(&self) -> Arc<Fence> {
        self.engine.leases().fence()
    }

    /// Makes the next invocation, if something is due. [`leave`](Self::leave) must follow if work
    /// is left.
    pub(super) async fn step(&mut self) -> Result<Option<Step>> {
        // A handler may have moved the clock, or be due again at once.
        let is_stale = self.read_at != Some(self.dispatcher.clock.now());
        if is_stale || self.ready.is_empty() || self.engine.lanes().has_lanes_to_load() {
            self.read().await?;
        }
        let Some((_, work)) = self.ready.pop_first() else {
            return Ok(None);
        };
        let inner = &self.dispatcher.outbox.inner;
        let entry = inner.registry.entry(work.handler);
        let at = self.dispatcher.clock.now();
        let fence = self.fence();
        let attempt = HandlerAttempt {
            inner,
            handler: entry,
            fence: &fence,
            work: &work,
            permit: None,
        };
        let Some(decision) = attempt.run().await else {
            return Ok(None);
        };
        let step = Step::of(&work, entry.id(), at, &decision);
        if let Decision::RetryAt { at, .. } = &decision
            && *at <= self.dispatcher.clock.now()
        {
            self.read_at = None;
        }
        let end = match attempt.failure_hook(&decision) {
            Some(hook) => attempt.end_after_hook(hook, decision).await,
            None => attempt.end(decision),
        };
        self.partly_done.insert(work.record.id);
        self.engine.on_finished(&work, end);
        self.write().await?;
        Ok(step)
    }

    /// Ends a run that may have work left. Only memory knows which handlers have finished a record
    /// at its first attempts, so the other handlers of such a record get their deliveries.
    pub(super) async fn leave(mut self) -> Result<()> {
        for ((record_id, _), work) in mem::take(&mut self.ready) {
            let is_only_in_memory =
                self.partly_done.contains(&record_id) && !work.attempt.is_retry();
            if is_only_in_memory && !work.is_detached {
                self.engine.on_finished(&work, AttemptEnd::NoHandler);
            }
        }
        self.write().await
    }

    /// Reads everything that can run now.
    async fn read(&mut self) -> Result<()> {
        let now = self.dispatcher.clock.now();
        let scheduled = self.dispatcher.scheduled().await?.into_iter();
        let (due, later): (Vec<_>, Vec<_>) =
            scheduled.partition(|row| row.due_at <= now.as_microsecond());
        self.next_due = later.iter().map(|row| row.due_at).min();
        let due = due.into_iter().map(|row| (row.record_id, row.handler));
        let due: HashSet<(i64, Option<String>)> = due.collect();
        let mut request = FetchRequest {
            poll: Some(PollReason::Signalled),
            due: !due.is_empty(),
            // Once is enough: later, only this run changes which delivery is the first of its lane.
            sweep: self.read_at.is_none(),
            clock_offset: clock_offset(&self.dispatcher.clock).saturating_add(SLACK_MICROS),
        };
        self.read_at = Some(now);
        loop {
            // A lane is loaded only after all of its changes are written.
            self.write().await?;
            let Some(plan) = self.engine.plan_fetch(request) else {
                return Ok(());
            };
            let answer = self.dispatcher.fetcher.fetch(&plan).await;
            let mut fetched = answer.map_err(database)?;
            let is_due = |id, handler| due.contains(&(id, handler));
            let records = &mut fetched.due_records;
            records.retain(|one| is_due(one.record.id, None));
            let deliveries = &mut fetched.due_deliveries;
            deliveries.retain(|one| is_due(one.record.record.id, Some(one.handler.clone())));
            self.engine.on_fetched(&plan, fetched);
            request = FetchRequest {
                clock_offset: request.clock_offset,
                ..FetchRequest::default()
            };
        }
    }

    async fn write(&mut self) -> Result<()> {
        self.take_work();
        loop {
            let offset = clock_offset(&self.dispatcher.clock);
            let Some(outgoing) = self.engine.take_batch(offset) else {
                return Ok(());
            };
            let (fence, batch) = (self.fence(), outgoing.batch());
            self.dispatcher.write(&fence, batch, offset).await?;
            self.engine.on_written(outgoing);
            self.take_work();
        }
    }

    fn take_work(&mut self) {
        for burst in self.engine.take_bursts() {
            let work = burst.first;
            self.ready.insert((work.record.id, work.handler), work);
        }
    }
}
