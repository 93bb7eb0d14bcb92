//! [`Fetcher`]: runs plans, one statement after the other on the reading connection.

use std::sync::Arc;

use hashbrown::HashMap;
use sqlx::Pool;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    BlockingKeys, FetchPlan, Fetched, LateWriters, PagePlan, plan::group_by_lane, reader::Release,
};
use crate::{
    record::Partition,
    runtime::ownership::{ClaimOutcome, ClaimRequest},
    store::{
        Database, DueQuery, Fence, FetchedRecord, InMemory, KeptConnection, PendingQuery, Role,
        Statements,
    },
};

type Result<T = ()> = std::result::Result<T, sqlx::Error>;

/// Runs plans on the reading connection, and remembers which writers may still commit low ids.
#[derive(Debug)]
pub(crate) struct Fetcher<Db: Database> {
    connection: KeptConnection<Db>,
    sql: Arc<Statements>,
    late: LateWriters,
}

/// One run of a plan.
struct Steps<'a, Db: Database> {
    connection: &'a mut Db::Connection,
    sql: &'a Statements,
    late: &'a mut LateWriters,
    plan: &'a FetchPlan,
    fetched: Fetched,
}

/// How many deliveries of a parked lane one fetch loads.
const ROWS_PER_LANE: i64 = 32;

impl<Db: Database> Fetcher<Db> {
    pub(crate) fn new(pool: Pool<Db>, sql: Arc<Statements>) -> Self {
        Self {
            connection: KeptConnection::for_role(pool, Role::Reader),
            sql,
            late: LateWriters::default(),
        }
    }

    /// Runs a plan. A failed fetch counts as if it had read nothing.
    pub(crate) async fn fetch(&mut self, plan: &FetchPlan) -> Result<Fetched> {
        let steps = Steps::<Db> {
            connection: self.connection.connection().await?,
            sql: &self.sql,
            late: &mut self.late,
            plan,
            fetched: Fetched::default(),
        };
        let fetched = steps.run().await;
        self.connection.release(&fetched);
        fetched
    }

    /// Renews and takes leases, and prepares the partitions that were gained.
    pub(crate) async fn claim(&mut self, claim: &ClaimRequest) -> Result<ClaimOutcome> {
        let connection = self.connection.connection().await?;
        let claimed = claim.run::<Db>(connection, &self.sql).await;
        self.connection.release(&claimed);
        claimed
    }

    /// Renews the leases that this process still owns while it leaves.
    pub(crate) async fn renew(&mut self, owner: Uuid, micros: i64) -> Result {
        let connection = self.connection.connection().await?;
        let renewed = Db::renew(connection, &self.sql, owner, micros).await;
        self.connection.release(&renewed);
        renewed
    }

    /// Leaves the cluster: gives up the share and these leases, or all leases, and notifies peers.
    pub(crate) async fn leave(&mut self, owner: Uuid, release: &Release) -> Result {
        let (connection, sql) = (self.connection.connection().await?, &*self.sql);
        let left = async {
            Db::leave(connection, sql, owner, *release == Release::Everything).await?;
            if let Release::Only(leases) = release {
                let leases = leases.clone();
                Db::release_leases(connection, sql, &Fence { owner, leases }, None).await?;
            }
            Db::notify_peers(connection, sql).await
        };
        let left = left.await;
        self.connection.release(&left);
        left
    }
}

impl<'a, Db: Database> Steps<'a, Db> {
    /// The order of the steps is part of the protocol:
    /// 1. parked lanes;
    /// 2. due rows;
    /// 3. pending records: the open writers are read *before* the records, and late records in the
    ///    *same* statement as new ones;
    /// 4. blocking keys (sweep only), after the records that may have to wait behind them;
    /// 5. runnable lanes;
    /// 6. blocking deliveries in the lanes of all records above, read after these.
    ///
    /// `LateWriters` notes the pages only after step 6, because a failed fetch counts as if it had
    /// read nothing.
    async fn run(mut self) -> Result<Fetched> {
        self.load_parked_lanes().await?;
        self.read_due().await?;
        let pages = self.read_pending().await?;
        self.read_blocking_keys().await?;
        self.find_runnable_lanes().await?;
        self.check_blocked_lanes().await?;
        if let Some(pages) = pages {
            self.late.pages_read(pages, &self.fetched.pending);
        }
        self.fetched.expects_late = self.late.expects_late();
        Ok(self.fetched)
    }

    async fn load_parked_lanes(&mut self) -> Result {
        let lanes = &self.plan.load;
        if !lanes.is_empty() {
            let rows = Db::lane_heads(self.connection, self.sql, lanes, ROWS_PER_LANE).await?;
            self.fetched.loaded = group_by_lane(lanes, rows);
        }
        Ok(())
    }

