//! The first argument: a typed event, an alias, any event, and events that are guarded, unreadable or
//! invalid.

use std::sync::{Arc, Mutex};

use outbox::{
    __private::{Attempt, Completion, Decision, FailedBecause},
    AnyEvent, HandlerError, Metadata, OutboxEvent, Registry, State,
    clock::ManualClock,
    handler::FailureKind,
    outbox_handler,
    record::{EventError, Record},
};
use outbox_tests::{first_attempt, record};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id, aliases = ["order.new"], version = 2, validate = has_total)]
struct OrderCreated {
    order_id: i64,
    total_cents: i64,
}

#[derive(Debug, thiserror::Error)]
#[error("the total is negative")]
struct NegativeTotal;

fn has_total(event: &OrderCreated) -> Result<(), NegativeTotal> {
    if event.total_cents < 0 {
        return Err(NegativeTotal);
    }
    Ok(())
}

const ORDER: OrderCreated = OrderCreated {
    order_id: 7,
    total_cents: 1250,
};

type Seen = Arc<Mutex<Vec<String>>>;

fn note(seen: &Seen, value: &dyn ToString) {
    seen.lock().unwrap().push(value.to_string());
}

#[outbox_handler(id = "typed")]
async fn typed(event: OrderCreated, State(seen): State<Seen>) {
    note(&seen, &event.total_cents);
}

#[outbox_handler(id = "any", events = "order.*")]
async fn any(event: AnyEvent, State(seen): State<Seen>) -> Result<(), HandlerError> {
    assert!(event.is::<OrderCreated>());
    let order: OrderCreated = event.parse()?;
    note(
        &seen,
        &format!("{} v{} {}", event.name(), event.version(), order.order_id),
    );
    Ok(())
}

#[outbox_handler(id = "large", when = is_large)]
async fn large(event: OrderCreated, State(seen): State<Seen>) {
    note(&seen, &event.order_id);
}

fn is_large(event: &OrderCreated, meta: &Metadata) -> bool {
    meta.attempt() == 1 && event.total_cents > 10_000
}

fn registry() -> (Registry, Seen) {
    let seen = Seen::default();
    let registry = Registry::builder()
        .handler::<typed>()
        .handler::<any>()
        .handler::<large>()
        .state(Arc::clone(&seen))
        .build()
        .unwrap();
    (registry, seen)
}

#[tokio::test]
async fn a_typed_event_reaches_the_handler_unchanged() {
    let (registry, seen) = registry();
    let decision = first_attempt(&registry, "typed", &ORDER).await;
    assert!(matches!(decision, Decision::Completed(Completion::Handled)));
    assert_eq!(*seen.lock().unwrap(), ["1250"]);
}

#[tokio::test]
async fn a_record_under_an_older_name_is_handled() {
    let (registry, seen) = registry();
    let mut old = Record::clone(&record(&ORDER));
    old.event = "order.new".to_owned();
    let decision = registry
        .dispatch(
            "typed",
            &Arc::new(old),
            Attempt::first(),
            &ManualClock::default(),
        )
        .await;
    assert!(matches!(decision, Decision::Completed(_)));
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn any_event_has_name_version_and_payload() {
    let (registry, seen) = registry();
    let decision = first_attempt(&registry, "any", &ORDER).await;
    assert!(matches!(decision, Decision::Completed(_)), "{decision:?}");
    assert_eq!(*seen.lock().unwrap(), ["order.created v2 7"]);
}

#[tokio::test]
async fn a_guard_that_refuses_completes_the_record_without_the_handler() {
    let (registry, seen) = registry();
    let decision = first_attempt(&registry, "large", &ORDER).await;
    assert!(matches!(decision, Decision::Completed(Completion::Skipped)));
    let large = OrderCreated {
        total_cents: 10_001,
        ..ORDER
    };
    let decision = first_attempt(&registry, "large", &large).await;
    assert!(matches!(decision, Decision::Completed(Completion::Handled)));
    assert_eq!(*seen.lock().unwrap(), ["7"]);
}

#[tokio::test]
async fn a_payload_that_does_not_decode_fails_permanently_with_the_reason() {
    let (registry, seen) = registry();
    for payload in ["{\"order_id\":\"x\"}", "not json", "", "null", "\u{0}"] {
        let mut bad = Record::clone(&record(&ORDER));
        bad.payload = payload.to_owned();
        let decision = registry
            .dispatch(
                "typed",
                &Arc::new(bad),
                Attempt::first(),
                &ManualClock::default(),
            )
            .await;
        let Decision::Failed { error, because } = decision else {
            panic!("{decision:?}")
        };
        assert_eq!(because, FailedBecause::BadPayload);
        assert_eq!(error.kind(), FailureKind::Undecodable);
        assert!(error.is::<serde_json::Error>());
        assert_eq!(
            error.to_string(),
            "the payload (version 2) cannot be read as event `order.created` (version 2 here)"
        );
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_invalid_event_is_neither_published_nor_handled() {
    let invalid = OrderCreated {
        total_cents: -1,
        ..ORDER
    };
    let error = Record::of(&invalid, &ManualClock::default()).unwrap_err();
    assert!(matches!(
        error,
        EventError::Invalid {
            event: "order.created",
            ..
        }
    ));

    let (registry, seen) = registry();
    let mut stored = Record::clone(&record(&ORDER));
    stored.payload = serde_json::to_string(&invalid).unwrap();
    let decision = registry
        .dispatch(
            "typed",
            &Arc::new(stored),
            Attempt::first(),
            &ManualClock::default(),
        )
        .await;
    let Decision::Failed { error, because } = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(
        (error.kind(), because),
        (FailureKind::Invalid, FailedBecause::BadPayload)
    );
    assert!(error.is::<NegativeTotal>());
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_unknown_handler_or_event_uses_up_no_attempt() {
    let (registry, _) = registry();
    let decision = first_attempt(&registry, "unknown", &ORDER).await;
    let Decision::NoHandler(missing) = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(missing.handler.as_deref(), Some("unknown"));

    let mut foreign = Record::clone(&record(&ORDER));
    foreign.event = "order.createt".to_owned();
    let decision = registry
        .dispatch(
            "typed",
            &Arc::new(foreign),
            Attempt::first(),
            &ManualClock::default(),
        )
        .await;
    let Decision::NoHandler(missing) = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(missing.nearest.as_deref(), Some("order.created"));
    assert!(missing.to_string().contains("use my_handlers as _;"));
}

#[test]
fn a_key_is_a_field_an_expression_or_the_event_id() {
    #[derive(Serialize, Deserialize, OutboxEvent)]
    #[outbox_event(name = "keyed", key = format!("{tenant}/{}", self.order_id % 10))]
    struct Keyed {
        tenant: String,
        order_id: i64,
    }
    #[derive(Serialize, Deserialize, OutboxEvent)]
    #[outbox_event(name = "unkeyed")]
    struct Unkeyed(i64);
    #[derive(Serialize, Deserialize, OutboxEvent)]
    #[outbox_event(name = "positional", key = self.0)]
    struct Positional(uuid::Uuid);

    let keyed = Keyed {
        tenant: "acme".to_owned(),
        order_id: 17,
    };
    assert_eq!(record(&keyed).key, "acme/7");
    assert_eq!(record(&ORDER).key, "7");
    let unkeyed = record(&Unkeyed(1));
    assert_eq!(unkeyed.key, unkeyed.event_id.to_string());
    assert_eq!(
        record(&Positional(uuid::Uuid::nil())).key,
        uuid::Uuid::nil().to_string()
    );
}
