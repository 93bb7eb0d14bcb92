//! The policy of a handler: every combination of the four sources that may define one, for each kind
//! of handler.

use std::time::Duration;

use outbox::{
    Config, Handler, HandlerError, Metadata, OutboxEvent, Registry, Retry, RetryAware, RetryPolicy,
    outbox_handler,
    retry::{PolicyPart, PolicySource},
    retryable,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "resolved")]
struct Resolved {}

// Each source has its own number of retries, by which the test recognises it.
const OF_TRAIT: u32 = 11;
const OF_ATTRIBUTE: u32 = 22;
const GLOBAL: u32 = 33;
const CONFIGURED: u32 = 44;
const DEFAULT: u32 = 3;

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

// Functions.

#[outbox_handler(id = "function")]
async fn bare(_event: Resolved) {}

#[outbox_handler(id = "function attribute")]
#[retryable(max_retries = 22)]
async fn with_attribute(_event: Resolved) {}

#[outbox_handler(id = "function trait")]
async fn with_trait(_event: Resolved) {}

#[outbox_handler(id = "function trait attribute")]
#[retryable(max_retries = 22)]
async fn with_both(_event: Resolved) {}

implements_retry_aware!(with_trait, with_both);

// `impl Handler<E> for T`. One has the attribute `retryable` above `outbox_handler`, one below it.

struct Bare;
struct WithAttribute;
struct WithTrait;
struct WithBoth;

#[outbox_handler(id = "impl")]
impl Handler<Resolved> for Bare {
    async fn handle(&self, _event: Resolved, _meta: &Metadata) {}
}

#[outbox_handler(id = "impl attribute")]
#[retryable(max_retries = 22)]
impl Handler<Resolved> for WithAttribute {
    async fn handle(&self, _event: Resolved, _meta: &Metadata) {}
}

#[outbox_handler(id = "impl trait")]
impl Handler<Resolved> for WithTrait {
    async fn handle(&self, _event: Resolved, _meta: &Metadata) {}
}

#[retryable(max_retries = 22)]
#[outbox_handler(id = "impl trait attribute")]
impl Handler<Resolved> for WithBoth {
    async fn handle(&self, _event: Resolved, _meta: &Metadata) {}
}

implements_retry_aware!(WithTrait, WithBoth);

// Methods: the type implements the trait, so it applies to all of them.

#[outbox_handler]
impl Bare {
    #[outbox_handler(id = "method")]
    async fn bare(&self, _event: Resolved) {}

    #[outbox_handler(id = "method attribute")]
    #[retryable(max_retries = 22)]
    async fn with_attribute(&self, _event: Resolved) {}
}

#[outbox_handler]
impl WithTrait {
    #[outbox_handler(id = "method trait")]
    async fn bare(&self, _event: Resolved) {}

    #[retryable(max_retries = 22)]
    #[outbox_handler(id = "method trait attribute")]
    async fn with_attribute(&self, _event: Resolved) {}
}

fn registry(global: bool, configured: bool) -> Registry {
    let mut builder = Registry::builder()
        .handler::<bare>()
        .handler::<with_attribute>()
        .handler::<with_trait>()
        .handler::<with_both>()
        .handler::<Bare>()
        .handler::<WithTrait>()
        .handler_for::<Bare, Resolved>()
        .handler_for::<WithAttribute, Resolved>()
        .handler_for::<WithTrait, Resolved>()
        .handler_for::<WithBoth, Resolved>()
        .state(Bare)
        .state(WithAttribute)
        .state(WithTrait)
        .state(WithBoth);
    if global {
        builder = builder.retry_policy(Retry::builder().max_retries(GLOBAL));
    }
    if configured {
        let config: Config = serde_json::from_str(r#"{ "retry": { "max-retries": 44 } }"#).unwrap();
        builder = builder.config(&config);
    }
    builder.build().unwrap()
}

#[test]
fn trait_wins_over_attribute_over_global_over_configuration_over_default() {
    use PolicySource::{Attribute, Configuration, Default, Global, Trait};
    // The present sources (trait, attribute, global, configuration), the one that wins, and the ones
    // that it shadows.
    #[rustfmt::skip]
    let table: [([bool; 4], PolicySource, &[PolicySource]); 16] = [
        ([false, false, false, false], Default, &[]),
        ([false, false, false, true], Configuration, &[]),
        ([false, false, true, false], Global, &[]),
        ([false, false, true, true], Global, &[Configuration]),
        ([false, true, false, false], Attribute, &[]),
        // The attribute names the number only, so the rest is from the next place.
        ([false, true, false, true], Attribute, &[]),
        ([false, true, true, false], Attribute, &[]),
        ([false, true, true, true], Attribute, &[Configuration]),
        ([true, false, false, false], Trait, &[]),
        ([true, false, false, true], Trait, &[Configuration]),
        ([true, false, true, false], Trait, &[Global]),
        ([true, false, true, true], Trait, &[Global, Configuration]),
        ([true, true, false, false], Trait, &[Attribute]),
        ([true, true, false, true], Trait, &[Attribute, Configuration]),
        ([true, true, true, false], Trait, &[Attribute, Global]),
        ([true, true, true, true], Trait, &[Attribute, Global, Configuration]),
    ];
    for kind in ["function", "impl", "method"] {
        for (present, source, shadows) in table {
            let [of_trait, of_attribute, global, configured] = present;
            let id = format!(
                "{kind}{}{}",
                if of_trait { " trait" } else { "" },
                if of_attribute { " attribute" } else { "" }
            );
            let registry = registry(global, configured);
            let handler = registry.handler(&id).unwrap();
            let max_retries = match source {
                Trait => OF_TRAIT,
                Attribute => OF_ATTRIBUTE,
                Global => GLOBAL,
                Configuration => CONFIGURED,
                _ => DEFAULT,
            };
            assert_eq!(handler.policy_source(), source, "{id} {present:?}");
            assert_eq!(
                handler.policy().max_retries(),
                max_retries,
                "{id} {present:?}"
            );
            let report = registry.handlers();
            let report = report.get(&id).unwrap();
            assert_eq!(report.shadows, shadows, "{id} {present:?}");
            let of_the_rest = match source {
                Attribute if global => Global,
                Attribute if configured => Configuration,
                Attribute => Default,
                complete => complete,
            };
            assert_eq!(report.source_of(PolicyPart::MaxRetries), source, "{id}");
            for part in [
                PolicyPart::Backoff,
                PolicyPart::Jitter,
                PolicyPart::MaxElapsed,
                PolicyPart::Rules,
            ] {
                assert_eq!(
                    report.source_of(part),
                    of_the_rest,
                    "{id} {present:?} {part}"
                );
            }
        }
    }
}

#[test]
fn the_default_is_exponential_from_one_second_up_to_a_minute() {
    let registry = registry(false, false);
    let policy = registry.handler("function").unwrap().policy().describe();
    assert_eq!(policy, "exponential 1s ×2 up to 1m, max 3 retries");
}

#[outbox_handler(id = "jittered")]
#[retryable(jitter = full)]
async fn jittered(_event: Resolved) {}

#[outbox_handler(id = "ruled")]
#[retryable(no_retry_on(std::fmt::Error))]
async fn ruled(_event: Resolved) {}

#[outbox_handler(id = "complete")]
#[retryable(
    fixed("1s"),
    max_retries = 22,
    jitter = none,
    max_elapsed = "1h",
    retry_on(std::io::Error)
)]
async fn complete(_event: Resolved) {}

