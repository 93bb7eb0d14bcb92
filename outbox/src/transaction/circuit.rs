//! [`Circuit`]: refuses attempts while the database is unreachable.

use std::time::Duration;

use jiff::Timestamp;

use crate::outbox::clock::later;

/// When an operation refuses attempts because the database is unreachable, and when it probes. All
/// operations of one pool count failures together; each has its own numbers.
///
/// | | default |
/// |---|---|
/// | The circuit opens after this many attempts in a row that could not reach the database. | 5 |
/// | Then one attempt, the probe, may start after this time. | 1 s |
/// | The time doubles with each probe that fails, up to this one. | 30 s |
///
/// An attempt could not reach the database if it got no connection, lost it, or reached its deadline
/// or its limit before the transaction began. The first transaction that begins closes the circuit
/// for all operations. While the circuit is open, `run` fails at once with
/// [`Stopped::CircuitOpen`](super::Stopped::CircuitOpen).
///
/// ```
/// use std::time::Duration;
/// use outbox::transaction::{Circuit, TxRetry};
///
/// // A job that rather waits: ten failures, and a probe every five seconds.
/// let patient = Circuit::default()
///     .failures(10)
///     .first_pause(Duration::from_secs(5))
///     .max_pause(Duration::from_secs(5));
/// let policy = TxRetry::background().circuit(patient);
/// let without = TxRetry::background().circuit(None);
/// # let _ = (policy, without);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a circuit is part of a policy"]
pub struct Circuit {
    failures: u32,
    first_pause: Duration,
    max_pause: Duration,
}

impl Default for Circuit {
    fn default() -> Self {
        Self {
            failures: 5,
            first_pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(30),
        }
    }
}

impl Circuit {
    /// The circuit opens after this many failures in a row; at least 1.
    pub fn failures(mut self, failures: u32) -> Self {
        self.failures = failures.max(1);
        self
    }

    /// The time until the first probe. It doubles with each probe that fails.
    pub fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// The longest time until the next probe.
    pub fn max_pause(mut self, pause: Duration) -> Self {
        self.max_pause = pause;
        self
    }

    /// The time until the next probe after this many failures in a row, or `None` if the circuit is
    /// closed.
    fn pause(self, failures: u32) -> Option<Duration> {
        let probes = failures.checked_sub(self.failures)?.min(16);
        Some(
            self.first_pause
                .saturating_mul(1 << probes)
                .min(self.max_pause),
        )
    }
}

/// Whether the database was reachable, as all operations of one pool found. Pure: the caller passes
/// the time and the numbers of its operation, or `None` if it has no circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reachability {
    /// Failures in a row to reach the database.
    failures: u32,
    /// The time of the last failure or probe.
    last: Option<Timestamp>,
    /// The failures have opened the circuit of at least one operation.
    is_open: bool,
}

impl Reachability {
    /// Whether an attempt may start. While the circuit is open, only a probe may. If the caller of
    /// a probe is dropped, the next probe may start after the same pause.
    #[must_use]
    pub(super) fn admit(&mut self, circuit: Option<Circuit>, now: Timestamp) -> bool {
        let pause = circuit.and_then(|circuit| circuit.pause(self.failures));
        let Some((pause, last)) = pause.zip(self.last) else {
            return true;
        };
        let may_probe = now >= later(last, pause);
        if may_probe {
            self.last = Some(now);
        }
        may_probe
    }

    /// The database answered. Returns whether a circuit was open; now it is closed.
    pub(super) fn on_reached(&mut self) -> bool {
        let was_open = self.is_open;
        *self = Self::default();
        was_open
    }

    /// The database could not be reached. Returns whether this opened the first circuit.
    pub(super) fn on_unreachable(&mut self, circuit: Option<Circuit>, now: Timestamp) -> bool {
        self.failures = self.failures.saturating_add(1);
        self.last = Some(now);
        let was_open = self.is_open;
        let opens = circuit
            .and_then(|circuit| circuit.pause(self.failures))
            .is_some();
        self.is_open |= opens;
        opens && !was_open
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(seconds: u64) -> Timestamp {
        later(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds))
    }

