//! The policy of a handler: every combination of the four sources that may define one, for each kind
//! of handler.

use outbox::{
    Config, Handler, Metadata, OutboxEvent, Registry, Retry, RetryAware, outbox_handler,
    retry::PolicySource, retryable,
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
        ([false, true, false, true], Attribute, &[Configuration]),
        ([false, true, true, false], Attribute, &[Global]),
        ([false, true, true, true], Attribute, &[Global, Configuration]),
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
            assert_eq!(
                report.get(&id).unwrap().shadows,
                shadows,
                "{id} {present:?}"
            );
        }
    }
}

#[test]
fn the_default_is_exponential_from_one_second_up_to_a_minute() {
    let registry = registry(false, false);
    let policy = registry.handler("function").unwrap().policy().describe();
    assert_eq!(policy, "exponential 1s ×2 up to 1m, max 3 retries");
}
