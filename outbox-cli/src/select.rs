//! Which records or deliveries: the options of several commands.

use std::time::Duration;

use clap::{Args, ValueEnum};
use outbox::operations::{DeliveryStatus, Filter, RecordStatus, Status};

/// Everything that is said must hold.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Selection {
    /// With this status; `waiting`, `retrying` and `failed` are those of deliveries to one handler
    #[arg(long)]
    pub(crate) status: Option<StatusName>,
    /// Of the event with this stored name
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Of the handler with this id
    #[arg(long, value_name = "ID")]
    pub(crate) handler: Option<String>,
    /// With this key
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Whose last error has this fingerprint, as `outbox status` prints it
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) error: Option<String>,
    /// Published longer ago than this, such as 10m
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    pub(crate) older_than: Option<Duration>,
}

/// The same for lanes, by what is at their head.
#[derive(Debug, Clone, Args)]
pub(crate) struct LaneSelection {
    /// Whose head has this status
    #[arg(long)]
    pub(crate) status: Option<LaneStatusName>,
    /// Whose head is of the event with this stored name
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Of the handler with this id
    #[arg(long, value_name = "ID")]
    pub(crate) handler: Option<String>,
    /// With this key
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Whose head has an error with this fingerprint, as `outbox status` prints it
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) error: Option<String>,
    /// Whose head was published longer ago than this, such as 10m
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    pub(crate) older_than: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusName {
    Pending,
    Scheduled,
    Unhandled,
    Split,
    Completed,
    Discarded,
    Waiting,
    Retrying,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LaneStatusName {
    Retrying,
    Failed,
}

impl StatusName {
    pub(crate) fn status(self) -> Status {
        match self {
            Self::Pending => RecordStatus::Pending.into(),
            Self::Scheduled => RecordStatus::Scheduled.into(),
            Self::Unhandled => RecordStatus::Unhandled.into(),
            Self::Split => RecordStatus::Split.into(),
            Self::Completed => RecordStatus::Completed.into(),
            Self::Discarded => RecordStatus::Discarded.into(),
            Self::Waiting => DeliveryStatus::Waiting.into(),
            Self::Retrying => DeliveryStatus::Retrying.into(),
            Self::Failed => DeliveryStatus::Failed.into(),
        }
    }
}

impl Selection {
    /// Whether nothing was said.
    pub(crate) fn is_empty(&self) -> bool {
        let texts = [&self.event, &self.handler, &self.key, &self.error];
        self.status.is_none() && self.older_than.is_none() && texts.into_iter().all(Option::is_none)
    }

    pub(crate) fn filter(&self) -> Filter {
        let mut filter = Filter::new();
        if let Some(status) = self.status {
            filter = filter.status(status.status());
        }
        if let Some(event) = &self.event {
            filter = filter.event(event);
        }
        if let Some(handler) = &self.handler {
            filter = filter.handler(handler);
        }
        if let Some(key) = &self.key {
            filter = filter.key(key);
        }
        if let Some(error) = &self.error {
            filter = filter.fingerprint(error);
        }
        if let Some(age) = self.older_than {
            filter = filter.older_than(age);
        }
        filter
    }
}

impl LaneSelection {
    pub(crate) fn filter(&self) -> Filter {
        let status = self.status.map(|status| match status {
            LaneStatusName::Retrying => StatusName::Retrying,
            LaneStatusName::Failed => StatusName::Failed,
        });
        let like_records = Selection {
            status,
            event: self.event.clone(),
            handler: self.handler.clone(),
            key: self.key.clone(),
            error: self.error.clone(),
            older_than: self.older_than,
        };
        like_records.filter()
    }
}
