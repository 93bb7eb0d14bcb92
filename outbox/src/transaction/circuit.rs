//! A circuit that opens when the database is unreachable, and probes before it closes.

use std::time::Duration;

use jiff::Timestamp;

use crate::outbox::clock::later;

/// After how many failures in a row nobody tries any more.
const FAILURES: u32 = 5;
/// How long nobody tries, at first and at most.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// Whether the database is worth trying. Pure: the caller says what time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Circuit {
    /// Failures to reach the database, in a row.
    failures: u32,
    /// Nobody tries before this; then one does, and moves it.
    closed_until: Option<Timestamp>,
}

impl Circuit {
    /// Whether an attempt may start. While the circuit is open one may from time to time: the
    /// probe. If its caller goes away without an answer, the next one is let through later.
    #[must_use]
    pub(crate) fn admit(&mut self, now: Timestamp) -> bool {
        match self.closed_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                self.closed_until = Some(later(now, self.pause()));
                true
            }
        }
    }

    /// The database answered. Whether the circuit closes by that.
    pub(crate) fn reached(&mut self) -> bool {
        let opened = self.closed_until.is_some();
        *self = Self::default();
        opened
    }

    /// The database could not be reached. Whether the circuit opens by that.
    pub(crate) fn unreachable(&mut self, now: Timestamp) -> bool {
        self.failures = self.failures.saturating_add(1);
        if self.failures < FAILURES {
            return false;
        }
        let was_open = self.closed_until.is_some();
        self.closed_until = Some(later(now, self.pause()));
        !was_open
    }

    /// Longer with each probe that failed.
    fn pause(&self) -> Duration {
        let probes = self.failures.saturating_sub(FAILURES).min(16);
        FIRST.saturating_mul(1 << probes).min(LONGEST)
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
        for failure in 1..=FAILURES {
            assert!(circuit.admit(after(0)));
            assert_eq!(circuit.unreachable(after(0)), failure == FAILURES);
        }
        circuit
    }

    #[test]
    fn it_opens_after_failures_in_a_row() {
        let mut circuit = open();
        assert!(!circuit.admit(after(0)));
        let mut broken_row = Circuit::default();
        for _ in 0..100 {
            broken_row.unreachable(after(0));
            broken_row.unreachable(after(0));
            broken_row.reached();
        }
        assert!(broken_row.admit(after(0)));
    }

    #[test]
    fn one_probes_and_an_answer_closes_it() {
        let mut circuit = open();
        assert!(circuit.admit(after(1)));
        assert!(!circuit.admit(after(1)), "the probe is under way");
        assert!(circuit.reached());
        assert!(circuit.admit(after(1)));
    }

    #[test]
    fn a_probe_that_fails_makes_the_pause_longer() {
        let mut circuit = open();
        assert!(circuit.admit(after(1)));
        assert!(!circuit.unreachable(after(1)));
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
                    1 => { circuit.unreachable(after(seconds)); }
                    _ => { circuit.reached(); }
                }
            }
            prop_assert!(circuit.admit(after(seconds + LONGEST.as_secs())));
        }
    }
}
