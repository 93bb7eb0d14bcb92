//! One fetch: everything that is to be read now, one statement after the other on one connection.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use sqlx::Pool;
use tokio::time::Instant;
use uuid::Uuid;

use crate::runtime::fetch::{BlockingKeys, LateWriters, PagePlan};
use crate::{
    registry::{HandlerIx, route::Router},
    runtime::ownership::claim::{ClaimOutcome, ClaimRequest},
    store::{
        Database, DueDeliveryName, DueQuery, Fence, FetchedDelivery, FetchedRecord, InMemory,
        KeptConnection, LaneName, Lease, PendingQuery, RunnableOrder, Statements,
    },
};

/// What is to be read.
#[derive(Debug)]
pub(crate) struct FetchPlan {
    pub(crate) parts: Vec<u16>,
    /// Handlers that may run here now.
    pub(crate) handlers: Vec<&'static str>,
    /// Microseconds added to the database's clock.
    pub(crate) offset: i64,
    /// Parked lanes.
    pub(crate) lanes: Vec<LaneName>,
    /// Due records and deliveries, at most this many of each.
    pub(crate) due: Option<usize>,
    /// Deliveries that are in memory: not to be read again.
    pub(crate) known_deliveries: HashSet<(i64, HandlerIx)>,
    pub(crate) pending: Option<PagePlan>,
    /// Nothing says that there is something pending, and nothing is in memory.
    pub(crate) unprompted: bool,
    /// Keys in which something may block.
    pub(crate) may_block: Arc<BlockingKeys>,
    /// The highest id that was seen before.
    pub(crate) highest: i64,
    /// Records that are in memory: not to be read again.
    pub(crate) known: Vec<InMemory>,
    /// Read everything again, and in which keys something blocks.
    pub(crate) sweep: bool,
    /// Find lanes of all handlers that could run, at most this many.
    pub(crate) look: Option<usize>,
    /// Handlers that have room for lanes that were put aside.
    pub(crate) thirsty: Vec<&'static str>,
    /// At most this many of their lanes.
    pub(crate) thirst: usize,
    pub(crate) router: Arc<Router>,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) lanes: Vec<(LaneName, Vec<FetchedDelivery>)>,
    pub(crate) due_records: Vec<FetchedRecord>,
    pub(crate) due_deliveries: Vec<FetchedDelivery>,
    /// Microseconds until something is due.
    pub(crate) next_due: Option<i64>,
    pub(crate) pending: Vec<FetchedRecord>,
    /// Of the lanes of all records above, those in which something blocks: key, then handler.
    pub(crate) blocked: HashMap<String, HashSet<String>>,
    pub(crate) runnable: Vec<LaneName>,
    /// How many of the pending ones are below what had been read.
    pub(crate) late: usize,
    /// Whether a record may still come late.
    pub(crate) late_possible: bool,
    /// With a sweep: keys in which something blocks.
    pub(crate) may_block: Option<BlockingKeys>,
}

/// Reads, on a connection of its own.
#[derive(Debug)]
pub(crate) struct Fetcher<Db: Database> {
    pub(crate) link: KeptConnection<Db>,
    sql: Arc<Statements<Db>>,
    late: LateWriters,
}

/// How many deliveries of a parked lane are read at once.
const PER_LANE: i64 = 32;

impl<Db: Database> Fetcher<Db> {
    pub(crate) fn new(pool: Pool<Db>, sql: Arc<Statements<Db>>) -> Self {
        Self {
            link: KeptConnection::new(pool),
            sql,
            late: LateWriters::default(),
        }
    }

    pub(crate) async fn fetch(&mut self, round: &FetchPlan) -> Result<Fetched, sqlx::Error> {
        let arrived = self.read(round).await;
        self.link.done(&arrived);
        arrived
    }