/// A policy that is not made of parts.
struct Own;

impl RetryPolicy for Own {
    fn should_retry(&self, error: &HandlerError) -> bool {
        !error.is::<std::num::ParseIntError>()
    }
    fn next_delay(&self, failure_count: u32) -> Duration {
        Duration::from_secs(100) * failure_count
    }
    fn max_retries(&self) -> u32 {
        GLOBAL
    }
    fn max_elapsed(&self) -> Option<Duration> {
        Some(Duration::from_secs(7200))
    }
}

fn errors() -> [HandlerError; 3] {
    let io = std::io::Error::other("down");
    let number = "x".parse::<u32>().unwrap_err();
    [io.into(), number.into(), std::fmt::Error.into()]
}

/// The delays, limits and rules of a handler: what its attribute does not name is as without it.
#[test]
fn an_attribute_changes_only_the_parts_that_it_names() {
    let config = r#"{ "retry": {
        "policy": "linear", "linear": { "initial-delay": "7s", "increment": "1s" },
        "max-retries": 44, "max-elapsed": "2h", "exclude-exceptions": ["std::num::ParseIntError"]
    } }"#;
    let config: Config = serde_json::from_str(config).unwrap();
    let handlers = || {
        let builder = Registry::builder()
            .handler::<bare>()
            .handler::<with_attribute>();
        let builder = builder.handler::<jittered>().handler::<ruled>();
        builder.handler::<complete>()
    };
    let global = Retry::builder()
        .fixed(Duration::from_secs(9))
        .max_retries(GLOBAL)
        .max_elapsed(Duration::from_secs(7200))
        .no_retry_on::<std::num::ParseIntError>();
    for (place, registry) in [
        ("configuration", handlers().config(&config).build().unwrap()),
        (
            "builder.retry_policy",
            handlers().retry_policy(global).build().unwrap(),
        ),
        (
            "builder.retry_policy",
            handlers().retry_policy(Own).build().unwrap(),
        ),
        ("default", handlers().build().unwrap()),
    ] {
        let policy = |id: &str| registry.handler(id).unwrap().policy();
        let delays = |id: &str| [1, 2, 3].map(|failure| policy(id).next_delay(failure));
        let retried = |id: &str| errors().map(|error| policy(id).should_retry(&error));
        let plain = policy("function");

        let number = policy("function attribute");
        assert_eq!(number.max_retries(), OF_ATTRIBUTE);
        assert_eq!(delays("function attribute"), delays("function"), "{place}");
        assert_eq!(
            retried("function attribute"),
            retried("function"),
            "{place}"
        );
        assert_eq!(number.max_elapsed(), plain.max_elapsed(), "{place}");

        let spread = policy("jittered");
        assert_eq!(spread.max_retries(), plain.max_retries(), "{place}");
        for failure in 1..50 {
            assert!(
                spread.next_delay(failure) <= plain.next_delay(failure),
                "{place}"
            );
        }
        let below = (0..100).any(|_| spread.next_delay(1) < plain.next_delay(1) / 2);
        assert!(below, "{place}: the delay is never spread");

        assert_eq!(
            retried("ruled"),
            [true, true, false],
            "{place}: rules are one part"
        );
        assert_eq!(delays("ruled"), delays("function"), "{place}");

        let own = policy("complete");
        assert_eq!(delays("complete"), [Duration::from_secs(1); 3]);
        assert_eq!(own.max_elapsed(), Some(Duration::from_secs(3600)));
        assert_eq!(retried("complete"), [true, false, false]);
        let report = registry.handlers();
        assert!(report.get("complete").unwrap().inherited.is_empty());
        let words = report.get("function attribute").unwrap().to_string();
        let words = words
            .lines()
            .find(|line| line.starts_with("  source"))
            .unwrap()
            .to_owned();
        let expected =
            format!("  source  #[retryable]; back-off, jitter, max elapsed, rules from {place}");
        assert_eq!(words, expected);
    }
}
