//! [`Activity`] and [`Backlog`]: the two states of a lane, and how they may change.

use std::{fmt::Debug, num::NonZeroUsize};

/// The activity of a lane in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    Idle,
    /// The first record waits for a free slot.
    AwaitingSlot,
    /// A worker has the first `burst` records of the queue. Only the first has certainly started.
    Running {
        burst: NonZeroUsize,
    },
}

/// The rows of a lane in the database, behind the queue in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backlog {
    /// There are none. The queue is the whole lane, and a new record joins it.
    None,
    /// Parked deliveries. A new record is parked too; they are loaded when the queue is empty.
    Parked,
    /// Parked deliveries that are being loaded. `grew`: one more was parked meanwhile.
    Loading { grew: bool },
    /// The first delivery must not run now: it waits for its retry, for a person, or for a paused
    /// handler. A new record is parked behind it.
    Blocked,
}

/// A state that changes only as its table says. Losing the partition ends a lane in any state.
pub(super) trait State: Copy + Debug {
    /// Every legal change, one per line: from, event, to. `ARCHITECTURE.md` shows them.
    const TRANSITIONS: &'static str;

    /// The name of the variant, without its fields.
    fn name(self) -> String {
        let text = format!("{self:?}");
        text.split(' ').next().unwrap_or_default().to_owned()
    }

    fn set(&mut self, to: Self) {
        debug_assert!(self.may_become(to), "{self:?} must not become {to:?}");
        *self = to;
    }

    /// Called in debug builds only.
    fn may_become(self, to: Self) -> bool {
        let (from, to) = (self.name(), to.name());
        let mut rows = Self::TRANSITIONS.lines().map(|row| row.split(" | "));
        rows.any(|mut row| (row.next(), row.nth(1)) == (Some(&*from), Some(&*to)))
    }
}

impl State for Activity {
    const TRANSITIONS: &'static str = "\
Idle | its queue is not empty and a slot is free | Running
Idle | its queue is not empty and no slot is free | AwaitingSlot
AwaitingSlot | a slot is granted | Running
AwaitingSlot | its queue is parked, evicted or closed | Idle
Running | its first record completed and more are in the burst | Running
Running | its first record failed, was the last, or the rest was not started | Idle";
}

/// A lane leaves memory in the state `None` or `Blocked`.
impl State for Backlog {
    const TRANSITIONS: &'static str = "\
None | a record is parked, or its rows leave memory while it runs or closes | Parked
None | its first record failed and blocks, or its handler is paused, or it is evicted | Blocked
Parked | one more record is parked | Parked
Parked | its queue is empty and everything is written | Loading
Parked | its first record failed and blocks, or its handler is paused, or it is evicted | Blocked
Loading | one more record is parked | Loading
Loading | rows were loaded and nothing follows | None
Loading | rows were loaded and more follow, or its partition closed | Parked
Loading | its first row may not run now, or its handler is paused | Blocked
Blocked | one more record is parked, or another one blocks | Blocked
Blocked | its due delivery arrives and nothing follows | None
Blocked | its due delivery arrives and more follow, or a search found it runnable | Parked";
}

/// The two tables, for the documentation.
#[cfg(test)]
pub(crate) const TABLES: [(&str, &str); 2] = [
    ("lane-backlog", Backlog::TRANSITIONS),
    ("lane-activity", Activity::TRANSITIONS),
];
