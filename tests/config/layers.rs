//! All formats, prefixes and environment variables lead to the same settings.

use std::{env, process::Command, time::Duration};

use outbox::{
    Config, Retry, RetryPolicy as _,
    config::{ConfigError, Format, PolicyKind},
    retry::Jitter,
};

use crate::{schedule, secs};

fn text(format: Format, text: &str) -> Config {
    let loader = Config::loader().text(format, "text", text).environment([]);
    loader
        .load()
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn with_variables(yaml: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    let loader = Config::loader().environment(variables.iter().map(owned));
    match yaml {
        "" => loader.load(),
        yaml => loader.text(Format::Yaml, "outbox.yaml", yaml).load(),
    }
}

fn message(yaml: &str, variables: &[(&str, &str)]) -> String {
    with_variables(yaml, variables).unwrap_err().to_string()
}

const YAML: &str = r#"
poll-interval: 250ms
stuck-threshold: 60000
schema-initialization: { enabled: false }
processing:
  stop-on-first-failure: false
observability: { log-keys: true }
retry:
  policy: linear
  max-retries: 0x10
  jitter: 0.25
  max-elapsed: 1h 30m
  linear: { initial-delay: 500, increment: "1s", max-delay: 30s }
  include-exceptions: [ "std::io::Error", 'outbox::handler::TimedOut' ]
  pin-at-schedule: true
  policies:
    bank:
      policy: fixed
      fixed:
        delay: 30s
    "mail server": {}
"#;

const TOML: &str = r#"
poll-interval = "250ms"
stuck-threshold = 60_000
schema-initialization.enabled = false
processing.stop-on-first-failure = false
observability.log-keys = true

[retry]
policy = "linear"
max-retries = 0x10
jitter = 0.25
max-elapsed = "1h 30m"
linear = { initial-delay = 500, increment = "1s", max-delay = "30s" }
include-exceptions = ["std::io::Error", 'outbox::handler::TimedOut']
pin-at-schedule = true

[retry.policies.bank]
policy = "fixed"
fixed.delay = "30s"

[retry.policies."mail server"]
"#;

#[test]
fn toml_and_yaml_mean_the_same() {
    let config = text(Format::Yaml, YAML);
    assert_eq!(config, text(Format::Toml, TOML));

    assert_eq!(config.poll_interval, Duration::from_millis(250));
    assert_eq!(config.lease(), Duration::from_secs(60));
    assert!(config.retry.pin_at_schedule && config.observability.log_keys);
    let policy = config.retry.default.unwrap();
    assert_eq!(
        (policy.policy, policy.max_retries),
        (PolicyKind::Linear, 16)
    );
    assert_eq!(policy.jitter, Jitter::Proportional(0.25));
    assert_eq!(policy.max_elapsed, Some(Duration::from_secs(5400)));
    let bank = config.retry.policies["bank"].builder().build().unwrap();
    assert_eq!(schedule(&bank), secs([30; 3]));
    let mail = config.retry.policies["mail server"]
        .builder()
        .build()
        .unwrap();
    assert_eq!(
        schedule(&mail),
        secs([1, 2, 4]),
        "a named policy does not inherit"
    );
}

#[test]
fn a_configuration_written_as_json_is_valid_yaml() {
    let config = text(Format::Yaml, YAML);
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(text(Format::Yaml, &json), config);
}

#[test]
fn keys_may_be_at_the_top_or_under_a_prefix() {
    let plain = text(Format::Yaml, "retry: { max-retries: 7 }");
    for under_prefix in [
        "outbox: { retry: { max-retries: 7 } }",
        "namastack: { outbox: { retry: { max-retries: 7 } } }",
        "server: { port: 80 }\noutbox: { retry: { max-retries: 7 } }\nspring: [ 1 ]",
        "namastack: { other: 1, outbox: { retry: { max-retries: 7 } } }\nserver: 5",
        "namastack: { other: 1 }\noutbox: { retry: { max-retries: 7 } }",
    ] {
        assert_eq!(text(Format::Yaml, under_prefix), plain, "{under_prefix}");
    }
    assert_eq!(
        text(Format::Toml, "[namastack.outbox.retry]\nmax-retries = 7"),
        plain
    );
}

#[test]
fn a_section_without_keys_and_a_file_of_comments_give_the_defaults() {
    for yaml in [
        "# nothing yet\n",
        "retry:\n  # max-retries: 3\n",
        "outbox:\n",
        "---\n",
        "{}",
        "locking: ~",
    ] {
        assert_eq!(text(Format::Yaml, yaml), Config::default(), "{yaml}");
    }
    assert_eq!(text(Format::Toml, "# nothing yet"), Config::default());
    assert_eq!(
        text(Format::Yaml, "\u{feff}poll-interval: 5s"),
        Config::default()
    );
}

#[test]
fn a_lease_without_a_unit_is_in_seconds() {
    let config = text(
        Format::Yaml,
        "locking: { extension-seconds: 90, refresh-threshold: 1m }",
    );
    assert_eq!(config.lease(), Duration::from_secs(90));
    assert_eq!(config.renew_below(), Duration::from_secs(60));
    let config = text(Format::Yaml, "locking: { extension-seconds: 90 }");
    assert_eq!(config.renew_below(), Duration::from_secs(60), "two thirds");
}

#[test]
fn variables_win_over_the_file() {
    let config = with_variables(
        "outbox: { poll-interval: 1s, retry: { policy: linear, max-retries: 2, jitter: full } }",
        &[
            ("OUTBOX__RETRY__MAX_RETRIES", "5"),
            ("OUTBOX__RETRY__POLICY", "fixed"),
            ("OUTBOX__RETRY__FIXED__DELAY", "30s"),
            ("OUTBOX__RETRY__JITTER", "none"),
            ("OUTBOX__RETRY__EXPONENTIAL__MULTIPLIER", "3"),
            (
                "OUTBOX__RETRY__EXCLUDE_EXCEPTIONS",
                "std::fmt::Error, std::io::Error",
            ),
            ("OUTBOX__PROCESSING__STOP_ON_FIRST_FAILURE", "false"),
            ("OUTBOX__OBSERVABILITY__LOG_KEYS", "true"),
            ("OUTBOX__LOCKING__EXTENSION_SECONDS", "45"),
            ("OUTBOX_POLL_INTERVAL", "not ours"),
            ("PATH", "/bin"),
        ],
    )
    .unwrap();
    let retry = Retry::from_config(&config.retry).build().unwrap();
    assert_eq!(schedule(&retry), secs([30; 5]));
    assert!(!retry.should_retry(&std::fmt::Error.into()));
    assert!(!retry.should_retry(&std::io::Error::other("x").into()));
    assert!(retry.should_retry(&"other".into()));
    assert!(!config.processing.stop_on_first_failure && config.observability.log_keys);
    assert_eq!(
        config.poll_interval,
        Duration::from_secs(1),
        "as in the file"
    );
    assert_eq!(config.lease(), Duration::from_secs(45));
}

#[test]
fn variables_work_without_a_file() {
    let config = with_variables("", &[("OUTBOX__POLL_INTERVAL", "1500")]).unwrap();
    assert_eq!(config.poll_interval, Duration::from_millis(1500));
    assert!(!config.configures_retry());
    let config = with_variables("", &[("OUTBOX__RETRY__MAX_RETRIES", "3")]).unwrap();
    assert!(config.configures_retry());
}

#[test]
fn a_variable_finds_a_named_policy_in_each_spelling() {
    for name in ["my-bank", "my_bank", "myBank", "MY-BANK"] {
        let yaml = format!("retry: {{ policies: {{ {name}: {{ max-retries: 1 }} }} }}");
        let variables = [("OUTBOX__RETRY__POLICIES__MY_BANK__MAX_RETRIES", "9")];
        let config = with_variables(&yaml, &variables).unwrap();
        assert_eq!(config.retry.policies[name].max_retries, 9, "{name}");
        assert_eq!(config.retry.policies.len(), 1);
    }
    let config = with_variables(
        "",
        &[("OUTBOX__RETRY__POLICIES__MY_BANK__MAX_RETRIES", "9")],
    )
    .unwrap();
    assert_eq!(config.retry.policies["my-bank"].max_retries, 9, "a new one");
}

#[test]
fn the_message_for_a_wrong_variable_suggests_the_right_one() {
    for (variables, expected) in [
        (
            &[("OUTBOX__RETRY__MAX_RETRYS", "5")][..],
            "OUTBOX__RETRY__MAX_RETRYS: unknown key `max-retrys` in `retry`; did you mean `OUTBOX__RETRY__MAX_RETRIES`?",
        ),
        (
            &[("OUTBOX__RETRY_MAX_RETRIES", "5")],
            "OUTBOX__RETRY_MAX_RETRIES: unknown key `retry-max-retries`; did you mean `OUTBOX__RETRY__MAX_RETRIES`?",
        ),
        (
            &[("OUTBOX__RETRY__MAX_ATTEMPTS", "5")],
            "OUTBOX__RETRY__MAX_ATTEMPTS: `retry.max-attempts` is not a key of this library; write `max-retries`, which does not count the first attempt (one less)",
        ),
        (
            &[("OUTBOX__RETRY__MAX_RETRIES", "many")],
            "OUTBOX__RETRY__MAX_RETRIES: `retry.max-retries` is `many`, but must be a whole number from 0 to 4294967295",
        ),
        (
            &[("OUTBOX__RETRY__MAX_RETRIES", "")],
            "OUTBOX__RETRY__MAX_RETRIES: `retry.max-retries` has no value, but must be a whole number from 0 to 4294967295",
        ),
        (
            &[("OUTBOX__RETRY__POLICY", "Fixd")],
            "OUTBOX__RETRY__POLICY: `retry.policy` is `Fixd`, but must be one of `fixed`, `linear`, `exponential`, `jittered`; did you mean `fixed`?",
        ),
        (
            &[("OUTBOX__RETRY__FIXED__DELAY", "0s")],
            "OUTBOX__RETRY__FIXED__DELAY: `retry.fixed.delay` must be longer than zero",
        ),
        (
            &[("OUTBOX__RETRY", "fixed")],
            "OUTBOX__RETRY: `retry` is `fixed`, but must be a section",
        ),
        (
            &[("OUTBOX__POLL_INTERVAL__X", "1")],
            "OUTBOX__POLL_INTERVAL__X: `poll-interval` is not a section, so it has no keys",
        ),
        (
            &[("OUTBOX____RETRY", "1")],
            "OUTBOX____RETRY: not a valid name; write two underscores between keys, as in `OUTBOX__RETRY__MAX_RETRIES`",
        ),
        (
            &[
                ("OUTBOX__POLL_INTERVAL", "1s"),
                ("OUTBOX__poll_interval", "2s"),
            ],
            "OUTBOX__poll_interval: sets the same key as `OUTBOX__POLL_INTERVAL`",
        ),
        (
            &[
                ("OUTBOX__LOCKING__EXTENSION_SECONDS", "60"),
                ("OUTBOX__STUCK_THRESHOLD", "60s"),
            ],
            "OUTBOX__STUCK_THRESHOLD: `stuck-threshold` sets the same value as `locking.extension-seconds`; keep one of them",
        ),
    ] {
        assert_eq!(message("poll-interval: 5s", variables), expected);
    }
}

#[test]
fn a_variable_that_could_mean_two_policies_is_refused() {
    let yaml = "retry: { policies: { my_bank: {}, myBank: {} } }";
    assert_eq!(
        message(
            yaml,
            &[("OUTBOX__RETRY__POLICIES__MY_BANK__MAX_RETRIES", "9")]
        ),
        "OUTBOX__RETRY__POLICIES__MY_BANK__MAX_RETRIES: could mean `my_bank` or `myBank`; rename one of them"
    );
}

/// Setting a variable is unsafe while other threads run. So the test starts itself as a process
/// that has the variable.
#[test]
fn the_environment_of_the_process_is_read() {
    const VARIABLE: &str = "OUTBOX__RETRY__MAX_RETRIES";
    if env::var_os(VARIABLE).is_some() {
        let config = Config::load(crate::fixture("reference/retry_fixed.yaml")).unwrap();
        let retry = Retry::from_config(&config.retry).build().unwrap();
        assert_eq!(schedule(&retry), secs([5; 8]));
        return;
    }
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "layers::the_environment_of_the_process_is_read"])
        .env(VARIABLE, "8")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && output.contains("1 passed"),
        "{output}"
    );
}
