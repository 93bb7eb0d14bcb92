//! Every wrong file gives one message with the place, the mistake and the remedy.

use std::{collections::BTreeSet, fs};

use outbox::{
    Config, OutboxEvent, Registry, Retry,
    config::{ConfigError, Format, Place},
    outbox_handler, retryable,
};

use crate::{fixture, load};

/// Each file, and the message that follows its name.
#[rustfmt::skip]
const WRONG: &[(&str, &str)] = &[
    ("alias.yaml", ":2:10: anchors (`&name`) are not supported; write the value where it is used"),
    ("bad_duration.yaml", r#":1:16: `poll-interval` is `5 parsecs`, which is not a duration such as "5s" or "1m 30s": unknown time unit "parsecs", supported units: ns, us/µs, ms, sec, min, hours, days, weeks, months, years (and few variations)"#),
    ("outside_prefix.toml", ":2:1: `poll-interval` is outside of `namastack.outbox` and would be ignored; move it into that section"),
    ("outside_prefix.yaml", ":4:1: `processing` is outside of `outbox` and would be ignored; move it into that section"),
    ("blank.toml", ": the file is empty; remove it, or write the settings that differ from the defaults"),
    ("camel_case_key.yaml", ":3:5: unknown key `maxRetries` in `retry`; did you mean `max-retries`?"),
    ("complex_key.yaml", ":1:3: a key is a word, not a list or a section"),
    ("config.ini", ": the file name must end in `.toml`, `.yaml` or `.yml`"),
    ("deep.toml", ":1:41: sections and lists are nested too deeply; no key needs that"),
    ("deep.yaml", ":1:39: sections and lists are nested too deeply; no key needs that"),
    ("deeper_than_needed.yaml", ":33:65: sections and lists are nested too deeply; no key needs that"),
    ("duplicate_key.toml", ":3:1: not valid TOML: duplicate key"),
    ("duplicate_key.yaml", ":4:3: `max-retries` is given twice; remove one"),
    ("duration_without_unit.toml", r#":1:17: `poll-interval` is the text `5000`, which has no unit; write a number without quotes, or text such as "5s""#),
    ("empty.yaml", ": the file is empty; remove it, or write the settings that differ from the defaults"),
    ("foreign_backoff.yaml", ":2:3: `retry.backoff` is not a key of this library; write `policy: fixed` or `policy: exponential`"),
    ("foreign_initial_delay.yaml", ":2:3: `retry.initialDelay` is not a key of this library; write it in the section `exponential` or `linear`, or as `delay` in `fixed`"),
    ("foreign_max_attempts.yaml", ":4:7: `retry.policies.payment.max-attempts` is not a key of this library; write `max-retries`, which does not count the first attempt (one less)"),
    ("foreign_prisma.yaml", ":1:1: `prisma` is not a key of this library; give the pool to `Outbox::builder` in code"),
    ("fraction_delay.yaml", r#":3:12: `retry.fixed.delay` is `1.5`, but must be a whole number of milliseconds, or text such as "5s""#),
    ("fraction_max_retries.yaml", ":2:16: `retry.max-retries` is `2.5`, but must be a whole number from 0 to 4294967295"),
    ("huge_delay.toml", ":2:9: `retry.fixed.delay` is `9223372036854775807`, which is too long; the maximum is 100 years"),
    ("huge_duration.yaml", r#":1:16: `poll-interval` is `99999999999999999999 years`, which is not a duration such as "5s" or "1m 30s": number is too large or cannot be represented without a lack of precision (values below 1ns are not supported)"#),
    ("huge_max_retries.yaml", ":2:16: `retry.max-retries` is `99999999999999999999999999999999999999999999999999`, but must be a whole number from 0 to 4294967295"),
    ("jitter_above_one.yaml", ":2:11: `retry.jitter` is `1.5`, which is not a share from 0.0 to 1.0; write milliseconds without a fraction"),
    ("jitter_ambiguous.toml", r#":2:10: `retry.jitter` is `1`, which could be a share or milliseconds; write 1.0 for up to the whole delay, "1ms" for one millisecond, or "1s" for one second"#),
    ("jitter_ambiguous.yaml", r#":2:11: `retry.jitter` is `1`, which could be a share or milliseconds; write 1.0 for up to the whole delay, "1ms" for one millisecond, or "1s" for one second"#),
    ("jitter_below_zero.yaml", ":2:11: `retry.jitter` is `-100`, which is negative; the minimum is 0"),
    ("list_document.yaml", ":1:1: the document is a list, but must be a section of keys"),
    ("list_for_section.yaml", ":2:3: `retry` is a list, but must be a section"),
    ("little_memory.toml", ":2:17: `processing.max-in-memory` must be at least 16"),
    ("log_key.yaml", ":2:3: unknown key `log-key` in `observability`; did you mean `log-keys`?"),
    ("max_below_initial.yaml", ":4:16: `retry.exponential.max-delay` is 5s, but must not be below `initial-delay`, 10s"),
    ("max_elapsed_zero.yaml", ":2:16: `retry.max-elapsed` must be longer than zero"),
    ("multiplier_infinite.toml", ":2:14: `retry.exponential.multiplier` is inf, but must be a number greater than 1.0; for a constant delay write `policy: fixed`"),
    ("multiplier_nan.yaml", ":3:17: `retry.exponential.multiplier` is NaN, but must be a number greater than 1.0; for a constant delay write `policy: fixed`"),
    ("multiplier_one.yaml", ":3:17: `retry.exponential.multiplier` is 1.0, but must be a number greater than 1.0; for a constant delay write `policy: fixed`"),
    ("named_policy_unknown_key.yaml", ":4:7: unknown key `pin-at-schedule` in `retry.policies.bank`; valid keys are `policy`, `max-retries`, `jitter`, `max-elapsed`, `fixed`, `linear`, `exponential`, `jittered`, `include-exceptions`, `exclude-exceptions`"),
    ("named_policy_zero.yaml", ":6:24: `retry.policies.bank.linear.initial-delay` must be longer than zero"),
    ("negative_delay.yaml", ":3:12: `retry.fixed.delay` is `-5`, which is negative; the minimum is 0"),
    ("negative_max_retries.yaml", ":2:16: `retry.max-retries` is `-1`, but must be a whole number from 0 to 4294967295"),
    ("no_value.yaml", ":2:14: `retry.max-retries` has no value, but must be a whole number from 0 to 4294967295"),
    ("not_utf8.toml", ":1:1: the file is not UTF-8 text; save it as UTF-8: invalid utf-8 sequence of 1 bytes from index 0"),
    ("not_utf8.yaml", ":2:8: the file is not UTF-8 text; save it as UTF-8: invalid utf-8 sequence of 1 bytes from index 14"),
    ("number_in_list.yaml", ":4:7: `retry.include-exceptions[1]` is `42`, but must be text"),
    ("prefix_without_outbox.yaml", ":1:1: `namastack` has no section `outbox`; write the keys there"),
    ("quoted_number.yaml", ":2:16: `retry.max-retries` is the text `5`, but must be a whole number from 0 to 4294967295"),
    ("refresh_above_lease.yaml", ":3:22: `locking.refresh-threshold` is 1m, but must be below the lease, 1m"),
    ("scalar_document.yaml", ":1:1: the document is `just some text`, but must be a section of keys"),
    ("second_document.yaml", ":3:1: a second document starts here; keep one `---` at most"),
    ("section_for_list.yaml", ":3:5: `retry.include-exceptions` is a section, but must be a list"),
    ("snake_case_key.toml", ":2:1: unknown key `max_retries` in `retry`; did you mean `max-retries`?"),
    ("tab_indentation.yaml", ":2:2: not valid YAML: a tab is used for indentation; use spaces"),
    ("tag.yaml", ":2:16: tags (`!name`) are not supported; write the value without a tag"),
    ("text_for_list.yaml", ":2:23: `retry.include-exceptions` is `std::io::Error`, but must be a list"),
    ("two_jitters.yaml", ":3:11: `retry.jitter` has no effect with `policy: jittered`, which has its own `jitter`; write the base policy as `policy`, or remove this key"),
    ("two_leases.yaml", ":1:18: `stuck-threshold` sets the same value as `locking.extension-seconds`; keep one of them"),
    ("two_prefixes.yaml", ":5:3: `outbox` and `namastack.outbox` are both present; keep one of them"),
    ("unclosed.toml", ":1:7: not valid TOML: unclosed table, expected `]`"),
    ("unclosed.yaml", ":2:1: not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'"),
    ("unknown_base_policy.yaml", ":4:18: `retry.jittered.base-policy` is `jittered`, but must be one of `fixed`, `linear`, `exponential`"),
    ("unknown_jitter.yaml", ":2:11: `retry.jitter` is `ful`, but must be one of `none`, `full`, `equal`, `decorrelated`; did you mean `full`?"),
    ("unknown_key.toml", ":5:1: unknown key `multiplyer` in `retry.exponential`; did you mean `multiplier`?"),
    ("unknown_key.yaml", ":3:3: unknown key `max-retrys` in `retry`; did you mean `max-retries`?"),
    ("unknown_policy.yaml", ":2:11: `retry.policy` is `exponental`, but must be one of `fixed`, `linear`, `exponential`, `jittered`; did you mean `exponential`?"),
    ("unknown_retention.yaml", r#":2:14: `processing.retention` is `sometimes`, which is not `delete`, `forever` or a duration such as "7d""#),
    ("unknown_section.yaml", ":1:1: unknown key `server`; valid keys are `poll-interval`, `locking`, `stuck-threshold`, `schema-initialization`, `processing`, `metrics`, `observability`, `retry`, `include-exceptions`, `exclude-exceptions`"),
    ("wrong_type.yaml", ":2:26: `processing.stop-on-first-failure` is `maybe`, but must be `true` or `false`"),
    ("zero_delay.yaml", ":4:12: `retry.fixed.delay` must be longer than zero"),
    ("zero_delay_not_in_use.toml", ":2:26: `retry.linear.increment` must be longer than zero"),
    ("zero_poll_interval.yaml", ":1:16: `poll-interval` must be longer than zero"),
    ("zero_retention.yaml", ":2:14: `processing.retention` must be longer than zero"),
];

#[test]
fn each_wrong_file_gives_its_message() {
    for &(file, message) in WRONG {
        let path = fixture(&format!("wrong/{file}"));
        // `{:#}` adds the cause, which the text of the error does not contain.
        let text = format!("{:#}", anyhow::Error::from(load(&path).expect_err(file)));
        let after_path = text.strip_prefix(&path.display().to_string());
        assert_eq!(after_path, Some(message), "{file}");
    }
}

#[test]
fn each_wrong_file_has_a_message() {
    let listed: BTreeSet<String> = WRONG.iter().map(|&(file, _)| file.to_owned()).collect();
    let files: BTreeSet<String> = fs::read_dir(fixture("wrong"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, listed);
}

#[test]
fn an_error_keeps_its_place_and_its_cause() {
    let error = load(&fixture("wrong/unknown_key.yaml")).unwrap_err();
    let Some(&Place::File { line, column, .. }) = error.place() else {
        panic!("{error:?}");
    };
    assert_eq!((line, column), (3, 3));

    let missing = load(&fixture("wrong/there-is-none.yaml")).unwrap_err();
    let cause = std::error::Error::source(&missing).unwrap();
    assert!(cause.is::<std::io::Error>() && missing.place().is_none());
    assert!(
        missing
            .to_string()
            .ends_with("there-is-none.yaml: cannot be read"),
        "{missing}"
    );
}

#[test]
fn a_file_above_the_size_limit_is_not_parsed() {
    let text = "# x\n".repeat(300_000);
    let error = Config::loader()
        .text(Format::Yaml, "long.yaml", text)
        .environment([])
        .load()
        .unwrap_err();
    assert!(matches!(error, ConfigError::TooLarge { .. }), "{error}");
}

/// The loader cannot check names of errors, because code registers the user's own names later. The error has
/// the place all the same.
#[test]
fn an_unknown_error_type_is_reported_with_its_place_when_the_policy_is_built() {
    let path = fixture("unknown_error_type.yaml");
    let config = load(&path).unwrap();
    let error = Retry::from_config(&config.retry).build().unwrap_err();
    let path = path.display();
    assert_eq!(
        error.to_string(),
        format!(
            "{path}:3:7: no error type is registered under the name `std::io::Eror`, the nearest is `std::io::Error`; \
             register your own with `#[outbox::error_name(\"std::io::Eror\")]` or `.error_name::<E>(\"std::io::Eror\")`"
        )
    );
}

fn of_text(format: Format, text: &str, variables: &[(&str, &str)]) -> Config {
    let variables = variables.iter();
    let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let loader = Config::loader().text(format, "outbox.conf", text);
    loader.environment(variables).load().unwrap()
}

/// The message of a registry that has this configuration, after the constant beginning.
fn at_start_up(config: &Config) -> String {
    let registry = Registry::builder().allow_empty().config(config);
    let text = registry.build().unwrap_err().to_string();
    text.strip_prefix("the outbox cannot start: ")
        .unwrap()
        .to_owned()
}

#[test]
fn the_place_of_an_unknown_error_type_is_found_in_every_section_and_format() {
    let yaml = "outbox:\n  exclude-exceptions:\n    - std::fmt::Error\n    - a::B\n  retry: { max-retries: 1 }\n";
    let named = "[retry.policies.bank]\ninclude-exceptions = [\"std::fmt::Error\", \"a::B\"]\n";
    let retry = "[retry]\nexclude-exceptions = [ \"a::B\" ]\n";
    let variable = ("OUTBOX__RETRY__EXCLUDE_EXCEPTIONS", "std::fmt::Error, a::B");
    for (config, place) in [
        (
            of_text(Format::Yaml, yaml, &[]),
            "the `retry` section of the configuration cannot be built: outbox.conf:4:7: ",
        ),
        (
            of_text(Format::Toml, named, &[]),
            "the named policy `bank` cannot be built: outbox.conf:2:42: ",
        ),
        (
            of_text(Format::Toml, retry, &[]),
            "the `retry` section of the configuration cannot be built: outbox.conf:2:24: ",
        ),
        (
            of_text(Format::Yaml, "poll-interval: 1s\n", &[variable]),
            "the `retry` section of the configuration cannot be built: OUTBOX__RETRY__EXCLUDE_EXCEPTIONS: ",
        ),
    ] {
        let text = at_start_up(&config);
        let rest = text.strip_prefix(place);
        let is_found = rest.is_some_and(|rest| {
            rest.starts_with("no error type is registered under the name `a::B`")
        });
        assert!(is_found, "{text}\nshould begin with\n{place}");
    }
}

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "paid")]
struct Paid {}

#[outbox_handler(id = "pay")]
#[retryable(policy = "bank")]
async fn pay(_event: Paid) {}

#[test]
fn an_unknown_policy_is_reported_with_the_place_of_the_nearest_one() {
    let config = of_text(
        Format::Yaml,
        "retry:\n  policies:\n    bnk: { max-retries: 1 }\n",
        &[],
    );
    let registry = Registry::builder().handler::<pay>().config(&config);
    let text = registry.build().unwrap_err().to_string();
    assert!(text.contains("names the policy `bank`, which does not exist (the nearest is `bnk`, at outbox.conf:3:5): give it"), "{text}");
}

#[test]
fn places_are_no_settings() {
    let text = |lines: &str| {
        of_text(
            Format::Yaml,
            &format!("{lines}retry: {{ exclude-exceptions: [std::fmt::Error] }}\n"),
            &[],
        )
    };
    assert_eq!(text(""), text("# one line further down\n"));
}

#[test]
fn an_ambiguous_jitter_of_the_environment_is_refused() {
    let loader =
        Config::loader().environment([("OUTBOX__RETRY__JITTER".to_owned(), "1".to_owned())]);
    let text = loader.load().unwrap_err().to_string();
    assert!(text.starts_with("OUTBOX__RETRY__JITTER: `retry.jitter` is `1`, which could be a share or milliseconds; write 1.0"), "{text}");
}
