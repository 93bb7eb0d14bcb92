//! All mistakes in one error, and the report of a correct registry.

use std::time::Duration;

use outbox::{
    AnyEvent, Config, Context, FromContext, Handler, HandlerError, Metadata, Outbox, OutboxEvent,
    Registry, Retry, State, outbox_handler, registry::Problem, retry::PolicySource, retryable,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "started")]
struct Started {}

#[derive(Clone)]
struct Bank;

struct Payments;

mod one {
    use super::*;
    #[outbox_handler(id = "same")]
    pub(super) async fn first(_event: Started) {}
}

#[outbox_handler(id = "other", aliases = ["same"])]
async fn second(_event: Started) {}

#[outbox_handler]
async fn needs_bank(_event: Started, _bank: State<Bank>, _again: State<Bank>) {}

#[outbox_handler]
impl Handler<Started> for Payments {
    async fn handle(&self, _event: Started, _meta: &Metadata) {}
}

#[outbox_handler]
#[retryable(policy = "gentel")]
async fn misspelt(_event: Started) {}

#[outbox_handler]
#[retryable(policy = Retry::builder().fixed(Duration::ZERO))]
async fn impossible(_event: Started) {}

#[outbox_handler]
async fn takes_failure(_event: Started, _error: &HandlerError) {}

#[test]
fn one_error_lists_every_mistake_with_its_place() {
    let error = Registry::builder()
        .handler::<one::first>()
        .handler::<second>()
        .handler::<needs_bank>()
        .handler_for::<Payments, Started>()
        .handler::<misspelt>()
        .handler::<impossible>()
        .handler::<takes_failure>()
        .named_policy("gentle", Retry::default())
        .named_policy(
            "broken",
            Retry::builder().exponential(Duration::from_secs(1), 1.0, Duration::from_secs(2)),
        )
        .retry_policy(Retry::builder().jitter(outbox::retry::Jitter::Proportional(2.0)))
        .build()
        .unwrap_err();

    let text = error.to_string();
    for expected in [
        "the outbox cannot start, for 8 reasons:",
        "two handlers have the id `same`, at tests/registry/start_up.rs:",
        "handler `registry::start_up::needs_bank` needs a `State<registry::start_up::Bank>`: give one with `.state(..)`",
        "handler `registry::start_up::Payments<Started>` needs a `State<registry::start_up::Payments>`",
        "names the policy `gentel`, which does not exist (the nearest is `gentle`)",
        "the retry policy of handler `registry::start_up::impossible` cannot be built: the fixed delay must be longer than zero",
        "takes a `&HandlerError`, which only a fallback can",
        "the named policy `broken` cannot be built: the multiplier must be a number greater than 1.0, not 1",
        "the policy given with `.retry_policy(..)` cannot be built: a proportional jitter is a share from 0.0 to 1.0, not 2",
    ] {
        assert!(
            text.contains(expected),
            "`{expected}` is missing in:\n{text}"
        );
    }
    assert_eq!(error.problems().len(), 8, "{text}");
    let Some(Problem::DuplicateId { first, second, .. }) = error
        .problems()
        .iter()
        .find(|problem| matches!(problem, Problem::DuplicateId { .. }))
    else {
        panic!("{text}")
    };
    assert_ne!(first.line, second.line);
}

#[test]
fn an_empty_registry_is_an_error_unless_it_is_allowed() {
    let error = Registry::builder().build().unwrap_err();
    assert!(
        error.to_string().contains("use my_handlers as _;"),
        "{error}"
    );
    assert!(Registry::builder().allow_empty().build().is_ok());
}

#[test]
fn a_handler_that_is_added_twice_is_registered_once() {
    let registry = Registry::builder()
        .handler::<second>()
        .handler::<second>()
        .build()
        .unwrap();
    assert_eq!(registry.handlers().iter().count(), 1);
    assert_eq!(
        registry.handler("same").unwrap().id(),
        "other",
        "found by its alias"
    );
}

#[test]
fn the_registry_refuses_an_id_that_is_too_long_for_the_database() {
    let error = Registry::builder()
        .handler::<a_very_long_name_that_goes_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on>()
        .build()
        .unwrap_err();
    assert!(
        matches!(error.problems(), [Problem::LongId { .. }]),
        "{error}"
    );
}

#[outbox_handler]
async fn a_very_long_name_that_goes_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on(
    _event: Started,
) {
}

/// An argument that reads a state that it does not announce in `requires`.
struct Careless;

impl<'a> FromContext<'a> for Careless {
    fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
        context.state::<Bank>().map(|_| Self)
    }
}

#[outbox_handler(id = "careless", timeout = "2s", concurrency = 4, on_permanent_failure = skip)]
#[retryable(
    exponential(initial = "500ms", multiplier = 2.0, max = "10s"),
    max_attempts = 4,
    jitter = 0.5,
    max_elapsed = "1h",
    retry_on(std::io::Error),
    no_retry_on(std::fmt::Error)
)]
async fn careless(_event: Started, _careless: Careless) {}

