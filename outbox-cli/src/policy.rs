//! `outbox policy`: when the retries of a configuration come.

use std::{io, time::Duration};

use outbox::{
    Config, Retry, RetryPolicy as _,
    config::{ConfigError, PolicyConfig},
};
use serde::Serialize;

use crate::{
    arguments::PolicyArguments,
    failure::Failure,
    output::Output,
    table::Table,
    words::{plain, short},
};

/// How long the longest bar of a chart is.
const WIDTH: u128 = 40;

/// One object per policy. `schedule` has the earliest and the latest of each, in seconds: after the
/// failure before (`delay`), and after the first one (`at`).
#[derive(Serialize)]
struct Shape<'a> {
    policy: &'a str,
    configured: bool,
    description: String,
    max_retries: u32,
    max_elapsed: Option<f64>,
    only_errors: &'a [String],
    never_errors: &'a [String],
    schedule: Vec<RetryShape>,
}

#[derive(Serialize)]
struct RetryShape {
    retry: u32,
    delay: [f64; 2],
    at: [f64; 2],
}

/// A retry: the earliest and the latest.
struct Due {
    retry: u32,
    delay: [Duration; 2],
    at: [Duration; 2],
}

pub(crate) fn run(arguments: &PolicyArguments, output: Output) -> Result<(), Failure> {
    let config = Config::load(&arguments.config).map_err(|error| unreadable(&error))?;
    let default = config.retry.default.clone().unwrap_or_default();
    let named = config.retry.policies.iter();
    let named = named.map(|(name, policy)| (name.as_str(), policy, true));
    let all = [("default", &default, config.configures_retry())];
    for (n, (name, policy, configured)) in all.into_iter().chain(named).enumerate() {
        let retry = Schedule::of(policy)?;
        if output.is_json() {
            output.object(&retry.shape(name, policy, configured, arguments.limit))?;
            continue;
        }
        if n > 0 {
            output.line("")?;
        }
        output.line(retry.text(name, policy, configured, arguments.limit))?;
    }
    Ok(())
}

fn unreadable(error: &ConfigError) -> Failure {
    let missing = std::error::Error::source(error)
        .and_then(|cause| cause.downcast_ref::<io::Error>())
        .is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound);
    let mut text = error.to_string();
    if let Some(cause) = std::error::Error::source(error) {
        text = format!("{text}: {cause}");
    }
    match missing {
        true => Failure::NotFound(text),
        false => Failure::Refused(text),
    }
}

/// A policy with the earliest and the latest that chance allows.
struct Schedule {
    policy: Retry,
    ends: [Retry; 2],
}

impl Schedule {
    fn of(config: &PolicyConfig) -> Result<Self, Failure> {
        // Types of errors are known to the program that has them; here they are only names.
        let mut unfiltered = config.clone();
        unfiltered.include_exceptions.clear();
        unfiltered.exclude_exceptions.clear();
        let wrong = |error: outbox::retry::PolicyError| Failure::Refused(error.to_string());
        let policy = unfiltered.builder().build().map_err(wrong)?;
        let end = |drawn: u64| policy.to_builder().random(move || drawn).build();
        let ends = [end(0).map_err(wrong)?, end(u64::MAX).map_err(wrong)?];
        Ok(Self { policy, ends })
    }

    /// The first retries, as far as they start in time.
    fn retries(&self, limit: u32) -> Vec<Due> {
        let mut at = [Duration::ZERO; 2];
        let mut all = Vec::new();
        for retry in 1..=self.policy.max_retries().min(limit) {
            let delay = [0, 1].map(|end: usize| {
                self.ends
                    .get(end)
                    .map_or(Duration::ZERO, |policy| policy.next_delay(retry))
            });
            at = [
                at[0].saturating_add(delay[0]),
                at[1].saturating_add(delay[1]),
            ];
            if self.policy.max_elapsed().is_some_and(|most| at[0] > most) {
                break;
            }
            all.push(Due { retry, delay, at });
        }
        all
    }

    fn shape<'a>(
        &self,
        name: &'a str,
        config: &'a PolicyConfig,
        configured: bool,
        limit: u32,
    ) -> Shape<'a> {
        let seconds = |ends: [Duration; 2]| ends.map(|end| end.as_secs_f64());
        let retries = self.retries(limit);
        let schedule = retries.into_iter().map(|due| RetryShape {
            retry: due.retry,
            delay: seconds(due.delay),
            at: seconds(due.at),
        });
        Shape {
            policy: name,
            configured,
            description: self.policy.to_string(),
            max_retries: self.policy.max_retries(),
            max_elapsed: self.policy.max_elapsed().map(|time| time.as_secs_f64()),
            only_errors: &config.include_exceptions,
            never_errors: &config.exclude_exceptions,
            schedule: schedule.collect(),
        }
    }

    fn text(&self, name: &str, config: &PolicyConfig, configured: bool, limit: u32) -> String {
        let note = if configured { "" } else { " (not configured)" };
        let mut lines = vec![format!("{}{note}: {}", plain(name), self.policy)];
        for (only, names) in [
            ("only on", &config.include_exceptions),
            ("never on", &config.exclude_exceptions),
        ] {
            if !names.is_empty() {
                lines.push(format!("  {only} {}", plain(&names.join(", "))));
            }
        }
        let retries = self.retries(limit);
        let longest = retries.iter().map(|due| due.delay[1]).max();
        let mut table = Table::new([">retry", "after", "since the first failure", ""]);
        for due in &retries {
            table.row([
                due.retry.to_string(),
                ends(due.delay),
                ends(due.at),
                bar(due.delay, longest.unwrap_or_default()),
            ]);
        }
        if !table.is_empty() {
            lines.extend(table.lines().iter().map(|line| format!("  {line}")));
        }
        let most = self.policy.max_retries();
        let shown = u32::try_from(retries.len()).unwrap_or(u32::MAX);
        if shown < most && shown == limit {
            lines.push(format!("  .. up to {most} retries"));
        } else if shown < most {
            lines.push("  the rest would come too late".to_owned());
        }
        lines.push("  then it has failed for good".to_owned());
        lines.join("\n")
    }
}

/// `2s`, or `1s to 3s`.
fn ends([earliest, latest]: [Duration; 2]) -> String {
    let words = |time| short(&humantime::format_duration(time).to_string(), 40);
    match earliest == latest {
        true => words(earliest),
        false => format!("{} to {}", words(earliest), words(latest)),
    }
}

/// Full up to the earliest, dotted up to the latest.
fn bar([earliest, latest]: [Duration; 2], longest: Duration) -> String {
    let length = |time: Duration| {
        let length = time.as_nanos() * WIDTH / longest.as_nanos().max(1);
        usize::try_from(length).unwrap_or(0)
    };
    let full = length(earliest);
    let open = length(latest).max(1).saturating_sub(full);
    format!("{}{}", "█".repeat(full), "░".repeat(open))
}
