//! The builder and the hand-written policies from the documentation of the libraries that this one
//! follows, in Rust: their schedules, and which errors they retry.

use std::{fmt, io, num::ParseIntError, time::Duration};

use outbox::{HandlerError, Retry, RetryBuilder, RetryPolicy, retry::backoff};

use crate::{schedule, secs};

const fn sec(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Defines error types, one for each rule of a policy.
macro_rules! errors {
    ($($name:ident),*) => {$(
        #[derive(Debug)]
        struct $name;
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
        impl std::error::Error for $name {}
    )*};
}
errors!(Timeout, Declined, FileNotFound, Retryable, Denied);

fn illegal_argument() -> ParseIntError {
    "x".parse::<i32>().unwrap_err()
}

fn down() -> io::Error {
    io::Error::other("down")
}

fn retries(policy: &dyn RetryPolicy, error: impl Into<HandlerError>) -> bool {
    policy.should_retry(&error.into())
}

/// The shortest and the longest delay before each retry.
fn bounds(builder: &RetryBuilder) -> (Vec<Duration>, Vec<Duration>) {
    let drawn = |random: u64| schedule(&builder.clone().random(move || random).build().unwrap());
    (drawn(0), drawn(u64::MAX))
}

#[test]
fn the_defaults_are_three_retries_five_seconds_apart_on_any_error() {
    let retry = Retry::builder().build().unwrap();
    assert_eq!(schedule(&retry), secs([5; 3]));
    assert!(retries(&retry, "anything") && retries(&retry, Timeout));
}

#[test]
fn a_method_of_a_cloned_builder_does_not_change_the_original() {
    let builder = Retry::builder().max_retries(1);
    let changed = builder.clone().max_retries(2).no_retry_on::<Timeout>();
    let (first, second) = (builder.build().unwrap(), changed.build().unwrap());
    assert_eq!((first.max_retries(), second.max_retries()), (1, 2));
    assert!(retries(&first, Timeout) && !retries(&second, Timeout));
}

#[test]
fn zero_durations_and_small_multipliers_are_refused_and_a_zero_jitter_is_not() {
    let zero = Duration::ZERO;
    for builder in [
        Retry::builder().fixed(zero),
        Retry::builder().linear(zero, sec(1), sec(9)),
        Retry::builder().linear(sec(1), zero, sec(9)),
        Retry::builder().linear(sec(1), sec(1), zero),
        Retry::builder().exponential(zero, 2.0, sec(9)),
        Retry::builder().exponential(sec(1), 1.0, sec(9)),
        Retry::builder().exponential(sec(1), 2.0, zero),
    ] {
        assert!(builder.clone().build().is_err(), "{builder:?}");
    }
    assert!(Retry::builder().jitter(zero).build().is_ok());
}

#[test]
fn the_example_of_the_builder_section_has_its_documented_schedule_and_rules() {
    let builder = Retry::builder()
        .max_retries(5)
        .exponential(sec(10), 2.0, sec(300))
        .jitter(sec(2))
        .retry_on::<Timeout>()
        .retry_on::<io::Error>()
        .no_retry_on::<ParseIntError>();
    let (earliest, latest) = bounds(&builder);
    assert_eq!(earliest, secs([8, 18, 38, 78, 158]));
    assert_eq!(latest, secs([12, 22, 42, 82, 162]));
    let retry = builder.build().unwrap();
    assert!(retries(&retry, Timeout) && retries(&retry, down()));
    assert!(!retries(&retry, illegal_argument()) && !retries(&retry, Declined));
}

#[test]
fn each_strategy_of_the_options_section_has_its_documented_schedule() {
    let five = |builder: RetryBuilder| schedule(&builder.max_retries(5).build().unwrap());
    assert_eq!(five(Retry::builder().fixed(sec(30))), secs([30; 5]));
    assert_eq!(
        five(Retry::builder().linear(sec(5), sec(5), sec(120))),
        secs([5, 10, 15, 20, 25])
    );
    assert_eq!(
        five(Retry::builder().exponential(sec(10), 2.0, sec(300))),
        secs([10, 20, 40, 80, 160])
    );
    let custom = |failure_count: u32| sec(u64::from(failure_count).pow(2));
    assert_eq!(
        five(Retry::builder().backoff(custom)),
        secs([1, 4, 9, 16, 25])
    );

    let jittered = Retry::builder()
        .max_retries(1)
        .fixed(sec(30))
        .jitter(sec(5));
    assert_eq!(bounds(&jittered), (secs([25]), secs([35])));
}

#[test]
fn each_filter_of_the_options_section_retries_its_documented_errors() {
    let only = Retry::builder()
        .retry_on::<Timeout>()
        .retry_on::<io::Error>()
        .build()
        .unwrap();
    assert!(retries(&only, Timeout) && retries(&only, down()) && !retries(&only, Declined));

    let except = Retry::builder()
        .no_retry_on::<ParseIntError>()
        .no_retry_on::<Declined>()
        .build()
        .unwrap();
    assert!(retries(&except, Timeout));
    assert!(!retries(&except, illegal_argument()) && !retries(&except, Declined));

    let predicate = Retry::builder()
        .retry_if(|error| error.is::<Retryable>() || error.is::<Timeout>())
        .build()
        .unwrap();
    assert!(retries(&predicate, Retryable) && retries(&predicate, io::Error::other(Timeout)));
    assert!(!retries(&predicate, Declined));

    let combined = Retry::builder()
        .retry_on::<io::Error>()
        .no_retry_on::<FileNotFound>()
        .retry_if(|error| error.to_string().contains("transient"))
        .build()
        .unwrap();
    assert!(retries(&combined, down()) && retries(&combined, "a transient fault"));
    assert!(
        !retries(&combined, io::Error::other(FileNotFound)),
        "`no_retry_on` wins over `retry_on`"
    );
    assert!(!retries(&combined, "another fault"));
}

#[test]
fn the_complete_examples_have_their_documented_schedules_and_rules() {
    let simple = Retry::builder()
        .max_retries(5)
        .exponential(sec(10), 2.0, sec(300))
        .build()
        .unwrap();
    assert_eq!(schedule(&simple), secs([10, 20, 40, 80, 160]));

    let builder = Retry::builder()
        .max_retries(10)
        .linear(sec(5), sec(5), sec(120))
        .jitter(sec(2))
        .retry_on::<Timeout>()
        .retry_on::<io::Error>()
        .no_retry_on::<ParseIntError>()
        .retry_if(|error| error.to_string().to_lowercase().contains("retry"));
    let (earliest, latest) = bounds(&builder);
    assert_eq!(earliest, secs([3, 8, 13, 18, 23, 28, 33, 38, 43, 48]));
    assert_eq!(latest, secs([7, 12, 17, 22, 27, 32, 37, 42, 47, 52]));
    let advanced = builder.build().unwrap();
    assert!(retries(&advanced, Timeout) && retries(&advanced, "please RETRY later"));
    assert!(!retries(&advanced, illegal_argument()) && !retries(&advanced, Declined));
}

#[test]
fn configured_values_are_refined_in_code() {
    let config: outbox::Config =
        serde_json::from_str(r#"{ "retry": { "max-retries": 2 } }"#).unwrap();
    let retry = Retry::from_config(&config.retry)
        .retry_on::<Timeout>()
        .retry_on::<io::Error>()
        .no_retry_on::<ParseIntError>()
        .build()
        .unwrap();
    assert_eq!(schedule(&retry), secs([1, 2]));
    assert!(retries(&retry, Timeout) && !retries(&retry, Declined));
}

/// The policy for all handlers.
struct Global;

impl RetryPolicy for Global {
    fn should_retry(&self, error: &HandlerError) -> bool {
        if error.is::<ParseIntError>() || error.is::<Declined>() {
            return false;
        }
        error.is::<Timeout>() || error.is::<io::Error>()
    }
    fn next_delay(&self, failure_count: u32) -> Duration {
        backoff::exponential(sec(1), 2.0, sec(60), failure_count)
    }
    fn max_retries(&self) -> u32 {
        5
    }
}

struct Aggressive;

impl RetryPolicy for Aggressive {
    fn next_delay(&self, _: u32) -> Duration {
        Duration::from_millis(500)
    }
    fn max_retries(&self) -> u32 {
        10
    }
}

struct Conservative;

impl RetryPolicy for Conservative {
    fn should_retry(&self, error: &HandlerError) -> bool {
        !error.is::<ParseIntError>()
    }
    fn next_delay(&self, _: u32) -> Duration {
        sec(10)
    }
    fn max_retries(&self) -> u32 {
        2
    }
}

/// Short delays first, long delays later, and no retry of errors that a retry cannot solve.
struct Steps;

impl RetryPolicy for Steps {
    fn should_retry(&self, error: &HandlerError) -> bool {
        !(error.is::<Denied>() || error.is::<ParseIntError>())
    }
    fn next_delay(&self, failure_count: u32) -> Duration {
        match failure_count {
            0..=2 => sec(1),
            3..=5 => sec(30),
            _ => sec(300),
        }
    }
    fn max_retries(&self) -> u32 {
        7
    }
}

fn delays(policy: &dyn RetryPolicy) -> Vec<Duration> {
    (1..=policy.max_retries())
        .map(|failure_count| policy.next_delay(failure_count))
        .collect()
}

#[test]
fn hand_written_policies_have_their_documented_schedules_and_rules() {
    assert_eq!(delays(&Global), secs([1, 2, 4, 8, 16]));
    assert!(retries(&Global, Timeout) && retries(&Global, io::Error::other(Timeout)));
    assert!(!retries(&Global, Declined) && !retries(&Global, "anything else"));

    assert_eq!(delays(&Aggressive), [Duration::from_millis(500); 10]);
    assert!(retries(&Aggressive, "anything"));

    assert_eq!(delays(&Conservative), secs([10, 10]));
    assert!(retries(&Conservative, Timeout) && !retries(&Conservative, illegal_argument()));

    assert_eq!(delays(&Steps), secs([1, 1, 30, 30, 30, 300, 300]));
    assert!(retries(&Steps, Timeout) && retries(&Steps, "anything else"));
    assert!(!retries(&Steps, Denied) && !retries(&Steps, illegal_argument()));
}
