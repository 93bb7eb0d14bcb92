//! One lane: the records of one key for one handler, in order.

use std::{collections::VecDeque, sync::Arc};

use crate::record::{Attempt, Record};
use crate::runtime::lane::{Burst, Work};

/// A handler by its place in the registry.
pub(crate) type HandlerIx = u16;

/// What a lane knows of the database behind its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// The queue is everything: a new record goes to its end.
    Open,
    /// Further records are parked in the database behind the queue: a new record is parked too.
    /// When the queue is empty, the next parked ones are read.
    Behind,
    /// They are being read. Whether something was parked meanwhile.
    Checking { again: bool },
    /// The first record is in the database, and is not to run now: it waits for its retry, has
    /// failed, or its handler is paused. A new record is parked behind it.
    Blocked,
}

/// A record in a lane.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) record: Arc<Record>,
    pub(super) attempt: Attempt,
    /// Whether it has a delivery row of its own. Without one its record is still pending.
    pub(super) stored: bool,
    /// Whether it was read from that row. If not, the row may not be written yet.
    pub(super) read: bool,
}

/// Lives in memory while something of it does. What it forgets then, the database knows.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) handler: HandlerIx,
    pub(super) stand: Stand,
    /// Oldest first; what runs is in here until it has ended.
    pub(super) queue: VecDeque<Item>,
    /// How many of the queue, from its front, make up the lane's turn: the first one runs, and
    /// each of the others once the one before it is done. The others may as well not be begun.
    pub(super) turn: usize,
    /// In its handler's queue for a free place.
    pub(super) queued_for_place: bool,
    /// Changes of this lane that are not yet written.
    pub(super) settling: u32,
    /// What a fetch that is under way says about this lane may be out of date: the lane has to
    /// stay until that has arrived.
    pub(super) lingers: bool,
}

impl Lane {
    pub(super) fn new(handler: HandlerIx, stand: Stand) -> Self {
        Self {
            handler,
            stand,
            queue: VecDeque::new(),
            turn: 0,
            queued_for_place: false,
            settling: 0,
            lingers: stand != Stand::Open,
        }
    }

    /// Begins a turn of at most so many.
    pub(super) fn take_turn(&mut self, part: u16, most: usize) -> Option<Burst> {
        let handler = self.handler;
        let mut works = self.queue.iter().take(most.max(1)).map(|item| Work {
            record: Arc::clone(&item.record),
            part,
            handler,
            attempt: item.attempt,
            from_row: item.read,
            is_detached: false,
        });
        let first = works.next()?;
        let rest: Vec<Work> = works.collect();
        self.turn = 1 + rest.len();
        Some(Burst { first, rest })
    }

    /// The record that runs.
    pub(super) fn running(&self) -> Option<&Item> {
        self.queue.front().filter(|_| self.turn > 0)
    }

    /// Those that are not in its turn leave the queue.
    pub(super) fn take_waiting(&mut self) -> impl Iterator<Item = Item> {
        self.queue.drain(self.turn..)
    }

    /// Says that a record was parked behind this lane.
    pub(super) fn parked(&mut self) {
        self.settling += 1;
        self.lingers = true;
        match &mut self.stand {
            Stand::Checking { again } => *again = true,
            Stand::Open => self.stand = Stand::Behind,
            Stand::Behind | Stand::Blocked => {}
        }
    }

    /// Nothing of it is in memory that the database does not know.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
            && self.settling == 0
            && matches!(self.stand, Stand::Open | Stand::Blocked)
    }
}