    const DEFAULT: Circuit = Circuit {
        failures: 5,
        first_pause: Duration::from_secs(1),
        max_pause: Duration::from_secs(30),
    };

    fn open() -> Reachability {
        let mut database = Reachability::default();
        for failure in 1..=5 {
            assert!(database.admit(Some(DEFAULT), after(0)));
            let opened = database.on_unreachable(Some(DEFAULT), after(0));
            assert_eq!(opened, failure == 5);
        }
        database
    }

    #[test]
    fn the_default_has_the_documented_numbers() {
        assert_eq!(Circuit::default(), DEFAULT);
        let pauses = [4, 5, 6, 7, 8, 9, 10, 11, u32::MAX].map(|failures| DEFAULT.pause(failures));
        let seconds = pauses.map(|pause| pause.map(|pause| pause.as_secs()));
        let expected = [1, 2, 4, 8, 16, 30, 30, 30].map(Some);
        assert_eq!(seconds[0], None);
        assert_eq!(seconds[1..], expected);
    }

    #[test]
    fn each_operation_has_its_own_numbers_or_none() {
        let (mut database, patient) = (open(), DEFAULT.failures(6));
        assert!(!database.admit(Some(DEFAULT), after(0)));
        assert!(database.admit(Some(patient), after(0)));
        assert!(database.admit(None, after(0)));
        let opened_again = database.on_unreachable(Some(patient), after(0));
        assert!(!opened_again, "one circuit was open before");
        assert!(!database.admit(Some(patient), after(0)));
        assert!(database.admit(None, after(0)));
        // The failures of an operation without a circuit count for the others.
        let mut database = Reachability::default();
        for _ in 0..5 {
            assert!(!database.on_unreachable(None, after(0)));
        }
        assert!(!database.admit(Some(DEFAULT), after(0)));
    }

    #[test]
    fn it_opens_after_failures_in_a_row() {
        let mut database = open();
        assert!(!database.admit(Some(DEFAULT), after(0)));
        let mut broken_row = Reachability::default();
        for _ in 0..100 {
            broken_row.on_unreachable(Some(DEFAULT), after(0));
            broken_row.on_unreachable(Some(DEFAULT), after(0));
            broken_row.on_reached();
        }
        assert!(broken_row.admit(Some(DEFAULT), after(0)));
    }

    #[test]
    fn one_attempt_probes_and_an_answer_closes_it() {
        let mut database = open();
        assert!(database.admit(Some(DEFAULT), after(1)));
        assert!(
            !database.admit(Some(DEFAULT), after(1)),
            "the probe is under way"
        );
        assert!(database.on_reached());
        assert!(database.admit(Some(DEFAULT), after(1)));
    }

    #[test]
    fn a_probe_that_fails_makes_the_pause_longer() {
        let mut database = open();
        assert!(database.admit(Some(DEFAULT), after(1)));
        assert!(!database.on_unreachable(Some(DEFAULT), after(1)));
        assert!(!database.admit(Some(DEFAULT), after(2)));
        assert!(database.admit(Some(DEFAULT), after(3)));
    }

    #[test]
    fn a_dropped_probe_does_not_keep_it_open_forever() {
        let mut database = open();
        assert!(database.admit(Some(DEFAULT), after(1)));
        assert!(database.admit(Some(DEFAULT), after(2)));
    }

    proptest! {
        #[test]
        fn it_is_never_open_for_longer_than_the_longest_pause(
            steps in proptest::collection::vec((0..3u8, 0..40u64), 0..100)
        ) {
            let (mut database, mut seconds) = (Reachability::default(), 0);
            for (step, wait) in steps {
                seconds += wait;
                match step {
                    0 => { let _ = database.admit(Some(DEFAULT), after(seconds)); }
                    1 => { database.on_unreachable(Some(DEFAULT), after(seconds)); }
                    _ => { database.on_reached(); }
                }
            }
            prop_assert!(database.admit(Some(DEFAULT), after(seconds + 30)));
        }
    }
}