#[outbox_handler(id = "audit", events = ["a.*", "b"])]
async fn audit(_event: AnyEvent) {}

#[tokio::test]
async fn a_missing_state_that_was_not_announced_fails_the_attempt() {
    let registry = Registry::builder().handler::<careless>().build().unwrap();
    let decision = outbox_tests::first_attempt(&registry, "careless", &Started {}).await;
    let outbox::__private::Decision::Failed { error, .. } = decision else {
        panic!("{decision:?}")
    };
    assert!(
        error.to_string().contains("give it with `.state(..)`"),
        "{error}"
    );
}

#[test]
fn the_report_has_all_properties_as_text_and_as_json() {
    let registry = Registry::builder()
        .handler::<careless>()
        .handler::<audit>()
        .retry_policy(Retry::default())
        .build()
        .unwrap();
    let report = registry.handlers();
    let careless = report.get("careless").unwrap();
    assert_eq!(careless.event, "started");
    assert_eq!(careless.event_type, Some("registry::start_up::Started"));
    assert_eq!(
        careless.policy,
        "exponential 500ms ×2 up to 10s, max 3 retries, jitter ±50%, within 1h, \
         only on std::io::error::Error, never on core::fmt::Error"
    );
    assert_eq!(careless.source, PolicySource::Attribute);
    assert_eq!(careless.shadows, [PolicySource::Global]);

    let text = report.to_string();
    assert!(
        text.starts_with("2 handlers\naudit\n  event   a.*, b\n  policy  fixed 5s, max 3 retries"),
        "{text}"
    );
    assert!(
        text.contains("\n  source  #[retryable] (shadows builder.retry_policy)"),
        "{text}"
    );
    assert!(
        text.contains("\n  at      tests/registry/start_up.rs:"),
        "{text}"
    );

    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json[1]["id"], "careless");
    assert_eq!(json[1]["source"], "attribute");
    assert_eq!(json[1]["timeout_ms"], 2000);
    assert_eq!(json[1]["concurrency"], 4);
    assert_eq!(json[1]["on_permanent_failure"], "skip");
    assert!(json[1]["location"]["line"].is_number());
}

#[test]
fn routing_finds_every_handler_of_an_event_by_id() {
    let registry = Registry::builder()
        .handler::<second>()
        .handler::<careless>()
        .handler::<audit>()
        .build()
        .unwrap();
    let ids = |event| {
        registry
            .route(event)
            .map(outbox::registry::HandlerEntry::id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("started"), ["careless", "other"]);
    assert_eq!(ids("a.b"), ["audit"]);
    assert_eq!(ids("b.c"), Vec::<&str>::new());
}

#[derive(Clone)]
struct Twice;

#[outbox_handler(id = "takes-twice")]
async fn takes_twice(_event: Started, State(_): State<Twice>) {}

/// A setting of the registry and the same setting of the outbox: no order tells which one is meant.
#[tokio::test]
async fn two_calls_that_cannot_both_count_are_named() {
    let pool = || sqlx::SqlitePool::connect_lazy("sqlite::memory:").unwrap();
    let config = |text: &str| serde_json::from_str::<Config>(text).unwrap();
    let (one, other) = (config(r#"{ "retry": { "max-retries": 1 } }"#), config("{}"));
    let registry = Registry::builder()
        .handler::<takes_twice>()
        .state(Twice)
        .retry_policy(Retry::builder())
        .named_policy("gentle", Retry::builder())
        .config(&one);
    let error = Outbox::builder(pool())
        .config(other)
        .retry_policy(Retry::builder())
        .named_policy("gentle", Retry::builder())
        .registry(registry)
        .registry(Registry::builder())
        .state(Twice)
        .build()
        .await
        .unwrap_err()
        .to_string();
    for call in [
        ".registry(..)",
        ".state(registry::start_up::Twice)",
        ".retry_policy(..)",
        ".named_policy(\"gentle\", ..)",
        ".config(..)",
    ] {
        let line = error
            .lines()
            .find(|line| line.contains(&format!("`{call}` is called twice")));
        let line = line.unwrap_or_else(|| panic!("{call}: {error}"));
        let places = line.matches("tests/registry/start_up.rs:").count();
        assert_eq!(places, 2, "{line}");
    }
}

/// The same method of the same builder: the later call replaces the earlier one.
#[test]
fn a_later_policy_replaces_an_earlier_one() {
    let registry = Registry::builder()
        .handler::<takes_twice>()
        .state(Twice)
        .retry_policy(Retry::builder().max_retries(1))
        .retry_policy(Retry::builder().max_retries(2))
        .build()
        .unwrap();
    let policy = registry.handler("takes-twice").unwrap().policy();
    assert_eq!(policy.max_retries(), 2);
}
