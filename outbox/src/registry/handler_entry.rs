//! [`HandlerEntry`]: one handler of a registry.

use std::{fmt, time::Duration};

use super::{PermanentFailure, Registration, policies::Policy};
use crate::{
    record::Record,
    retry::{PolicyPart, PolicySource, Resolved, RetryPolicy},
    telemetry::trace::AttemptLog,
};

/// One handler of a [`Registry`](crate::Registry), with the retry policy that applies to it.
pub struct HandlerEntry {
    pub(crate) registration: &'static Registration,
    pub(super) resolved: Resolved<Policy>,
    /// Writes the log lines about its attempts.
    pub(crate) log: AttemptLog,
    pub(crate) transactions: Transactions,
}

/// Which functions of a handler take a `Tx`, the transaction that completes the record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transactions {
    pub(crate) handler: bool,
    pub(crate) fallback: bool,
}

impl Transactions {
    pub(crate) fn any(self) -> bool {
        self.handler || self.fallback
    }
}

impl HandlerEntry {
    /// The id under which the database knows the handler.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.registration.id
    }

    /// The retry policy that applies to the handler.
    #[must_use]
    pub fn policy(&self) -> &dyn RetryPolicy {
        &*self.resolved.policy
    }

    /// Where the policy was set.
    #[must_use]
    pub fn policy_source(&self) -> PolicySource {
        self.resolved.source
    }

    /// The number of retries that is stored with a record and wins over the policy's: the publisher's,
    /// otherwise the pinned one. A pinned number is that of a configuration, so it counts only where
    /// the configuration, or the default, sets the number.
    pub(crate) fn stored_max_retries(&self, record: &Record) -> Option<u32> {
        let source = self.resolved.source_of(PolicyPart::MaxRetries);
        let may_pin = source >= PolicySource::Configuration;
        record
            .max_retries
            .or_else(|| record.pinned_max_retries.filter(|_| may_pin))
    }

    /// The time limit of one invocation.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.registration.timeout
    }

    /// How many invocations may run at the same time in this process.
    #[must_use]
    pub fn concurrency(&self) -> Option<u32> {
        self.registration.concurrency
    }

    /// What a permanent failure does to later records of the lane.
    #[must_use]
    pub fn on_permanent_failure(&self) -> PermanentFailure {
        self.registration.on_permanent_failure
    }
}

impl fmt::Debug for HandlerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerEntry")
            .field("id", &self.registration.id)
            .field("policy", &self.policy().describe())
            .field("source", &self.resolved.source)
            .finish_non_exhaustive()
    }
}
