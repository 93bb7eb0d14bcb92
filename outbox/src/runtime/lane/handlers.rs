//! [`HandlerState`]: a handler as lanes see it.

use super::slots::Slots;

/// What does not change while lanes live, of one handler.
#[derive(Debug, Clone)]
pub(crate) struct HandlerSettings {
    /// The stored id.
    pub(crate) id: &'static str,
    /// How many of its invocations may run at once in this process.
    pub(crate) concurrency: u32,
    /// A record that failed for good lets the records behind it run.
    pub(crate) skips_failed: bool,
    /// The handler completes its records itself, in its own transaction.
    pub(crate) is_transactional: bool,
}

/// A handler: what it is, whether it may run, and its slots. Only lanes write it.
#[derive(Debug)]
pub(super) struct HandlerState {
    settings: HandlerSettings,
    availability: Availability,
    slots: Slots,
    /// Lanes of it that could run may be in the database only: they were evicted, or a fetch found
    /// more than its limit.
    needs_refill: bool,
}

/// Whether this process may run a handler now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    Here,
    Paused,
}

impl HandlerState {
    pub(super) fn new(settings: HandlerSettings, max_burst: usize) -> Self {
        // Each record of a transactional handler waits for a transaction of its own.
        let max_burst = if settings.is_transactional {
            1
        } else {
            max_burst
        };
        Self {
            slots: Slots::new(settings.concurrency, max_burst),
            settings,
            availability: Availability::Here,
            needs_refill: false,
        }
    }

    pub(super) fn id(&self) -> &'static str {
        self.settings.id
    }

    pub(super) fn skips_failed(&self) -> bool {
        self.settings.skips_failed
    }

    pub(super) fn is_transactional(&self) -> bool {
        self.settings.is_transactional
    }

    pub(super) fn is_available(&self) -> bool {
        self.availability == Availability::Here
    }

    /// The availability before.
    pub(super) fn set_availability(&mut self, availability: Availability) -> Availability {
        std::mem::replace(&mut self.availability, availability)
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(super) fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// Whether a fetch is to look for lanes of it that could run. Not while lanes in memory wait.
    pub(super) fn needs_refill(&self) -> bool {
        self.needs_refill && self.is_available() && !self.slots.has_waiting()
    }

    pub(super) fn set_needs_refill(&mut self, needs_refill: bool) {
        self.needs_refill = needs_refill;
    }
}
