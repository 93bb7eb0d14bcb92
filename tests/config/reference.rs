//! Every configuration file of the libraries that this one follows loads with the same meaning.

use std::{fmt, fs, io, time::Duration};

use outbox::{Config, HandlerError, Retry, RetryPolicy as _, retry::Jitter};

use crate::{fixture, load, millis, schedule, secs};

fn config(file: &str) -> Config {
    load(&fixture(&format!("reference/{file}"))).unwrap_or_else(|error| panic!("{error}"))
}

fn retry(file: &str) -> Retry {
    let config = config(file);
    assert!(config.configures_retry(), "{file}");
    Retry::from_config(&config.retry).build().unwrap()
}

/// The shortest and the longest delay before each retry.
fn bounds(file: &str) -> (Vec<Duration>, Vec<Duration>) {
    let drawn = |random: u64| {
        let retry = retry(file)
            .to_builder()
            .random(move || random)
            .build()
            .unwrap();
        schedule(&retry)
    };
    let (earliest, latest) = (drawn(0), drawn(u64::MAX));
    // With real random numbers each delay is between both.
    for _ in 0..100 {
        let any = schedule(&retry(file));
        assert!(
            any.iter().zip(&earliest).all(|(delay, low)| delay >= low),
            "{any:?}"
        );
        assert!(
            any.iter().zip(&latest).all(|(delay, high)| delay <= high),
            "{any:?}"
        );
    }
    (earliest, latest)
}

#[test]
fn back_offs_without_jitter_give_their_documented_delays() {
    for (file, delays) in [
        ("retry_fixed.yaml", secs([5; 5])),
        ("retry_linear.yaml", secs([2, 4, 6, 8, 10])),
        ("retry_exponential.yaml", secs([1, 2, 4])),
        ("retry_exceptions.yaml", secs([1, 2, 4])),
        ("everything.yaml", secs([1, 2, 4])),
        ("old_fixed.yaml", secs([5; 5])),
        (
            "old_exponential.yaml",
            secs([1, 2, 4, 8, 16, 32, 64, 128, 256, 300]),
        ),
        ("options_default.yaml", secs([1, 2, 4, 8, 16])),
    ] {
        assert_eq!(schedule(&retry(file)), delays, "{file}");
    }
}

#[test]
fn the_exponential_schedule_grows_up_to_its_maximum() {
    let retry = retry("retry_exponential.yaml")
        .to_builder()
        .max_retries(8)
        .build()
        .unwrap();
    assert_eq!(schedule(&retry), secs([1, 2, 4, 8, 16, 32, 60, 60]));
}

#[test]
fn jitter_shortens_or_lengthens_the_base_delay() {
    let (earliest, latest) = bounds("retry_jitter.yaml");
    assert_eq!(earliest, secs([1, 3, 7, 15, 31, 59, 59]));
    assert_eq!(latest, secs([3, 5, 9, 17, 33, 61, 61]));
}

#[test]
fn the_old_form_of_jitter_only_lengthens_the_base_delay() {
    let (earliest, latest) = bounds("old_jittered.yaml");
    assert_eq!(earliest, secs([2, 4, 8, 16, 32, 60, 60]));
    assert_eq!(latest, secs([3, 5, 9, 17, 33, 61, 61]));
}

#[test]
fn full_and_partial_jitter_are_fractions_of_the_base_delay() {
    let (earliest, latest) = bounds("options_full_jitter.yaml");
    assert_eq!((earliest, latest), (secs([0, 0]), millis([500, 1000])));
    let (earliest, latest) = bounds("options_partial_jitter.yaml");
    assert_eq!(
        (earliest, latest),
        (millis([250, 500]), millis([750, 1500]))
    );
}

#[test]
fn lists_of_errors_outside_of_the_retry_section_apply() {
    let retry = retry("retry_exceptions.yaml");
    let parse_error = || "x".parse::<i32>().unwrap_err();
    assert!(retry.should_retry(&io::Error::other("down").into()));
    assert!(!retry.should_retry(&fmt::Error.into()), "not in the list");
    assert!(!retry.should_retry(&parse_error().into()));
    assert!(
        !retry.should_retry(&HandlerError::from(io::Error::other(parse_error()))),
        "excluded wins"
    );
}

#[test]
fn all_other_settings_are_read() {
    let config = config("everything.yaml");
    assert_eq!(config.poll_interval, Duration::from_secs(5));
    assert!(config.schema_initialization.enabled);
    assert_eq!(config.lease(), Duration::from_secs(300));
    assert_eq!(config.renew_below(), Duration::from_secs(60));
    assert!(config.processing.stop_on_first_failure);
    let policy = config.retry.default.unwrap();
    assert_eq!(
        (policy.jitter, policy.jittered.jitter),
        (Jitter::None, Duration::from_millis(500))
    );
}

#[test]
fn sections_without_retries_keep_the_default_policy() {
    for (file, enabled, stop) in [
        ("schema.yaml", true, true),
        ("processing.yaml", true, true),
        ("processing_dependent.yaml", true, true),
        ("processing_independent.yaml", true, false),
    ] {
        let config = config(file);
        assert_eq!(config.schema_initialization.enabled, enabled, "{file}");
        assert_eq!(config.processing.stop_on_first_failure, stop, "{file}");
        assert!(!config.configures_retry(), "{file}");
        let default = Retry::from_config(&config.retry).build().unwrap();
        assert_eq!(schedule(&default), secs([1, 2, 4]), "{file}");
    }
}

#[test]
fn a_stuck_threshold_sets_the_lease() {
    assert_eq!(
        config("options_default.yaml").lease(),
        Duration::from_secs(300)
    );
}

#[test]
fn every_file_loads() {
    let mut count = 0;
    for file in fs::read_dir(fixture("reference")).unwrap() {
        load(&file.unwrap().path()).unwrap();
        count += 1;
    }
    assert_eq!(count, 16);
}
