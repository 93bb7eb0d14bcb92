//! Every number of retries, delay and jitter that holds where a program names none.
//!
//! | where nothing is named | policy |
//! |---|---|
//! | a handler without any policy | exponential 1s ×2 up to 1m, max 3 retries |
//! | the configuration, or one of its named policies | exponential 1s ×2 up to 1m, max 3 retries |
//! | `policy: linear` of a configuration | linear 2s +2s up to 1m, max 3 retries |
//! | `policy: fixed` of a configuration | fixed 5s, max 3 retries |
//! | `policy: jittered` of a configuration | exponential 1s ×2 up to 1m, max 3 retries, jitter 0 to +500ms |
//! | [`Retry::builder()`](super::Retry::builder), `Retry::default()` | fixed 5s, max 3 retries |
//!
//! All of them retry after any error, and none has a `max_elapsed`. `#[retryable(..)]` has no defaults of its
//! own: a part that it does not name comes from the next weaker [place](super::PolicySource).
//!
//! `max 3 retries` are up to 4 invocations.

use std::time::Duration;

/// The number of retries, everywhere.
pub const MAX_RETRIES: u32 = 3;

/// The delay of a fixed back-off, in code and in the configuration.
pub const FIXED_DELAY: Duration = Duration::from_secs(5);

/// The first delay of a linear back-off in the configuration.
pub const LINEAR_INITIAL: Duration = Duration::from_secs(2);
/// The increase of a linear back-off in the configuration.
pub const LINEAR_INCREMENT: Duration = Duration::from_secs(2);
/// The longest delay of a linear back-off in the configuration.
pub const LINEAR_MAX: Duration = Duration::from_secs(60);

/// The first delay of an exponential back-off: in the configuration, and of a handler without any policy.
pub const EXPONENTIAL_INITIAL: Duration = Duration::from_secs(1);
/// The factor of an exponential back-off: in the configuration, and of a handler without any policy.
pub const EXPONENTIAL_MULTIPLIER: f64 = 2.0;
/// The longest delay of an exponential back-off: in the configuration, and of a handler without any policy.
pub const EXPONENTIAL_MAX: Duration = Duration::from_secs(60);

/// The longest addition to a delay of `policy: jittered` in the configuration.
pub const ADDED_JITTER: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use crate::{
        Config,
        config::{PolicyConfig, PolicyKind},
        retry::{Retry, RetryPolicy as _},
    };

    /// The table above is what the code does.
    #[test]
    fn the_table_says_what_each_place_starts_with() {
        let of = |policy: PolicyKind| {
            let config = PolicyConfig {
                policy,
                ..PolicyConfig::default()
            };
            config.builder().build().unwrap()
        };
        let builder = "[`Retry::builder()`](super::Retry::builder), `Retry::default()`";
        let unnamed = Retry::from_config(&Config::default().retry);
        let rows = [
            ("a handler without any policy", unnamed.build().unwrap()),
            (
                "the configuration, or one of its named policies",
                of(PolicyKind::default()),
            ),
            (
                "`policy: linear` of a configuration",
                of(PolicyKind::Linear),
            ),
            ("`policy: fixed` of a configuration", of(PolicyKind::Fixed)),
            (
                "`policy: jittered` of a configuration",
                of(PolicyKind::Jittered),
            ),
            (builder, Retry::default()),
        ];
        let written = include_str!("defaults.rs");
        let table = written.lines().filter(|line| line.starts_with("//! | "));
        let table: Vec<&str> = table.skip(1).collect();
        let expected =
            rows.map(|(place, policy)| format!("//! | {place} | {} |", policy.describe()));
        assert_eq!(table, expected);
    }

    /// The keys of a configuration have the same defaults in the guide.
    #[test]
    fn the_guide_names_the_same_numbers() {
        let guide = include_str!("../../docs/guide/configuration.md");
        for row in [
            "| `max-retries` | 3 |",
            "| `fixed.delay` | 5 s |",
            "| `linear.initial-delay`, `.increment`, `.max-delay` | 2 s, 2 s, 60 s |",
            "| `exponential.initial-delay`, `.multiplier`, `.max-delay` | 1 s, 2.0, 60 s |",
            "| `jittered.base-policy`, `.jitter` | `exponential`, 500 ms |",
        ] {
            assert!(guide.contains(row), "{row}");
        }
    }
}
