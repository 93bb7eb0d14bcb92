//! [`Lanes`]: all lanes of this process; its fields and small questions.

// Child modules, because only a child sees the private fields.
#[path = "admit.rs"]
mod admit;
#[path = "advance.rs"]
mod advance;
#[path = "finish.rs"]
mod finish;
#[path = "park.rs"]
mod park;
#[path = "partitions.rs"]
mod partitions;
#[path = "written.rs"]
mod written;

use std::{collections::BTreeSet, mem};

use hashbrown::HashSet;

pub(crate) use self::admit::Target;
use super::{
    Burst, FetchPhase, Generation, HandlerSettings, HandlerState, Keys, Lane, Memory, Origin,
    Outgoing,
};
use crate::{
    record::Partition,
    registry::{HandlerIx, PerHandler},
    store::{InMemory, LaneName},
};

/// The settings of all lanes. They do not change.
#[derive(Debug, Clone)]
pub(crate) struct LaneSettings {
    /// Later records of a lane wait behind one that failed (`stop-on-first-failure`).
    pub(crate) stop_on_failure: bool,
    /// How many records a lane may run with one slot.
    pub(crate) max_burst: usize,
    pub(crate) handlers: PerHandler<HandlerSettings>,
}

/// All lanes of the partitions that this process owns. The files of this folder share its fields.
#[derive(Debug)]
pub(crate) struct Lanes {
    stop_on_failure: bool,
    keys: Keys,
    handlers: PerHandler<HandlerState>,
    /// Records that were read as pending or scheduled.
    records: Memory<i64>,
    deliveries: Memory<(i64, HandlerIx)>,
    generation: Generation,
    outgoing: Outgoing,
    /// Bursts to start. They have their slots.
    ready: Vec<Burst>,
    /// Lanes whose parked deliveries the next fetch loads.
    to_load: Vec<LaneName>,
    /// Partitions that will be released: nothing is started in them.
    closing: BTreeSet<Partition>,
    fetch: FetchPhase,
}

impl Lanes {
    pub(crate) fn new(settings: LaneSettings) -> Self {
        let max_burst = settings.max_burst;
        let state = |handler| HandlerState::new(handler, max_burst);
        Self {
            stop_on_failure: settings.stop_on_failure,
            keys: Keys::new(),
            handlers: settings.handlers.map(state),
            records: Memory::new(),
            deliveries: Memory::new(),
            generation: Generation::default(),
            outgoing: Outgoing::default(),
            ready: Vec::new(),
            to_load: Vec::new(),
            closing: BTreeSet::new(),
            fetch: FetchPhase::Idle,
        }
    }

    /// How many lanes are in memory.
    pub(crate) fn lane_count(&self) -> usize {
        self.lanes().count()
    }

    /// All lanes, each with its key.
    fn lanes(&self) -> impl Iterator<Item = (&str, &Lane)> {
        let keys = self.keys.iter();
        keys.flat_map(|(name, key)| key.lanes().iter().map(|lane| (&**name, lane)))
    }

    /// How many records and deliveries are in memory.
    pub(crate) fn in_memory(&self) -> usize {
        self.records.len() + self.deliveries.len()
    }

    /// Records that were read as pending or scheduled.
    pub(crate) fn records_in_memory(&self) -> Vec<InMemory> {
        let records = self.records.iter();
        records
            .map(|(id, partition)| InMemory { partition, id })
            .collect()
    }

    pub(crate) fn deliveries_in_memory(&self) -> HashSet<(i64, HandlerIx)> {
        self.deliveries.iter().map(|(id, _)| id).collect()
    }

    /// Takes the bursts to start now. They have their slots already.
    pub(crate) fn take_bursts(&mut self) -> Vec<Burst> {
        mem::take(&mut self.ready)
    }

    pub(crate) fn has_bursts(&self) -> bool {
        !self.ready.is_empty()
    }

    /// How many whole records the next batch completes.
    pub(crate) fn completions(&self) -> usize {
        self.outgoing.completions()
    }

    /// Whether the next batch contains only completed records.
    pub(crate) fn has_only_completions(&self) -> bool {
        self.outgoing.has_only_completions()
    }

    pub(crate) fn has_lanes_to_load(&self) -> bool {
        !self.to_load.is_empty()
    }

    /// The keys in memory in which a delivery blocks, or may block once it is written, each with
    /// its partition: those with a lane that has rows, or had some since it is in memory.
    pub(crate) fn blocking_keys(&self) -> impl Iterator<Item = (Partition, &str)> {
        let keys = self.keys.iter();
        keys.filter(|(_, key)| key.lanes().iter().any(Lane::had_rows))
            .map(|(name, key)| (key.partition(), &**name))
    }

    /// The origin of a record that is read now.
    fn origin(&self, partition: Partition) -> Origin {
        Origin {
            partition,
            generation: self.generation,
        }
    }

    fn lane(&mut self, key: &str, handler: HandlerIx) -> Option<&mut Lane> {
        self.keys.get_mut(key)?.lane(handler)
    }

    #[cfg(test)]
    pub(crate) fn has_batch(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Everything in memory as text, or `None` if memory is empty.
    #[cfg(test)]
    pub(crate) fn leftovers(&self) -> Option<String> {
        let is_fetching = matches!(&self.fetch, FetchPhase::UnderWay { forget_after } if !forget_after.is_empty());
        let is_used = self.in_memory() > 0
            || !self.keys.is_empty()
            || self.has_bursts()
            || self.has_lanes_to_load()
            || is_fetching
            || !self.closing.is_empty()
            || self.has_batch()
            || self.handlers.iter().any(|(_, state)| !state.is_unused());
        is_used.then(|| format!("{self:?}"))
    }
}
