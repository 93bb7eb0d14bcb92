//! [`Fetcher`]: runs plans, one statement after the other on the reading connection.

use std::sync::Arc;

use hashbrown::HashMap;
use sqlx::Pool;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    runtime::{
        fetch::{
            BlockingKeys, FetchPlan, Fetched, FindRunnable, LateWriters, PagePlan, PendingPlan,
            plan::group_by_lane,
        },
        ownership::claim::{ClaimOutcome, ClaimRequest},
    },
    store::{
        Database, DueQuery, Fence, FetchedRecord, InMemory, KeptConnection, Lease, PendingQuery,
        RunnableOrder, Statements,
    },
};

/// Runs plans on the reading connection, and remembers which writers may still bring low ids.
#[derive(Debug)]
pub(crate) struct Fetcher<Db: Database> {
    link: KeptConnection<Db>,
    sql: Arc<Statements>,
    late: LateWriters,
}

/// How many deliveries of a parked lane are loaded at once.
const ROWS_PER_LANE: i64 = 32;

impl<Db: Database> Fetcher<Db> {
    pub(crate) fn new(pool: Pool<Db>, sql: Arc<Statements>) -> Self {
        Self {
            link: KeptConnection::new(pool),
            sql,
            late: LateWriters::default(),
        }
    }

    /// Runs a plan. A fetch that fails has read nothing.
    pub(crate) async fn fetch(&mut self, plan: &FetchPlan) -> Result<Fetched, sqlx::Error> {
        let fetched = self.run_steps(plan).await;
        self.link.done(&fetched);
        fetched
    }

    /// The order of the steps is part of the protocol:
    /// 1. parked lanes;
    /// 2. due rows;
    /// 3. pending records: the open writers are asked for *before* the records are read, and late
    ///    records come in the *same* statement as new ones;
    /// 4. blocking keys (sweep only), after the records that may have to wait behind them;
    /// 5. runnable lanes;
    /// 6. blocking deliveries in the lanes of all records above, read after these.
    ///
    /// `LateWriters` learns that pages were read only after step 6: a fetch that fails has read
    /// nothing.
    async fn run_steps(&mut self, plan: &FetchPlan) -> Result<Fetched, sqlx::Error> {
        let mut fetched = Fetched::default();
        self.load_parked_lanes(plan, &mut fetched).await?;
        self.read_due(plan, &mut fetched).await?;
        let pages = self.read_pending(plan, &mut fetched).await?;
        self.read_blocking_keys(plan, &mut fetched).await?;
        self.find_runnable_lanes(plan, &mut fetched).await?;
        self.check_blocked_lanes(plan, &mut fetched).await?;
        if let Some(pages) = pages {
            self.late.pages_read(pages, &fetched.pending);
        }
        fetched.expects_late = self.late.expects_late();
        Ok(fetched)
    }

    async fn load_parked_lanes(
        &mut self,
        plan: &FetchPlan,
        fetched: &mut Fetched,
    ) -> Result<(), sqlx::Error> {
        if !plan.load.is_empty() {
            let connection = self.link.connection().await?;
            let rows = Db::lane_heads(connection, &self.sql, &plan.load, ROWS_PER_LANE).await?;
            fetched.loaded = group_by_lane(&plan.load, rows);
        }
        Ok(())
    }

    async fn read_due(
        &mut self,
        plan: &FetchPlan,
        fetched: &mut Fetched,
    ) -> Result<(), sqlx::Error> {
        let Some(due) = &plan.due else {
            return Ok(());
        };
        let (sql, connection) = (&*self.sql, self.link.connection().await?);
        let deliveries = DueQuery {
            parts: &plan.partitions,
            handlers: &plan.handlers,
            offset: plan.clock_offset,
            limit: bound(due.delivery_limit()),
        };
        let records = DueQuery {
            limit: bound(due.record_limit()),
            ..deliveries
        };
        fetched.next_due = Db::next_due(connection, sql, deliveries).await?;
        if fetched.next_due.is_none_or(|micros| micros > 0) {
            return Ok(());
        }
        let found = Db::due_deliveries(connection, sql, deliveries).await?;
        let new = due.new_deliveries(&found, &plan.router);
        if !new.is_empty() {
            fetched.due_deliveries = Db::load_deliveries(connection, sql, &new).await?;
        }
        let found = Db::due_records(connection, sql, records).await?;
        fetched.due_records = due.new_records(found, new.len());
        fetched.next_due = Db::next_due(connection, sql, deliveries).await?;
        Ok(())
    }