    async fn read(&mut self, round: &FetchPlan) -> Result<Fetched, sqlx::Error> {
        let FetchPlan {
            parts,
            handlers,
            offset,
            ..
        } = round;
        let sql = &*self.sql;
        let connection = self.link.connection().await?;
        let mut arrived = Fetched::default();

        if !round.lanes.is_empty() {
            let rows = Db::lane_heads(connection, sql, &round.lanes, PER_LANE).await?;
            arrived.lanes = by_lane(&round.lanes, rows);
        }
        if let Some(limit) = round.due {
            let due = DueQuery {
                parts,
                handlers,
                offset: *offset,
                limit: bound(limit),
            };
            let next = Db::next_due(connection, sql, due).await?;
            arrived.next_due = next;
            if next.is_some_and(|micros| micros <= 0) {
                let found = Db::due_deliveries(connection, sql, due).await?;
                let new = round.unknown(&found);
                if !new.is_empty() {
                    arrived.due_deliveries = Db::load_deliveries(connection, sql, &new).await?;
                }
                arrived.due_records = Db::due_records(connection, sql, due).await?;
                arrived.next_due = Db::next_due(connection, sql, due).await?;
            }
        }
        let is_quiet = round.unprompted && !round.sweep && !self.late.possible();
        let quiet = match &round.pending {
            // Where there is nothing, nobody need know who writes at this moment.
            Some(plan) if is_quiet => {
                let one = PendingQuery {
                    pages: &plan.pages,
                    in_memory: &[],
                    per_partition: 1,
                    limit: 1,
                };
                let found = Db::pending_records(connection, sql, one).await?;
                found.is_empty()
            }
            _ => false,
        };
        if let Some(plan) = &round.pending
            && !quiet
        {
            // Asked before the records are read: whoever ends in between is seen by the reading.
            let writers = Db::open_writers(connection, sql).await?;
            let now = Instant::now();
            self.late.look(parts, round.highest, writers, now);
            if round.sweep {
                self.late.read_again(parts, 0);
            }
            let pages = self.late.lowered(&plan.pages);
            let in_memory: &[InMemory] = match pages == plan.pages {
                true => &[],
                false => &round.known,
            };
            let query = PendingQuery {
                pages: &pages,
                in_memory,
                per_partition: bound(plan.per_page),
                limit: bound(plan.limit),
            };
            arrived.pending = Db::pending_records(connection, sql, query).await?;
            self.late.read(plan, &arrived.pending);
            if pages != plan.pages {
                arrived.late = below(plan, &arrived.pending);
            }
        }
        if round.sweep {
            // After the records: a batch of the owner before us that is committed only now is seen
            // here, unless its records were still pending then. Those come first, as read.
            let most = BlockingKeys::per_part(parts.len());
            let keys = Db::blocking_keys(connection, sql, parts, bound(most)).await?;
            arrived.may_block = Some(round.may_block.read(&keys, most));
        }
        if let Some(limit) = round.look {
            // What could run is in memory as a rule; this finds what is not.
            let (few, limit) = (RunnableOrder::EveryLane, bound(limit));
            arrived.runnable =
                Db::runnable_lanes(connection, sql, parts, handlers, few, limit).await?;
        } else if !round.thirsty.is_empty() {
            let limit = bound(round.thirst);
            let many = RunnableOrder::OldestFirst;
            arrived.runnable =
                Db::runnable_lanes(connection, sql, parts, &round.thirsty, many, limit).await?;
        }
        let lanes = arrived.lanes_to_ask(round);
        if !lanes.is_empty() {
            for lane in Db::blocked_among(connection, sql, &lanes).await? {
                let handlers = arrived.blocked.entry(lane.key).or_default();
                handlers.insert(lane.handler);
            }
        }
        arrived.late_possible = self.late.possible();
        Ok(arrived)
    }

    /// Renews and takes leases, and prepares what was gained.
    pub(crate) async fn claim(
        &mut self,
        claim: &ClaimRequest,
    ) -> Result<ClaimOutcome, sqlx::Error> {
        let connection = self.link.connection().await?;
        let claimed = claim.run::<Db>(connection, &self.sql).await;
        self.link.done(&claimed);
        claimed
    }

    /// Renews what this process still owns, which is leaving.
    pub(crate) async fn renew(&mut self, owner: Uuid, micros: i64) -> Result<(), sqlx::Error> {
        let connection = self.link.connection().await?;
        let renewed = Db::renew(connection, &self.sql, owner, micros).await;
        self.link.done(&renewed);
        renewed
    }

    /// Leaves: has no share any more, gives these leases up, or all, and tells the others.
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

impl FetchPlan {
    /// Those that are not in memory.
    pub(crate) fn unknown(&self, due: &[DueDeliveryName]) -> Vec<i64> {
        let is_known = |due: &&DueDeliveryName| {
            let handler = self.router.by_id(&due.handler);
            handler.is_some_and(|ix| self.known_deliveries.contains(&(due.record_id, ix)))
        };
        due.iter()
            .filter(|due| !is_known(due))
            .map(|due| due.id)
            .collect()
    }
}

impl Fetched {
    /// The lanes of all records that were read, where something may block.
    pub(crate) fn lanes_to_ask(&self, round: &FetchPlan) -> Vec<LaneName> {
        let may_block = self.may_block.as_ref().unwrap_or(&round.may_block);
        let records = self.pending.iter().chain(&self.due_records);
        let mut seen = HashSet::new();
        let mut lanes = Vec::new();
        for FetchedRecord { part, record } in records {
            if !may_block.contains(*part, &record.key) {
                continue;
            }
            for &handler in round.router.handlers_of(&record.event).iter() {
                if seen.insert((&record.key, handler)) {
                    lanes.push(LaneName {
                        part: *part,
                        key: record.key.clone(),
                        handler: round.router.id_of(handler).to_owned(),
                    });
                }
            }
        }
        lanes
    }
}

/// The rows of each lane that was asked for, none included.
pub(crate) fn by_lane(
    lanes: &[LaneName],
    rows: Vec<FetchedDelivery>,
) -> Vec<(LaneName, Vec<FetchedDelivery>)> {
    let mut of: HashMap<LaneName, Vec<FetchedDelivery>> = HashMap::new();
    for row in rows {
        let lane = LaneName {
            part: row.fetched.part,
            key: row.fetched.record.key.clone(),
            handler: row.handler.clone(),
        };
        of.entry(lane).or_default().push(row);
    }
    lanes
        .iter()
        .map(|lane| (lane.clone(), of.remove(lane).unwrap_or_default()))
        .collect()
}

/// How many of these are below what had been read of their partition.
fn below(plan: &PagePlan, rows: &[FetchedRecord]) -> usize {
    let read: HashMap<u16, i64> = plan
        .pages
        .iter()
        .map(|page| (page.part, page.after))
        .collect();
    let is_below = |row: &&FetchedRecord| {
        read.get(&row.part)
            .is_some_and(|read| row.record.id <= *read)
    };
    rows.iter().filter(is_below).count()
}

fn bound(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
