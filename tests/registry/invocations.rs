//! How often a handler really runs: every combination of the places that may set a number of retries,
//! with the number that publishing pinned and the number that the publisher gave, for each kind of
//! handler. The report has to say the same number.

use std::time::Duration;

use outbox::{
    Config, Handler, HandlerError, Metadata, Outbox, OutboxBuilder, OutboxEvent, Registry, Retry,
    RetryAware, outbox_handler,
    retry::{PolicyPart, PolicySource},
    retryable,
    testing::Kit,
};
use serde::{Deserialize, Serialize};
use sqlx::{Sqlite, SqlitePool};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "counted")]
struct Counted {}

// Each place has its own number of retries.
const OF_TRAIT: u32 = 1;
const OF_ATTRIBUTE: u32 = 2;
const DEFAULT: u32 = 3;
const GLOBAL: u32 = 4;
const CONFIGURED: u32 = 5;
/// Stored by a publisher with `pin-at-schedule`, whose configuration is another one.
const PINNED: u32 = 6;
/// Given with `schedule(..).max_retries(n)`.
const GIVEN: u32 = 0;

fn fail() -> Result<(), HandlerError> {
    Err("always".into())
}

macro_rules! implements_retry_aware {
    ($($handler:ident),*) => {$(
        impl RetryAware for $handler {
            type Policy = Retry;
            fn retry_policy(&self) -> Retry {
                Retry::builder().max_retries(OF_TRAIT).build().unwrap()
            }
        }
    )*};
}

#[outbox_handler(id = "function")]
async fn bare(_event: Counted) -> Result<(), HandlerError> {
    fail()
}

/// The attribute names the back-off, and the number comes from a weaker place.
#[outbox_handler(id = "function back-off")]
#[retryable(fixed("10ms"))]
async fn with_back_off(_event: Counted) -> Result<(), HandlerError> {
    fail()
}

#[outbox_handler(id = "function attribute")]
#[retryable(max_retries = 2)]
async fn with_attribute(_event: Counted) -> Result<(), HandlerError> {
    fail()
}

#[outbox_handler(id = "function trait")]
async fn with_trait(_event: Counted) -> Result<(), HandlerError> {
    fail()
}

#[outbox_handler(id = "function trait attribute")]
#[retryable(max_retries = 2)]
async fn with_both(_event: Counted) -> Result<(), HandlerError> {
    fail()
}

implements_retry_aware!(with_trait, with_both);

struct Bare;
struct WithBackOff;
struct WithAttribute;
struct WithTrait;
struct WithBoth;

