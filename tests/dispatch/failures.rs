//! The ways in which a handler can fail, and the decision that follows.

use std::{io, time::Duration};

use outbox::{
    __private::{Attempt, Decision, FailedBecause},
    HandlerError, OutboxEvent, Registry, RetryPolicy,
    clock::{Clock as _, ManualClock},
    handler::{FailureKind, Panicked, TimedOut},
    outbox_handler, retryable,
};
use outbox_tests::{first_attempt, record};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "tried")]
struct Tried {
    how: String,
}

fn tried(how: &str) -> Tried {
    Tried {
        how: how.to_owned(),
    }
}

#[outbox_handler(id = "fails", timeout = "30s")]
#[retryable(linear(initial = "1s", increment = "1s", max = "5s"), max_retries = 2)]
async fn fails(event: Tried) -> Result<(), HandlerError> {
    match event.how.as_str() {
        "io" => Err(io::Error::other("down"))?,
        "permanent" => return Err(HandlerError::permanent("never")),
        "later" => return Err(HandlerError::retry_after(Duration::from_secs(99), "busy")),
        "down" => return Err(HandlerError::unavailable("503")),
        "panic" => panic!("boom {}", 1),
        "endless" => std::future::pending().await,
        other => return Err(other.to_owned().into()),
    }
    Ok(())
}

fn registry() -> Registry {
    Registry::builder().handler::<fails>().build().unwrap()
}

async fn error_of(how: &str) -> (Duration, HandlerError) {
    match first_attempt(&registry(), "fails", &tried(how)).await {
        Decision::RetryAt { delay, error, .. } => (delay, error),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn errors_panics_and_strings_are_retried_with_the_policy_s_delay() {
    let (delay, error) = error_of("io").await;
    assert_eq!(
        (delay, error.kind()),
        (Duration::from_secs(1), FailureKind::Error)
    );
    assert!(error.is::<io::Error>());

    let (delay, error) = error_of("panic").await;
    assert_eq!(
        (delay, error.kind()),
        (Duration::from_secs(1), FailureKind::Panicked)
    );
    assert_eq!(error.find::<Panicked>().unwrap().message, "boom 1");

    let (_, error) = error_of("just text").await;
    assert_eq!(error.to_string(), "just text");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_exceeds_its_timeout_is_cancelled_and_fails_as_timed_out() {
    let (_, error) = error_of("endless").await;
    assert_eq!(error.kind(), FailureKind::TimedOut);
    assert_eq!(
        error.find::<TimedOut>().unwrap().limit,
        Duration::from_secs(30)
    );
}

#[tokio::test]
async fn the_handler_s_own_decision_wins_over_the_policy() {
    assert_eq!(error_of("later").await.0, Duration::from_secs(99));

    let decision = first_attempt(&registry(), "fails", &tried("permanent")).await;
    assert!(matches!(
        decision,
        Decision::Failed {
            because: FailedBecause::Permanent,
            ..
        }
    ));
}

#[tokio::test]
async fn attempts_continue_until_the_retries_are_used_up() {
    let registry = registry();
    let clock = ManualClock::default();
    let record = record(&tried("io"));
    let mut attempt = Attempt::first();
    for expected in [1, 2] {
        let decision = registry.dispatch("fails", &record, attempt, &clock).await;
        let Decision::RetryAt {
            at, delay, next, ..
        } = decision
        else {
            panic!("{decision:?}")
        };
        assert_eq!(delay, Duration::from_secs(expected));
        clock.advance(delay);
        assert_eq!(at, clock.now());
        attempt = next;
    }
    assert_eq!((attempt.number, attempt.failure_count), (3, 2));
    let decision = registry.dispatch("fails", &record, attempt, &clock).await;
    assert!(matches!(
        decision,
        Decision::Failed {
            because: FailedBecause::RetriesExhausted,
            ..
        }
    ));
}

#[tokio::test]
async fn a_year_of_outage_uses_up_no_retry() {
    let registry = registry();
    let clock = ManualClock::default();
    let record = record(&tried("down"));
    let start = clock.now();
    let mut attempt = Attempt::first();
    while clock.now().duration_since(start).as_hours() < 365 * 24 {
        let decision = registry.dispatch("fails", &record, attempt, &clock).await;
        let Decision::RetryAt { delay, next, .. } = decision else {
            panic!("{decision:?}")
        };
        assert!(delay <= Duration::from_secs(5));
        assert_eq!(next.failure_count, 0);
        // The delays of the policy are short; larger steps of the clock make the test faster.
        clock.advance(delay + Duration::from_secs(3600));
        attempt = next;
    }
}

#[derive(Default)]
struct Faulty;

impl RetryPolicy for Faulty {
    fn next_delay(&self, failure_count: u32) -> Duration {
        Duration::from_secs(10 / u64::from(failure_count - 1))
    }
    fn max_retries(&self) -> u32 {
        3
    }
}

#[outbox_handler(id = "with-faulty-policy")]
#[retryable(policy = Faulty)]
async fn with_faulty_policy(_event: Tried) -> Result<(), &'static str> {
    Err("no")
}

#[tokio::test]
async fn a_policy_that_panics_fails_only_its_record() {
    let registry = Registry::builder()
        .handler::<with_faulty_policy>()
        .build()
        .unwrap();
    let decision = first_attempt(&registry, "with-faulty-policy", &tried("")).await;
    let Decision::Failed { error, because } = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(because, FailedBecause::PolicyPanicked);
    let text = format!("{error:#}");
    assert!(
        text.contains("retry policy (panicked: attempt to divide by zero)"),
        "{text}"
    );
    assert!(
        text.ends_with(": no"),
        "the handler's own error is kept: {text}"
    );
}
