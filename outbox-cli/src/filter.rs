//! [`FilterArguments`]: which records, deliveries or lanes a command selects.

use std::time::Duration;

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use outbox::operations::{DeliveryStatus, Filter, RecordStatus, Status};

/// Every status that a list can be filtered by.
pub(crate) const STATUSES: &[Status] = &[
    PENDING,
    SCHEDULED,
    UNHANDLED,
    Status::Record(RecordStatus::Split),
    Status::Record(RecordStatus::Completed),
    Status::Record(RecordStatus::Discarded),
    WAITING,
    RETRYING,
    FAILED,
];
pub(crate) const PENDING: Status = Status::Record(RecordStatus::Pending);
pub(crate) const SCHEDULED: Status = Status::Record(RecordStatus::Scheduled);
pub(crate) const UNHANDLED: Status = Status::Record(RecordStatus::Unhandled);
pub(crate) const WAITING: Status = Status::Delivery(DeliveryStatus::Waiting);
pub(crate) const RETRYING: Status = Status::Delivery(DeliveryStatus::Retrying);
pub(crate) const FAILED: Status = Status::Delivery(DeliveryStatus::Failed);

/// The filters besides the status. All of them must match.
#[derive(Debug, Args)]
pub(crate) struct FilterArguments {
    /// Select by the stored name of the event
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Select by the id of the handler
    #[arg(long, value_name = "ID")]
    pub(crate) handler: Option<String>,
    /// Select by the key
    #[arg(long)]
    key: Option<String>,
    /// Select by the fingerprint of the last error, as `outbox status` prints it
    #[arg(long, value_name = "FINGERPRINT")]
    error: Option<String>,
    /// Select records that were published longer ago than this, for example 10m
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,
    /// Select deliveries whose last attempt failed at most this long ago, for example 1h
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    failed_since: Option<Duration>,
}

impl FilterArguments {
    /// Whether the command line has none of these filters.
    pub(crate) fn is_empty(&self) -> bool {
        let texts = [&self.event, &self.handler, &self.key, &self.error];
        let ages = [self.older_than, self.failed_since];
        ages.iter().all(Option::is_none) && texts.into_iter().all(Option::is_none)
    }

    pub(crate) fn with_status(&self, status: Option<Status>) -> Filter {
        type Select = fn(Filter, String) -> Filter;
        let texts: [(&Option<String>, Select); 4] = [
            (&self.event, Filter::event),
            (&self.handler, Filter::handler),
            (&self.key, Filter::key),
            (&self.error, Filter::fingerprint),
        ];
        let mut filter = Filter::new();
        for (text, select) in texts {
            if let Some(text) = text.clone() {
                filter = select(filter, text);
            }
        }
        if let Some(status) = status {
            filter = filter.status(status);
        }
        if let Some(age) = self.older_than {
            filter = filter.older_than(age);
        }
        if let Some(age) = self.failed_since {
            filter = filter.failed_since(age);
        }
        filter
    }
}

/// Parses one of these statuses by its name.
pub(crate) fn status_among(statuses: &'static [Status]) -> impl TypedValueParser<Value = Status> {
    let names = statuses.iter().map(|status| name(*status));
    PossibleValuesParser::new(names).try_map(|text| {
        let mut all = STATUSES.iter().copied();
        all.find(|status| name(*status) == text)
            .ok_or("no such status")
    })
}

fn name(status: Status) -> &'static str {
    match status {
        Status::Record(status) => status.as_str(),
        Status::Delivery(status) => status.as_str(),
        _ => "unknown",
    }
}