    /// The pages that were read, if any were.
    async fn read_pending<'a>(
        &mut self,
        plan: &'a FetchPlan,
        fetched: &mut Fetched,
    ) -> Result<Option<&'a PagePlan>, sqlx::Error> {
        let Some(pending) = &plan.pending else {
            return Ok(None);
        };
        let PendingPlan {
            pages:
                PagePlan {
                    pages,
                    per_page,
                    limit,
                },
            in_memory,
            highest_seen,
            probe_first,
        } = pending;
        let (sql, connection) = (&*self.sql, self.link.connection().await?);
        if *probe_first && !plan.sweep && !self.late.expects_late() {
            // Where there is nothing, it does not matter who writes at this moment.
            let one = PendingQuery {
                pages,
                in_memory: &[],
                per_partition: 1,
                limit: 1,
            };
            let found = Db::pending_records(connection, sql, one).await?;
            if found.is_empty() {
                return Ok(None);
            }
        }
        // Asked before the records are read: a writer that ends in between is seen by the reading.
        let writers = Db::open_writers(connection, sql).await?;
        let partitions = &plan.partitions;
        self.late
            .observe(partitions, *highest_seen, writers, Instant::now());
        if plan.sweep {
            self.late.reread(partitions, 0);
        }
        let lowered = self.late.lower(pages);
        let is_lowered = lowered != *pages;
        let known: &[InMemory] = if is_lowered { in_memory } else { &[] };
        let query = PendingQuery {
            pages: &lowered,
            in_memory: known,
            per_partition: bound(*per_page),
            limit: bound(*limit),
        };
        fetched.pending = Db::pending_records(connection, sql, query).await?;
        if is_lowered {
            fetched.late_found = count_late(&pending.pages, &fetched.pending);
        }
        Ok(Some(&pending.pages))
    }

    async fn read_blocking_keys(
        &mut self,
        plan: &FetchPlan,
        fetched: &mut Fetched,
    ) -> Result<(), sqlx::Error> {
        if plan.sweep {
            // After the records: a batch of the owner before us that is committed only now is seen
            // here, unless its records were still pending then. Those come first, as read.
            let connection = self.link.connection().await?;
            let limit = BlockingKeys::keys_per_partition(plan.partitions.len());
            let keys =
                Db::blocking_keys(connection, &self.sql, &plan.partitions, bound(limit)).await?;
            fetched.blocking_keys = Some(plan.blocking_keys.replaced_by(&keys, limit));
        }
        Ok(())
    }

    async fn find_runnable_lanes(
        &mut self,
        plan: &FetchPlan,
        fetched: &mut Fetched,
    ) -> Result<(), sqlx::Error> {
        let refilled: Vec<&str>;
        let (handlers, order, limit) = match &plan.find_runnable {
            FindRunnable::No => return Ok(()),
            // Lanes that could run are in memory as a rule: hardly any is found.
            FindRunnable::OfAllHandlers { limit } => {
                (&*plan.handlers, RunnableOrder::EveryLane, *limit)
            }
            FindRunnable::Refill { handlers, limit } => {
                let ids = handlers.iter().map(|handler| plan.router.id_of(*handler));
                refilled = ids.collect();
                (&*refilled, RunnableOrder::OldestFirst, *limit)
            }
        };
        let (sql, partitions) = (&*self.sql, &plan.partitions);
        let connection = self.link.connection().await?;
        fetched.runnable =
            Db::runnable_lanes(connection, sql, partitions, handlers, order, bound(limit)).await?;
        Ok(())
    }

    async fn check_blocked_lanes(
        &mut self,
        plan: &FetchPlan,
        fetched: &mut Fetched,
    ) -> Result<(), sqlx::Error> {
        let lanes = fetched.lanes_to_check(plan);
        if !lanes.is_empty() {
            let connection = self.link.connection().await?;
            fetched.add_blocked(Db::blocked_among(connection, &self.sql, &lanes).await?);
        }
        Ok(())
    }

    /// The reading connection, for statements of the test kit.
    #[cfg(feature = "testing")]
    pub(crate) fn link(&mut self) -> &mut KeptConnection<Db> {
        &mut self.link
    }

    /// Renews and takes leases, and prepares the partitions that were gained.
    pub(crate) async fn claim(
        &mut self,
        claim: &ClaimRequest,
    ) -> Result<ClaimOutcome, sqlx::Error> {
        let connection = self.link.connection().await?;
        let claimed = claim.run::<Db>(connection, &self.sql).await;
        self.link.done(&claimed);
        claimed
    }

    /// Renews what this process still owns while it leaves.
    pub(crate) async fn renew(&mut self, owner: Uuid, micros: i64) -> Result<(), sqlx::Error> {
        let connection = self.link.connection().await?;
        let renewed = Db::renew(connection, &self.sql, owner, micros).await;
        self.link.done(&renewed);
        renewed
    }

    /// Leaves the cluster: gives up its share and these leases, or all, and tells the peers.
    pub(crate) async fn leave(
        &mut self,
        owner: Uuid,
        drained: Option<Vec<Lease>>,
    ) -> Result<(), sqlx::Error> {
        let connection = self.link.connection().await?;
        let left = async {
            Db::leave(connection, &self.sql, owner, drained.is_none()).await?;
            if let Some(leases) = drained {
                let fence = Fence { owner, leases };
                Db::release_leases(connection, &self.sql, &fence, None).await?;
            }
            Db::notify_peers(connection, &self.sql).await
        };
        let left = left.await;
        self.link.done(&left);
        left
    }
}

/// How many of these are below what had been read of their partition.
fn count_late(plan: &PagePlan, rows: &[FetchedRecord]) -> usize {
    let pages = plan.pages.iter();
    let read: HashMap<u16, i64> = pages.map(|page| (page.part, page.after)).collect();
    let is_late = |row: &&FetchedRecord| {
        let read = read.get(&row.part);
        read.is_some_and(|read| row.record.id <= *read)
    };
    rows.iter().filter(is_late).count()
}

fn bound(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
