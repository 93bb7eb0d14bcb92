//! `#[outbox_handler(validate = path)]`: a check of the event for one handler.

use std::sync::{Arc, Mutex};

use outbox::{
    __private::{Attempt, Completion, Decision, FailedBecause},
    AnyEvent, Handler, HandlerError, Metadata, OutboxEvent, Registry, State,
    clock::ManualClock,
    handler::FailureKind,
    outbox_handler,
    record::Record,
};
use outbox_tests::{first_attempt, record};
use serde::{Deserialize, Serialize};

#[derive(Debug, thiserror::Error)]
#[error("{0} is out of range")]
struct OutOfRange(i64);

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "weighed", validate = is_positive)]
struct Weighed {
    grams: i64,
}

fn is_positive(event: &Weighed) -> Result<(), OutOfRange> {
    if event.grams > 0 {
        return Ok(());
    }
    Err(OutOfRange(event.grams))
}

/// Notes that it was asked, which a test reads through the order of the notes.
fn is_light(event: &Weighed) -> Result<(), OutOfRange> {
    if event.grams < 1_000 {
        return Ok(());
    }
    Err(OutOfRange(event.grams))
}

fn mentions_no_error(event: &AnyEvent) -> Result<(), std::fmt::Error> {
    if event.payload().contains("1000") {
        return Err(std::fmt::Error);
    }
    Ok(())
}

/// The names of the functions that ran.
#[derive(Clone, Default)]
struct Ran(Arc<Mutex<Vec<&'static str>>>);

impl Ran {
    fn note(&self, name: &'static str) {
        self.0.lock().unwrap().push(name);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn guard(event: &Weighed, _meta: &Metadata) -> bool {
    assert!(event.grams < 1_000, "the guard runs after the check");
    true
}

async fn fallback(_event: Weighed, State(ran): State<Ran>) {
    ran.note("fallback");
}

#[outbox_handler(id = "function", validate = is_light, when = guard, fallback = fallback)]
async fn function(_event: Weighed, State(ran): State<Ran>) {
    ran.note("function");
}

#[outbox_handler(id = "unchecked")]
async fn unchecked(_event: Weighed, State(ran): State<Ran>) {
    ran.note("unchecked");
}

#[outbox_handler(id = "any", validate = mentions_no_error)]
async fn any(_event: AnyEvent, State(ran): State<Ran>) {
    ran.note("any");
}

struct Scales(Ran);

#[outbox_handler(id = "impl", validate = is_light, fallback = fallback)]
impl Handler<Weighed> for Scales {
    async fn handle(&self, _event: Weighed, _meta: &Metadata) -> Result<(), HandlerError> {
        self.0.note("impl");
        Ok(())
    }
}

#[outbox_handler]
impl Scales {
    #[outbox_handler(id = "method", validate = is_light, fallback = fallback)]
    async fn weigh(&self, _event: Weighed) {
        self.0.note("method");
    }

    #[outbox_handler(id = "associated", validate = Self::may_weigh)]
    async fn weigh_again(&self, _event: Weighed) {
        self.0.note("associated");
    }

    fn may_weigh(event: &Weighed) -> Result<(), OutOfRange> {
        is_light(event)
    }
}

fn registry() -> (Registry, Ran) {
    let ran = Ran::default();
    let registry = Registry::builder()
        .handler::<function>()
        .handler::<unchecked>()
        .handler::<any>()
        .handler::<Scales>()
        .handler_for::<Scales, Weighed>()
        .state(ran.clone())
        .state(Scales(ran.clone()))
        .build()
        .unwrap();
    (registry, ran)
}

#[tokio::test]
async fn an_event_that_it_accepts_is_handled() {
    let (registry, ran) = registry();
    for handler in ["function", "any", "impl", "method", "associated"] {
        let decision = first_attempt(&registry, handler, &Weighed { grams: 999 }).await;
        let is_handled = matches!(decision, Decision::Completed(Completion::Handled));
        assert!(is_handled, "{handler}: {decision:?}");
        assert_eq!(ran.take(), [handler]);
    }
}

#[tokio::test]
async fn an_event_that_it_refuses_fails_permanently_without_handler_guard_and_fallback() {
    let (registry, ran) = registry();
    for handler in ["function", "any", "impl", "method", "associated"] {
        let decision = first_attempt(&registry, handler, &Weighed { grams: 1_000 }).await;
        let Decision::Failed { error, because } = decision else {
            panic!("{handler}: {decision:?}")
        };
        assert_eq!(because, FailedBecause::BadPayload, "{handler}");
        assert_eq!(error.kind(), FailureKind::Invalid, "{handler}");
        if handler != "any" {
            assert!(error.is::<OutOfRange>(), "{handler}");
            assert_eq!(
                format!("{error:#}"),
                format!(
                    "the `validate` of handler `{handler}` refused the event: 1000 is out of range"
                )
            );
        }
        assert!(ran.take().is_empty(), "{handler}");
    }
    let other = first_attempt(&registry, "unchecked", &Weighed { grams: 1_000 }).await;
    assert!(matches!(other, Decision::Completed(_)), "{other:?}");
    assert_eq!(ran.take(), ["unchecked"]);
}

#[tokio::test]
async fn the_check_of_the_event_itself_goes_on_to_count() {
    let (registry, ran) = registry();
    let mut negative = Record::clone(&record(&Weighed { grams: 1 }));
    negative.payload = r#"{"grams":-1}"#.to_owned();
    let (negative, clock) = (Arc::new(negative), ManualClock::default());
    let attempt = Attempt::first();
    let decision = registry.dispatch("function", &negative, attempt, &clock);
    let Decision::Failed { error, .. } = decision.await else {
        panic!("the event refuses itself")
    };
    assert_eq!(error.kind(), FailureKind::Invalid);
    assert_eq!(
        format!("{error:#}"),
        "event `weighed` is not valid: -1 is out of range"
    );
    assert!(ran.take().is_empty());
}
