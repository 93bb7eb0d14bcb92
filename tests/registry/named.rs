//! Named policies and error types from code, from linked types and from the configuration.

use std::time::Duration;

use outbox::{
    Config, OutboxEvent, Registry, RegistryBuilder, Retry, error_name, outbox_handler,
    registry::Problem, retryable,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "named")]
struct Named {}

#[outbox_handler(id = "gentle")]
#[retryable(policy = "gentle")]
async fn gentle(_event: Named) {}

#[outbox_handler(id = "plain")]
async fn plain(_event: Named) {}

#[error_name("shop.declined")]
#[derive(Debug, thiserror::Error)]
#[error("declined")]
struct Declined;

#[derive(Debug, thiserror::Error)]
#[error("closed")]
struct Closed;

fn with(retry: &str) -> RegistryBuilder {
    let config: Config = serde_json::from_str(&format!(r#"{{ "retry": {retry} }}"#)).unwrap();
    Registry::builder()
        .handler::<gentle>()
        .handler::<plain>()
        .config(&config)
}

const GENTLE: &str =
    r#"{ "policies": { "gentle": { "policy": "fixed", "fixed": { "delay": "5m" } } } }"#;

#[test]
fn a_handler_finds_a_policy_of_the_configuration_by_name() {
    let registry = with(GENTLE).build().unwrap();
    let policy = registry.handler("gentle").unwrap().policy();
    assert_eq!(policy.next_delay(1), Duration::from_secs(300));
}

#[test]
fn a_named_policy_in_code_wins_over_the_configuration() {
    let registry = with(GENTLE)
        .named_policy("gentle", Retry::builder().fixed(Duration::from_secs(1)))
        .build()
        .unwrap();
    let policy = registry.handler("gentle").unwrap().policy();
    assert_eq!(policy.next_delay(1), Duration::from_secs(1));
}

#[test]
fn the_attribute_and_the_builder_register_names_of_error_types() {
    let registry = with(
        r#"{ "include-exceptions": ["shop.declined", "shop.closed"], "policies": { "gentle": {} } }"#,
    )
    .error_name::<Closed>("shop.closed")
    .build()
    .unwrap();
    let policy = registry.handler("plain").unwrap().policy();
    assert!(policy.should_retry(&Declined.into()));
    assert!(policy.should_retry(&std::io::Error::other(Closed).into()));
    assert!(!policy.should_retry(&"another".into()));
}

#[test]
fn unknown_and_duplicate_names_are_start_up_errors() {
    let error = with(
        r#"{ "exclude-exceptions": ["shop.declind"], "policies": { "gentle": { "include-exceptions": ["io::Error"] } } }"#,
    )
    .error_name::<Closed>("shop.declined")
    .build()
    .unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(
            error.problems(),
            [
                Problem::DuplicateErrorName(_),
                Problem::Policy { .. },
                Problem::Policy { .. }
            ]
        ),
        "{text}"
    );
    for expected in [
        "two different error types are registered under the name `shop.declined`",
        "the named policy `gentle` cannot be built: no error type is registered under the name `io::Error`, the nearest is `std::io::Error`",
        "the `retry` section of the configuration cannot be built: no error type is registered under the name `shop.declind`, the nearest is `shop.declined`",
    ] {
        assert!(
            text.contains(expected),
            "`{expected}` is missing in:\n{text}"
        );
    }
}

#[test]
fn the_configuration_of_the_guide_is_valid() {
    let guide = include_str!("../../outbox/docs/guide/configuration.md");
    let after_fence = guide.split("```yaml\n").nth(1).unwrap();
    let yaml = after_fence.split("```").next().unwrap();
    let config = Config::loader()
        .text(outbox::config::Format::Yaml, "configuration.md", yaml)
        .environment([])
        .load()
        .unwrap();
    let registry = Registry::builder()
        .handler::<gentle>()
        .config(&config)
        .build()
        .unwrap();
    let gentle = registry.handler("gentle").unwrap().policy();
    assert_eq!(gentle.next_delay(1), Duration::from_secs(300));
}
