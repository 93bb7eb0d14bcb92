//! A policy of a configuration names error types, which code registers.

use outbox::{
    Config, HandlerError, OutboxEvent, Registry, Retry, RetryPolicy, outbox_handler, retryable,
};

#[derive(Debug, thiserror::Error)]
#[error("refused")]
struct Refused;

#[derive(Debug, thiserror::Error)]
#[error("timed out")]
struct Timeout;

fn retries(policy: &dyn RetryPolicy, error: impl Into<HandlerError>) -> bool {
    policy.should_retry(&error.into())
}

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "asked")]
struct Asked {}

#[outbox_handler(id = "ask")]
async fn ask(_event: Asked) {}

#[outbox_handler(id = "ask-named")]
#[retryable(policy = "named")]
async fn ask_named(_event: Asked) {}

/// A configuration that never retries the error of this name.
fn excludes(name: &str) -> Config {
    let text =
        format!(r#"{{ "retry": {{ "max-retries": 7, "exclude-exceptions": ["{name}"] }} }}"#);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_policy_from_the_configuration_knows_the_names_that_its_builder_gets() {
    let config = excludes("test.refused");
    let unknown = Retry::from_config(&config.retry).build().unwrap_err();
    assert!(unknown.to_string().contains("`test.refused`"), "{unknown}");
    let known = Retry::from_config(&config.retry)
        .error_name::<Timeout>("test.other")
        .error_name::<Refused>("test.refused")
        .build()
        .unwrap();
    assert!(!retries(&known, Refused) && retries(&known, Timeout));

    let text = r#"{ "retry": { "include-exceptions": ["test.refused"] } }"#;
    let config: Config = serde_json::from_str(text).unwrap();
    let only = Retry::from_config(&config.retry).error_name::<Refused>("test.refused");
    let only = only.build().unwrap();
    assert!(retries(&only, Refused) && !retries(&only, Timeout));
}

#[test]
fn a_policy_from_the_configuration_knows_the_names_of_the_outbox_in_any_order() {
    let config = excludes("test.refused");
    let policy = || Retry::from_config(&config.retry).max_retries(2);
    let empty = || Registry::builder().handler::<ask>().handler::<ask_named>();
    for (order, registry) in [
        empty()
            .error_name::<Refused>("test.refused")
            .retry_policy(policy())
            .named_policy("named", policy()),
        empty()
            .retry_policy(policy())
            .named_policy("named", policy())
            .error_name::<Refused>("test.refused"),
    ]
    .into_iter()
    .enumerate()
    {
        let registry = registry.build().unwrap();
        for handler in ["ask", "ask-named"] {
            let policy = registry.handler(handler).unwrap().policy();
            assert_eq!(policy.max_retries(), 2, "{handler}, order {order}");
            assert!(
                !policy.should_retry(&HandlerError::from(Refused)),
                "{handler}, order {order}"
            );
            assert!(
                policy.should_retry(&HandlerError::from(Timeout)),
                "{handler}, order {order}"
            );
        }
    }
    let error = empty()
        .retry_policy(policy())
        .named_policy("named", policy())
        .build()
        .unwrap_err();
    assert_eq!(error.problems().len(), 2, "{error}");
}
