//! Properties of every policy that can be built: no panic, no overflow, and each delay is within
//! the interval of its jitter, for every number of failures.

use std::time::Duration;

use proptest::prelude::*;

use super::{Jitter, Retry, RetryBuilder, RetryPolicy as _};

fn any_duration() -> impl Strategy<Value = Duration> + Clone {
    prop_oneof![
        (1..1_000_000u64).prop_map(Duration::from_micros),
        (1..1_000_000u64).prop_map(Duration::from_millis),
        (1..u64::MAX).prop_map(Duration::from_secs),
        Just(Duration::MAX),
    ]
}

/// A back-off and its longest delay.
fn any_backoff() -> impl Strategy<Value = (RetryBuilder, Duration)> {
    let ordered = (any_duration(), any_duration()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let multiplier = prop_oneof![1.0001..10.0f64, Just(f64::MAX), Just(1.0 + f64::EPSILON)];
    let start = Retry::builder;
    prop_oneof![
        any_duration().prop_map(move |delay| (start().fixed(delay), delay)),
        (ordered.clone(), any_duration()).prop_map(move |((initial, max), increment)| {
            (start().linear(initial, increment, max), max)
        }),
        (ordered, multiplier).prop_map(move |((initial, max), multiplier)| {
            (start().exponential(initial, multiplier, max), max)
        }),
        any_duration().prop_map(move |delay| (start().backoff(move |_: u32| delay), delay)),
    ]
}

fn any_jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        any_duration().prop_map(Jitter::Around),
        any_duration().prop_map(Jitter::Above),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        (0.0..=1.0f64).prop_map(Jitter::Proportional),
        Just(Jitter::Decorrelated),
    ]
}

/// `share` of a duration, in nanoseconds, as a float: within one part in 10^12 of the truth.
fn nanos(duration: Duration, share: f64) -> f64 {
    duration.as_secs_f64() * 1e9 * share
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn every_delay_is_within_its_stated_interval(
        (builder, max) in any_backoff(),
        jitter in any_jitter(),
        failure_count in prop_oneof![1..40u32, any::<u32>(), Just(u32::MAX), Just(0)],
        random in prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)],
    ) {
        let delay_of = |jitter: Jitter, failure_count| {
            let builder = builder.clone().jitter(jitter).random(move || random);
            builder.build().unwrap().next_delay(failure_count)
        };
        let base = delay_of(Jitter::None, failure_count);
        prop_assert!(base <= max, "{base:?} is above the cap");
        let initial = delay_of(Jitter::None, 1);
        let previous = delay_of(Jitter::None, failure_count.saturating_sub(1).max(1));

        let (low, high) = match jitter {
            Jitter::Around(d) => ((nanos(base, 1.0) - nanos(d, 1.0)).max(0.0), nanos(base, 1.0) + nanos(d, 1.0)),
            Jitter::Above(d) => (nanos(base, 1.0), nanos(base, 1.0) + nanos(d, 1.0)),
            Jitter::Full => (0.0, nanos(base, 1.0)),
            Jitter::Equal => (nanos(base, 0.5), nanos(base, 1.0)),
            Jitter::Proportional(share) => (nanos(base, 1.0 - share), nanos(base, 1.0 + share)),
            Jitter::Decorrelated => (nanos(initial, 1.0), nanos(previous, 3.0).max(nanos(initial, 1.0))),
            _ => (nanos(base, 1.0), nanos(base, 1.0)),
        };
        // The interval ends at the longest `Duration`.
        let high = high.min(nanos(Duration::MAX, 1.0));
        let delay = delay_of(jitter, failure_count);
        let slack = 2.0 + high * 1e-9;
        prop_assert!(
            low - slack <= nanos(delay, 1.0) && nanos(delay, 1.0) <= high + slack,
            "{delay:?} is outside {low}..{high} ns"
        );
        if jitter == Jitter::Decorrelated && max < Duration::MAX / 3 {
            // A fixed or custom back-off has no cap of its own: its longest delay is three times its base.
            prop_assert!(delay <= max.max(previous * 3));
        }
    }

    #[test]
    fn both_ends_of_an_interval_are_reached(base_ms in 1_000..1_000_000u64, spread_ms in 1..1_000u64) {
        let spread = Duration::from_millis(spread_ms);
        let base = Duration::from_millis(base_ms);
        let drawn = |random: u64| {
            let builder = Retry::builder().fixed(base).jitter(spread).random(move || random);
            builder.build().unwrap().next_delay(1)
        };
        prop_assert_eq!(drawn(0), base - spread);
        prop_assert_eq!(drawn(u64::MAX), base + spread);
    }
}