macro_rules! implements_handler {
    ($($(#[$attribute:meta])* $handler:ident,)*) => {$(
        $(#[$attribute])*
        impl Handler<Counted> for $handler {
            async fn handle(&self, _event: Counted, _meta: &Metadata) -> Result<(), HandlerError> {
                fail()
            }
        }
    )*};
}
implements_handler! {
    #[outbox_handler(id = "impl")]
    Bare,
    #[outbox_handler(id = "impl back-off")]
    #[retryable(fixed("10ms"))]
    WithBackOff,
    #[outbox_handler(id = "impl attribute")]
    #[retryable(max_retries = 2)]
    WithAttribute,
    #[outbox_handler(id = "impl trait")]
    WithTrait,
    #[retryable(max_retries = 2)]
    #[outbox_handler(id = "impl trait attribute")]
    WithBoth,
}
implements_retry_aware!(WithTrait, WithBoth);

#[outbox_handler]
impl Bare {
    #[outbox_handler(id = "method")]
    async fn bare(&self, _event: Counted) -> Result<(), HandlerError> {
        fail()
    }

    #[outbox_handler(id = "method back-off")]
    #[retryable(fixed("10ms"))]
    async fn with_back_off(&self, _event: Counted) -> Result<(), HandlerError> {
        fail()
    }

    #[outbox_handler(id = "method attribute")]
    #[retryable(max_retries = 2)]
    async fn with_attribute(&self, _event: Counted) -> Result<(), HandlerError> {
        fail()
    }
}

#[outbox_handler]
impl WithTrait {
    #[outbox_handler(id = "method trait")]
    async fn bare(&self, _event: Counted) -> Result<(), HandlerError> {
        fail()
    }

    #[retryable(max_retries = 2)]
    #[outbox_handler(id = "method trait attribute")]
    async fn with_attribute(&self, _event: Counted) -> Result<(), HandlerError> {
        fail()
    }
}

/// The calls of a builder that set something, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Config,
    Registry,
    RetryPolicy,
    State,
    Handler,
}

const CALLS: [Call; 5] = [
    Call::Config,
    Call::Registry,
    Call::RetryPolicy,
    Call::State,
    Call::Handler,
];

fn call(builder: OutboxBuilder<Sqlite>, call: Call, config: &Config) -> OutboxBuilder<Sqlite> {
    match call {
        Call::Config => builder.config(config.clone()),
        // Half of the handlers and states here, the others with calls of the outer builder.
        Call::Registry => builder.registry(
            Registry::builder()
                .handler::<bare>()
                .handler::<with_attribute>()
                .handler::<with_trait>()
                .handler::<Bare>()
                .handler_for::<Bare, Counted>()
                .handler_for::<WithAttribute, Counted>()
                .state(Bare),
        ),
        Call::RetryPolicy => builder.retry_policy(Retry::builder().max_retries(GLOBAL)),
        Call::State => builder
            .state(WithAttribute)
            .state(WithBackOff)
            .state(WithTrait)
            .state(WithBoth),
        Call::Handler => builder
            .handler::<with_both>()
            .handler::<with_back_off>()
            .handler::<WithTrait>()
            .handler_for::<WithBackOff, Counted>()
            .handler_for::<WithTrait, Counted>()
            .handler_for::<WithBoth, Counted>(),
    }
}

fn config(configured: bool) -> Config {
    let text = if configured {
        r#"{ "retry": { "max-retries": 5 } }"#
    } else {
        "{}"
    };
    serde_json::from_str(text).unwrap()
}

/// The number of a handler, and the place that sets it.
fn expected(id: &str, global: bool, configured: bool) -> (u32, PolicySource) {
    if id.contains("trait") {
        (OF_TRAIT, PolicySource::Trait)
    } else if id.contains("attribute") {
        (OF_ATTRIBUTE, PolicySource::Attribute)
    } else if global {
        (GLOBAL, PolicySource::Global)
    } else if configured {
        (CONFIGURED, PolicySource::Configuration)
    } else {
        (DEFAULT, PolicySource::Default)
    }
}

/// A process that only publishes, with a number of its own.
async fn publisher(pool: &SqlitePool, pins: bool) -> Outbox<Sqlite> {
    let text =
        format!(r#"{{ "retry": {{ "max-retries": {PINNED}, "pin-at-schedule": {pins} }} }}"#);
    let config: Config = serde_json::from_str(&text).unwrap();
    let builder = Outbox::builder(pool.clone()).config(config);
    let builder = builder.registry(Registry::builder().allow_empty());
    builder.build().await.unwrap()
}

async fn publish(outbox: &Outbox<Sqlite>, given: Option<u32>) {
    let mut tx = outbox.pool().begin().await.unwrap();
    let event = Counted {};
    let mut schedule = outbox.schedule(&event);
    if let Some(number) = given {
        schedule = schedule.max_retries(number);
    }
    let _ = schedule.send(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn every_place_counts_for_as_many_invocations_as_the_report_says() {
    let mut cases = 0;
    for (at, (global, configured)) in [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .enumerate()
    {
        let config = config(configured);
        let kit = Kit::new(|builder| {
            // Another order in each round.
            let calls = CALLS.iter().cycle().skip(at).take(CALLS.len());
            let calls = calls.filter(|call| global || **call != Call::RetryPolicy);
            calls.fold(builder, |builder, one| call(builder, *one, &config))
        });
        let kit = kit.await.unwrap();
        let report = kit.outbox().handlers();
        assert_eq!(report.iter().count(), 15);
        for pins in [false, true] {
            let publisher = publisher(kit.pool(), pins).await;
            for given in [None, Some(GIVEN)] {
                publish(&publisher, given).await;
                let steps = kit.run_for(Duration::from_secs(3600)).await.unwrap();
                for handler in &report {
                    let (number, source) = expected(handler.id, global, configured);
                    let case = format!(
                        "{} global={global} configured={configured} pins={pins} given={given:?}",
                        handler.id
                    );
                    assert_eq!(handler.source_of(PolicyPart::MaxRetries), source, "{case}");
                    let words = format!("max {number} retries");
                    assert!(
                        handler.policy.contains(&words),
                        "{case}: {}",
                        handler.policy
                    );
                    let is_pinned = pins && source >= PolicySource::Configuration;
                    let retries = given.unwrap_or(if is_pinned { PINNED } else { number });
                    let runs = steps.iter().filter(|step| step.handler == handler.id);
                    assert_eq!(runs.count(), retries as usize + 1, "{case}");
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 15 * 4 * 4);
}

fn permutations(calls: &[Call]) -> Vec<Vec<Call>> {
    if calls.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, first) in calls.iter().enumerate() {
        let mut rest = calls.to_vec();
        rest.remove(at);
        for tail in permutations(&rest) {
            all.push([vec![*first], tail].concat());
        }
    }
    all
}

/// 120 orders of five calls: none of them forgets another.
#[tokio::test]
async fn the_order_of_the_builder_s_calls_makes_no_difference() {
    let mut config = config(true);
    config.schema_initialization.enabled = false;
    let mut reports = Vec::new();
    for order in permutations(&CALLS) {
        let pool = SqlitePool::connect_lazy("sqlite::memory:").unwrap();
        let calls = order.iter();
        let builder = calls.fold(Outbox::builder(pool), |builder, one| {
            call(builder, *one, &config)
        });
        let outbox = builder
            .build()
            .await
            .unwrap_or_else(|error| panic!("{order:?}: {error}"));
        reports.push(outbox.handlers().to_string());
    }
    assert_eq!(reports.len(), 120);
    assert!(
        reports.iter().all(|report| *report == reports[0]),
        "{reports:?}"
    );
}
