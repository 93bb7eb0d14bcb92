//! `outbox policy`: the times of the retries that a configuration asks for.

use std::{error::Error as _, io, path::PathBuf, time::Duration};

use clap::Args;
use outbox::{
    Config, RetryPolicy as _,
    config::{ConfigError, PolicyConfig},
    retry::{PolicyError, UnknownErrorName},
};
use serde::{Serialize, Serializer};

use crate::{
    failure::{Exit, Failure, Result, with_causes},
    output::Output,
    table::Table,
    text::{printable, shortened},
};

pub(crate) const JSON: &str = "\
JSON, one object per policy: policy (its name), configured, description, max_retries, max_elapsed (seconds), only_errors,
never_errors, unknown_errors [{name, place, nearest}] (not built into the library: the service has to register them), schedule
[{retry, delay, at}]. Random delays have a range: delay is [earliest, latest] in seconds after the previous
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
        let schedule = Schedule::new(name, policy, is_configured, arguments.limit);
        let invalid = |error: PolicyError| Failure::new(Exit::Failed, error.to_string());
        let schedule = schedule.map_err(invalid)?;
        let gap = if n > 0 { "\n" } else { "" };
        output.print(&schedule, format_args!("{gap}{}", schedule.text()))?;
    }
    Ok(())
}

fn unreadable(error: &ConfigError) -> Failure {
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    let exit = match cause.map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => Exit::NotFound,
        _ => Exit::Failed,
    };
    Failure::new(exit, with_causes(error))
}

/// The earliest and the latest time of something random.
type Range = [Duration; 2];

/// When the retries of one policy start.
#[derive(Serialize)]
struct Schedule<'a> {
    policy: &'a str,
    configured: bool,
    description: String,
    max_retries: u32,
    /// In seconds.
    max_elapsed: Option<f64>,
    only_errors: &'a [String],
    never_errors: &'a [String],
    unknown_errors: Vec<UnknownError>,
    schedule: Vec<Retry>,
    #[serde(skip)]
    limit: u32,
}

/// A name that is not built into the library. This program does not have the error types of services.
#[derive(Serialize)]
struct UnknownError {
    name: String,
    /// `file:line:column`, or the variable.
    place: Option<String>,
    nearest: Option<String>,
}

impl From<UnknownErrorName> for UnknownError {
    fn from(unknown: UnknownErrorName) -> Self {
        Self {
            name: unknown.name,
            place: unknown.place.map(|place| place.to_string()),
            nearest: unknown.nearest,
        }
    }
}

impl UnknownError {
    fn text(&self) -> String {
        let place = self.place.as_ref();
        let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
        let nearest = self.nearest.as_ref();
        let nearest = nearest.map(|nearest| format!(", the nearest is `{nearest}`"));
        let (name, nearest) = (&self.name, nearest.unwrap_or_default());
        format!(
            "{place}`{name}` is no built-in error type{nearest}; the service has to register it"
        )
    }
}

#[derive(Serialize)]
struct Retry {
    retry: u32,
    /// The time since the previous failure.
    #[serde(serialize_with = "in_seconds")]
    delay: Range,
    /// The time since the first failure.
    #[serde(serialize_with = "in_seconds")]
    at: Range,
}

impl<'a> Schedule<'a> {
    fn new(
        name: &'a str,
        config: &'a PolicyConfig,
        is_configured: bool,
        limit: u32,
    ) -> Result<Self, PolicyError> {
        // This program does not have the error types, so that it cannot resolve their names.
        let mut unfiltered = config.clone();
        unfiltered.include_exceptions.clear();
        unfiltered.exclude_exceptions.clear();
        let policy = unfiltered.builder().build()?;
        let drawing = |random: u64| policy.to_builder().random(move || random).build();
        let (earliest, latest) = (drawing(0)?, drawing(u64::MAX)?);

        let mut at = [Duration::ZERO; 2];
        let mut schedule = Vec::new();
        for retry in 1..=policy.max_retries().min(limit) {
            let delay = [earliest.next_delay(retry), latest.next_delay(retry)];
            at = [0, 1].map(|end| at[end].saturating_add(delay[end]));
            if policy.max_elapsed().is_some_and(|most| at[0] > most) {
                break;
            }
            schedule.push(Retry { retry, delay, at });
        }
        Ok(Self {
            policy: name,
            configured: is_configured,
            description: policy.to_string(),
            max_retries: policy.max_retries(),
            max_elapsed: policy.max_elapsed().map(|time| time.as_secs_f64()),
            only_errors: &config.include_exceptions,
            never_errors: &config.exclude_exceptions,
            unknown_errors: config
                .unknown_error_names()
                .into_iter()
                .map(UnknownError::from)
                .collect(),
            schedule,
            limit,
        })
    }

    fn text(&self) -> String {
        let mut name = printable(self.policy);
        if !self.configured {
            name.push_str(" (not configured)");
        }
        let mut lines = vec![format!("{name}: {}", self.description)];
        for (when, errors) in [
            ("only on", self.only_errors),
            ("never on", self.never_errors),
        ] {
            if !errors.is_empty() {
                lines.push(format!("  {when} {}", printable(&errors.join(", "))));
            }
        }
        let unknown = self.unknown_errors.iter();
        lines.extend(unknown.map(|unknown| format!("  {}", printable(&unknown.text()))));
        let longest = self.schedule.iter().map(|retry| retry.delay[1]).max();
        let table = Table::of(&self.schedule)
            .column(">retry", |retry| retry.retry)
            .column("after", |retry| range(retry.delay))
            .column("since the first failure", |retry| range(retry.at))
            .column("", |retry| bar(retry.delay, longest.unwrap_or_default()))
            .text();
        let rows = table.iter().flat_map(|text| text.lines());
        lines.extend(rows.map(|line| format!("  {line}")));
        let most = self.max_retries;
        let shown = u32::try_from(self.schedule.len()).unwrap_or(u32::MAX);
        if shown < most && shown == self.limit {
            lines.push(format!("  .. up to {most} retries"));
        } else if shown < most {
            lines.push("  later retries would exceed max-elapsed".to_owned());
        }
        lines.push("  then the delivery has failed".to_owned());
        lines.join("\n")
    }
}

fn in_seconds<S: Serializer>(range: &Range, serializer: S) -> Result<S::Ok, S::Error> {
    range.map(|time| time.as_secs_f64()).serialize(serializer)
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
