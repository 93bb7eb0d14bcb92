//! The sections of a configuration, except for `retry`.

use std::time::Duration;

use super::{Retention, declare::sections, duration};

/// The number of partitions of new tables. At most one instance per partition has work, and each
/// partition costs one index look-up per fetch.
pub(crate) const DEFAULT_PARTITIONS: u16 = 64;
/// MySQL makes at most 1,000 rows in one statement of the schema.
pub(crate) const MAX_PARTITIONS: u16 = 512;

sections! {
    /// The section `locking`: how long a lease lasts, and when a process renews it.
    ///
    /// Numbers count **seconds** here, as in `extension-seconds: 300`. Text such as `"5m"` has its own
    /// unit.
    #[derive(Eq)]
    pub struct LockingConfig {
        /// `extension-seconds`: how long a lease lasts unless it is renewed. Peers take over from a frozen
        /// process after this time. They take over from a killed process within about a second where the
        /// database reports lost sessions. Do not set `stuck-threshold` too. Default: 30 s.
        #[serde(rename = "extension-seconds")]
        #[serde(with = "duration::seconds", skip_serializing_if = "Option::is_none")]
        pub lease: Option<Duration> = None,
        /// A process renews its leases when less than this time remains of them, and also when it takes a
        /// partition or has reconnected. A short threshold means few statements, and little time to bridge an
        /// outage of the database. Must be shorter than the lease. Default: two thirds of the lease.
        #[serde(with = "duration::seconds", skip_serializing_if = "Option::is_none")]
        pub refresh_threshold: Option<Duration> = None,
    }

    /// The section `schema-initialization`.
    #[derive(Eq)]
    pub struct SchemaInitializationConfig {
        /// Whether [`build`](crate::OutboxBuilder::build) creates and migrates the tables. Default: true.
        pub enabled: bool = true,
        /// The number of partitions of new tables, and the largest number of instances that share the work.
        /// Tables that exist keep their number. From 1 to 512. Default: 64.
        pub partitions: u16 = DEFAULT_PARTITIONS,
    }

    /// The section `processing`.
    #[derive(Eq)]
    pub struct ProcessingConfig {
        /// Whether a failed record blocks its lane until it completes or is discarded. Default: true.
        pub stop_on_first_failure: bool = true,
        /// How long completed and discarded records are kept. Default: seven days.
        pub retention: Retention = Retention::default(),
        /// The largest number of records in memory of a dispatcher, running and waiting. Retries that are due
        /// are not counted. Default: 16384.
        pub max_in_memory: u32 = 16_384,
    }

    /// The section `metrics`: how often a dispatcher reads gauges from the database. All other metrics
    /// need no statement.
    #[derive(Eq)]
    pub struct MetricsConfig {
        /// Whether the dispatcher reads gauges: records by status, age of the oldest pending record,
        /// blocked lanes. Default: true.
        pub sampling: bool = true,
        /// The time between two samples. A sample is three to six small statements. Default: 15 s, a
        /// usual scrape interval of Prometheus.
        #[serde(with = "duration::millis")]
        pub sample_interval: Duration = Duration::from_secs(15),
    }

    /// The section `observability`: what log lines and spans may contain. They never contain payloads
    /// or the texts of errors.
    #[derive(Eq)]
    pub struct ObservabilityConfig {
        /// Whether they contain the keys of records. A key is often personal data, such as a customer
        /// number, and more people read logs than tables. Default: false.
        pub log_keys: bool = false,
    }
}

impl LockingConfig {
    pub(super) const DEFAULT_LEASE: Duration = Duration::from_secs(30);

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