    async fn read_due(&mut self) -> Result {
        let (plan, sql, fetched) = (self.plan, self.sql, &mut self.fetched);
        let Some(due) = &plan.due else {
            return Ok(());
        };
        let deliveries = DueQuery {
            partitions: &plan.partitions,
            handlers: &plan.handlers,
            offset: plan.clock_offset,
            limit: bound(due.delivery_limit()),
        };
        let records = DueQuery {
            limit: bound(due.record_limit()),
            ..deliveries
        };
        fetched.next_due = Db::next_due(self.connection, sql, deliveries).await?;
        if fetched.next_due.is_none_or(|micros| micros > 0) {
            return Ok(());
        }
        let found = Db::due_deliveries(self.connection, sql, deliveries).await?;
        let new = due.new_deliveries(&found, &plan.router);
        if !new.is_empty() {
            fetched.due_deliveries = Db::load_deliveries(self.connection, sql, &new).await?;
        }
        let found = Db::due_records(self.connection, sql, records).await?;
        fetched.due_records = due.new_records(found, new.len());
        fetched.next_due = Db::next_due(self.connection, sql, deliveries).await?;
        Ok(())
    }

    /// Returns the pages that were read, if any were.
    async fn read_pending(&mut self) -> Result<Option<&'a PagePlan>> {
        let (plan, sql) = (self.plan, self.sql);
        let Some(pending) = &plan.pending else {
            return Ok(None);
        };
        let (pages, partitions) = (&pending.pages, &plan.partitions);
        if pending.probe_first && !plan.sweep && !self.late.expects_late() {
            // If nothing is pending, the open writers do not matter.
            let one = PendingQuery {
                pages: &pages.pages,
                in_memory: &[],
                per_partition: 1,
                limit: 1,
            };
            let found = Db::pending_records(self.connection, sql, one).await?;
            if found.is_empty() {
                return Ok(None);
            }
        }
        // Before the records: a writer that ends in between has committed before they are read.
        let writers = Db::open_writers(self.connection, sql).await?;
        let now = Instant::now();
        self.late
            .observe(partitions, pending.highest_seen, writers, now);
        if plan.sweep {
            self.late.reread(partitions, 0);
        }
        let lowered = self.late.lower(&pages.pages);
        let is_lowered = lowered != pages.pages;
        let in_memory: &[InMemory] = if is_lowered { &pending.in_memory } else { &[] };
        let query = PendingQuery {
            pages: &lowered,
            in_memory,
            per_partition: bound(pages.per_page),
            limit: bound(pages.limit),
        };
        self.fetched.pending = Db::pending_records(self.connection, sql, query).await?;
        if is_lowered {
            self.fetched.late_found = count_late(pages, &self.fetched.pending);
        }
        Ok(Some(pages))
    }

    async fn read_blocking_keys(&mut self) -> Result {
        let (plan, sql, partitions) = (self.plan, self.sql, &self.plan.partitions);
        if plan.sweep {
            // After the records: a batch that an earlier owner commits late is seen here, or its
            // records were read as pending and run in the order in which they were read.
            let limit = BlockingKeys::keys_per_partition(partitions.len());
            let keys = Db::blocking_keys(self.connection, sql, partitions, bound(limit)).await?;
            self.fetched.blocking_keys = Some(plan.blocking_keys.replaced_by(&keys, limit));
        }
        Ok(())
    }

    async fn find_runnable_lanes(&mut self) -> Result {
        let plan = self.plan;
        if let Some(search) = &plan.find_runnable {
            let handlers = search.handlers.iter().map(|ix| plan.router.id_of(*ix));
            let handlers: Vec<&str> = handlers.collect();
            let (connection, sql, limit) = (&mut *self.connection, self.sql, bound(search.limit));
            let (partitions, order) = (&plan.partitions, search.order);
            self.fetched.runnable =
                Db::runnable_lanes(connection, sql, partitions, &handlers, order, limit).await?;
        }
        Ok(())
    }

    async fn check_blocked_lanes(&mut self) -> Result {
        let lanes = self.fetched.lanes_to_check(self.plan);
        if !lanes.is_empty() {
            let blocked = Db::blocked_among(self.connection, self.sql, &lanes).await?;
            self.fetched.add_blocked(blocked);
        }
        Ok(())
    }
}

/// How many of these rows are below the watermark of their partition.
fn count_late(plan: &PagePlan, rows: &[FetchedRecord]) -> usize {
    let pages = plan.pages.iter();
    let watermarks: HashMap<Partition, i64> =
        pages.map(|page| (page.partition, page.after)).collect();
    let is_late = |row: &&FetchedRecord| {
        let watermark = watermarks.get(&row.partition);
        watermark.is_some_and(|watermark| row.record.id <= *watermark)
    };
    rows.iter().filter(is_late).count()
}

fn bound(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
