//! [`Metric`]: name, kind, unit, labels and help of one metric.

use std::borrow::Cow;

use ::metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Unit, with_recorder,
};

/// One metric of this library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// The name in Prometheus.
    pub name: &'static str,
    /// The kind.
    pub kind: Kind,
    /// The unit of its values.
    pub unit: Unit,
    /// The names of its labels. A label has few values: never a key, an id or a payload.
    pub labels: &'static [&'static str],
    /// Its meaning, in one sentence.
    pub help: &'static str,
}

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A count that starts at zero with the process and only grows.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// A distribution of observations.
    Histogram,
}

impl Kind {
    /// The name of the kind in `docs/metrics.md`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The values of the labels, in the order of [`Metric::labels`]. A `'static` value is not copied.
pub(crate) type Values<const N: usize> = [Cow<'static, str>; N];

const METADATA: Metadata<'static> = Metadata::new("outbox", Level::INFO, Some(module_path!()));

impl Metric {
    fn key<const N: usize>(&self, kind: Kind, values: Values<N>) -> Key {
        debug_assert_eq!((self.kind, self.labels.len()), (kind, N), "{}", self.name);
        let label = |(name, value): (&&'static str, Cow<'static, str>)| match value {
            Cow::Borrowed(value) => Label::from_static_parts(name, value),
            Cow::Owned(value) => Label::new(*name, value),
        };
        let labels: Vec<Label> = self.labels.iter().zip(values).map(label).collect();
        Key::from_parts(self.name, labels)
    }

    /// Makes a handle. Keep it: making one costs far more than using it.
    pub(crate) fn counter<const N: usize>(&self, values: Values<N>) -> Counter {
        let key = self.key(Kind::Counter, values);
        let counter = with_recorder(|recorder| recorder.register_counter(&key, &METADATA));
        // Some recorders show a counter only after its first use.
        counter.increment(0);
        counter
    }

    pub(crate) fn gauge<const N: usize>(&self, values: Values<N>) -> Gauge {
        let key = self.key(Kind::Gauge, values);
        with_recorder(|recorder| recorder.register_gauge(&key, &METADATA))
    }

    pub(crate) fn histogram<const N: usize>(&self, values: Values<N>) -> Histogram {
        let key = self.key(Kind::Histogram, values);
        with_recorder(|recorder| recorder.register_histogram(&key, &METADATA))
    }

    pub(crate) fn describe(&self) {
        let (name, unit) = (KeyName::from_const_str(self.name), Some(self.unit));
        with_recorder(|recorder| match self.kind {
            Kind::Counter => recorder.describe_counter(name, unit, self.help.into()),
            Kind::Gauge => recorder.describe_gauge(name, unit, self.help.into()),
            Kind::Histogram => recorder.describe_histogram(name, unit, self.help.into()),
        });
    }
}
