//! [`Circuit`]: refuses attempts while the database is unreachable.

use std::time::Duration;

use jiff::Timestamp;

use crate::outbox::clock::later;

/// The circuit opens after this many failures in a row.
const MAX_FAILURES: u32 = 5;
/// The time until the first probe. It doubles with each probe that fails.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Refuses attempts while the database is unreachable, except for a probe now and then. Pure: the
/// caller passes the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Circuit {
    /// Failures in a row to reach the database.
    failures: u32,
    /// Set while the circuit is open: no attempt starts before this time. The next attempt is the
    /// probe, and moves it.
    next_probe: Option<Timestamp>,
}

impl Circuit {
    /// Whether an attempt may start. While the circuit is open, only a probe may. If the caller of
    /// a probe is dropped, the next probe may start after the same pause.
    #[must_use]
    pub(super) fn admit(&mut self, now: Timestamp) -> bool {
        match self.next_probe {
            None => true,
            Some(next_probe) if now < next_probe => false,
            Some(_) => {
                self.next_probe = Some(later(now, self.pause()));
                true
            }
        }
    }

    /// The database answered. Returns whether the circuit was open; now it is closed.
    pub(super) fn on_reached(&mut self) -> bool {
        let was_open = self.next_probe.is_some();
        *self = Self::default();
        was_open
    }

    /// The database could not be reached. Returns whether this opened the circuit.
    pub(super) fn on_unreachable(&mut self, now: Timestamp) -> bool {
        self.failures = self.failures.saturating_add(1);
        if self.failures < MAX_FAILURES {
            return false;
        }
        let was_open = self.next_probe.is_some();
        self.next_probe = Some(later(now, self.pause()));
        !was_open
    }

    /// The time until the next probe.
    fn pause(&self) -> Duration {
        let probes = self.failures.saturating_sub(MAX_FAILURES).min(16);
        FIRST_PAUSE.saturating_mul(1 << probes).min(MAX_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(seconds: u64) -> Timestamp {
        later(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds))
    }

    fn open() -> Circuit {
        let mut circuit = Circuit::default();
        for failure in 1..=MAX_FAILURES {
            assert!(circuit.admit(after(0)));
            assert_eq!(circuit.on_unreachable(after(0)), failure == MAX_FAILURES);
        }
        circuit
    }

    #[test]
    fn it_opens_after_failures_in_a_row() {
        let mut circuit = open();
        assert!(!circuit.admit(after(0)));
        let mut broken_row = Circuit::default();
        for _ in 0..100 {
            broken_row.on_unreachable(after(0));
            broken_row.on_unreachable(after(0));
            broken_row.on_reached();
        }
        assert!(broken_row.admit(after(0)));
    }

    #[test]
    fn one_probes_and_an_answer_closes_it() {
        let mut circuit = open();
        assert!(circuit.admit(after(1)));
        assert!(!circuit.admit(after(1)), "the probe is under way");
        assert!(circuit.on_reached());
        assert!(circuit.admit(after(1)));
    }

    #[test]
    fn a_probe_that_fails_makes_the_pause_longer() {
        let mut circuit = open();
        assert!(circuit.admit(after(1)));
        assert!(!circuit.on_unreachable(after(1)));
        assert!(!circuit.admit(after(2)));
        assert!(circuit.admit(after(3)));
    }

    #[test]
    fn a_probe_that_goes_away_does_not_keep_it_open_for_ever() {
        let mut circuit = open();
        assert!(circuit.admit(after(1)));
        assert!(circuit.admit(after(2)));
    }

    proptest! {
        #[test]
        fn it_is_never_open_for_longer_than_the_longest_pause(
            steps in proptest::collection::vec((0..3u8, 0..40u64), 0..100)
        ) {
            let (mut circuit, mut seconds) = (Circuit::default(), 0);
            for (step, wait) in steps {
                seconds += wait;
                match step {
                    0 => { let _ = circuit.admit(after(seconds)); }
                    1 => { circuit.on_unreachable(after(seconds)); }
                    _ => { circuit.on_reached(); }
                }
            }
            prop_assert!(circuit.admit(after(seconds + MAX_PAUSE.as_secs())));
        }
    }
}
