//! Fallbacks, which run after a handler has failed permanently.

use std::sync::{Arc, Mutex};

use outbox::{
    __private::{Completion, Decision, FailedBecause},
    HandlerError, Metadata, OutboxEvent, Registry, State, outbox_handler, retryable,
};
use outbox_tests::first_attempt;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "charged", key = id)]
struct Charged {
    id: i64,
}

type Log = Arc<Mutex<Vec<String>>>;

#[derive(Debug, thiserror::Error)]
#[error("declined")]
struct Declined;

#[outbox_handler(id = "charge", fallback = refund)]
#[retryable(max_retries = 0)]
async fn charge(_event: Charged) -> Result<(), Declined> {
    Err(Declined)
}

async fn refund(
    event: Charged,
    error: &HandlerError,
    meta: &Metadata,
    State(log): State<Log>,
) -> Result<(), String> {
    assert!(error.is::<Declined>() && meta.attempt() == 1);
    log.lock().unwrap().push(format!("refund {}", event.id));
    if event.id == 13 {
        return Err("bad luck".to_owned());
    }
    if event.id == 14 {
        panic!("worse luck");
    }
    Ok(())
}

#[outbox_handler(id = "retried", fallback = refund)]
async fn retried(_event: Charged) -> Result<(), Declined> {
    Err(Declined)
}

fn registry() -> (Registry, Log) {
    let log = Log::default();
    let registry = Registry::builder()
        .handler::<charge>()
        .handler::<retried>()
        .state(log.clone())
        .build()
        .unwrap();
    (registry, log)
}

#[tokio::test]
async fn a_fallback_that_succeeds_completes_the_record_and_keeps_the_error() {
    let (registry, log) = registry();
    let decision = first_attempt(&registry, "charge", &Charged { id: 1 }).await;
    let Decision::Completed(Completion::FellBack { error, because }) = decision else {
        panic!("{decision:?}")
    };
    assert!(error.is::<Declined>());
    assert_eq!(because, FailedBecause::RetriesExhausted);
    assert_eq!(*log.lock().unwrap(), ["refund 1"]);
}

#[tokio::test]
async fn a_fallback_that_fails_or_panics_fails_the_record_with_both_errors() {
    let (registry, log) = registry();
    for (id, reason) in [(13, "bad luck"), (14, "worse luck")] {
        let decision = first_attempt(&registry, "charge", &Charged { id }).await;
        let Decision::Failed { error, because } = decision else {
            panic!("{decision:?}")
        };
        assert_eq!(because, FailedBecause::RetriesExhausted);
        assert!(error.is::<Declined>());
        let text = format!("{error:#}");
        assert!(text.contains(reason) && text.contains("declined"), "{text}");
    }
    assert_eq!(log.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_retried_failure_runs_no_fallback() {
    let (registry, log) = registry();
    let decision = first_attempt(&registry, "retried", &Charged { id: 1 }).await;
    assert!(matches!(decision, Decision::RetryAt { .. }));
    assert!(log.lock().unwrap().is_empty());
}

#[test]
fn the_registry_checks_the_state_of_a_fallback_at_start_up() {
    let error = Registry::builder().handler::<charge>().build().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("handler `charge` needs a `State<"),
        "{error}"
    );
}
