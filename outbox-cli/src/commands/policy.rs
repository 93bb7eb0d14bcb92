//! `outbox policy`: the times of the retries that a configuration asks for.

use std::{error::Error as _, io, path::PathBuf, time::Duration};

use clap::Args;
use outbox::{
    Config, Retry, RetryPolicy as _,
    config::{ConfigError, PolicyConfig},
};
use serde_json::{Value, json};

use crate::{
    failure::{Exit, Failure, Result, with_causes},
    output::Output,
    table::Table,
    text::{printable, shortened},
};

pub(crate) const JSON: &str = "\
JSON, one object per policy: policy (its name), configured, description, max_retries, max_elapsed (seconds), only_errors,
never_errors, schedule [{retry, delay, at}]. Random delays have a range: delay is [earliest, latest] in seconds after the previous
failure, at is [earliest, latest] in seconds after the first failure.";

/// Width of the longest bar of a chart, in characters.
const WIDTH: u128 = 40;

#[derive(Debug, Args)]
pub(crate) struct PolicyArguments {
    /// The configuration file, TOML or YAML; variables such as `OUTBOX__RETRY__MAX_RETRIES` override it
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// How many retries of a policy to show
    #[arg(long, default_value_t = 20)]
    limit: u32,
}

pub(crate) fn run(arguments: &PolicyArguments, output: Output) -> Result {
    let config = Config::load(&arguments.config).map_err(|error| unreadable(&error))?;
    let default = config.retry.default.clone().unwrap_or_default();
    let named = config.retry.policies.iter();
    let named = named.map(|(name, policy)| (name.as_str(), policy, true));
    let all = [("default", &default, config.configures_retry())];
    for (n, (name, policy, is_configured)) in all.into_iter().chain(named).enumerate() {
        let schedule = Schedule::new(name, policy, is_configured, arguments.limit)?;
        let gap = if n > 0 { "\n" } else { "" };
        output.print(&schedule.json(), format_args!("{gap}{}", schedule.text()))?;
    }
    Ok(())
}

fn unreadable(error: &ConfigError) -> Failure {
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    let is_missing = cause.is_some_and(|io: &io::Error| io.kind() == io::ErrorKind::NotFound);
    let exit = if is_missing {
        Exit::NotFound
    } else {
        Exit::Failed
    };
    Failure::new(exit, with_causes(error))
}

/// The earliest and the latest time of something random.
type Range = [Duration; 2];

/// When the retries of one policy start.
struct Schedule<'a> {
    name: &'a str,
    config: &'a PolicyConfig,
    is_configured: bool,
    policy: Retry,
    limit: u32,
    /// For each retry the time since the previous and since the first failure.
    retries: Vec<(Range, Range)>,
}

impl<'a> Schedule<'a> {
    fn new(
        name: &'a str,
        config: &'a PolicyConfig,
        is_configured: bool,
        limit: u32,
    ) -> Result<Self> {
        // This program does not have the error types, so that it cannot resolve their names.
        let mut unfiltered = config.clone();
        unfiltered.include_exceptions.clear();
        unfiltered.exclude_exceptions.clear();
        let invalid =
            |error: outbox::retry::PolicyError| Failure::new(Exit::Failed, error.to_string());
        let policy = unfiltered.builder().build().map_err(invalid)?;
        let drawing = |random: u64| policy.to_builder().random(move || random).build();
        let earliest = drawing(0).map_err(invalid)?;
        let latest = drawing(u64::MAX).map_err(invalid)?;

        let mut at = [Duration::ZERO; 2];
        let mut retries = Vec::new();
        for retry in 1..=policy.max_retries().min(limit) {
            let delay = [earliest.next_delay(retry), latest.next_delay(retry)];
            at = [
                at[0].saturating_add(delay[0]),
                at[1].saturating_add(delay[1]),
            ];
            if policy.max_elapsed().is_some_and(|most| at[0] > most) {
                break;
            }
            retries.push((delay, at));
        }
        Ok(Self {
            name,
            config,
            is_configured,
            policy,
            limit,
            retries,
        })
    }

    fn json(&self) -> Value {
        let seconds = |range: Range| range.map(|time| time.as_secs_f64());
        let schedule = (1..).zip(&self.retries).map(|(retry, &(delay, at)): (u32, _)| {
            json!({ "retry": retry, "delay": seconds(delay), "at": seconds(at) })
        });
        json!({
            "policy": self.name,
            "configured": self.is_configured,
            "description": self.policy.to_string(),
            "max_retries": self.policy.max_retries(),
            "max_elapsed": self.policy.max_elapsed().map(|time| time.as_secs_f64()),
            "only_errors": self.config.include_exceptions,
            "never_errors": self.config.exclude_exceptions,
            "schedule": schedule.collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let note = if self.is_configured {
            ""
        } else {
            " (not configured)"
        };
        let mut lines = vec![format!("{}{note}: {}", printable(self.name), self.policy)];
        let only = ("only on", &self.config.include_exceptions);
        let never = ("never on", &self.config.exclude_exceptions);
        for (when, errors) in [only, never] {
            if !errors.is_empty() {
                lines.push(format!("  {when} {}", printable(&errors.join(", "))));
            }
        }
        let longest = self.retries.iter().map(|(delay, _)| delay[1]).max();
        let rows = (1..)
            .zip(&self.retries)
            .map(|(retry, &(delay, at)): (u32, _)| {
                let bar = bar(delay, longest.unwrap_or_default());
                [retry.to_string(), range(delay), range(at), bar]
            });
        let table = Table::new([">retry", "after", "since the first failure", ""], rows);
        if !self.retries.is_empty() {
            lines.extend(table.lines().iter().map(|line| format!("  {line}")));
        }
        let most = self.policy.max_retries();
        let shown = u32::try_from(self.retries.len()).unwrap_or(u32::MAX);
        if shown < most && shown == self.limit {
            lines.push(format!("  .. up to {most} retries"));
        } else if shown < most {
            lines.push("  later retries would exceed max-elapsed".to_owned());
        }
        lines.push("  then the delivery has failed".to_owned());
        lines.join("\n")
    }
}

/// `2s`, or `1s to 3s`.
fn range([earliest, latest]: Range) -> String {
    let text = |time| shortened(&humantime::format_duration(time).to_string(), 40);
    if earliest == latest {
        text(earliest)
    } else {
        format!("{} to {}", text(earliest), text(latest))
    }
}

/// Full up to the earliest time, light up to the latest.
fn bar([earliest, latest]: Range, longest: Duration) -> String {
    let length = |time: Duration| {
        let length = time.as_nanos() * WIDTH / longest.as_nanos().max(1);
        usize::try_from(length).unwrap_or(0)
    };
    let full = length(earliest);
    let light = length(latest).max(1).saturating_sub(full);
    format!("{}{}", "█".repeat(full), "░".repeat(light))
}
