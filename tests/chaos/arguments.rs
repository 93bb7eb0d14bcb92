//! The arguments of the program.

use std::{path::PathBuf, str::FromStr, time::Duration};

use anyhow::{Context as _, bail};

use crate::{faults::FaultKind, server::Kind, worker::WorkerArguments};

/// The text for wrong arguments.
pub(crate) const USAGE: &str = "chaos --db postgres|mysql|sqlite [--workers 3] [--seconds 60] [--seed 1] \
    [--publishers 4] [--faults kill,freeze,terminate,restart,cut,join,leave,clock] [--lease 5] \
    [--keys 200] [--poll MILLISECONDS] [--history DIR]";

/// The arguments of one run.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    pub(crate) kind: Kind,
    pub(crate) workers: usize,
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
    pub(crate) publishers: u32,
    /// The kinds of faults that apply to the database.
    pub(crate) faults: Vec<FaultKind>,
    pub(crate) lease: Duration,
    pub(crate) keys: u32,
    /// The poll interval; `None` means the default of the library.
    pub(crate) poll: Option<Duration>,
    /// The folder that keeps the history; `None` means that the run removes it.
    pub(crate) history: Option<PathBuf>,
}

/// `--name value` pairs. A pair that is not taken is an error.
#[derive(Debug)]
pub(crate) struct Pairs(Vec<(String, String)>);

impl Pairs {
    pub(crate) fn new(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut pairs = Vec::new();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").context(USAGE)?;
            let value = words
                .next()
                .with_context(|| format!("{word} has no value"))?;
            pairs.push((name.to_owned(), value));
        }
        Ok(Self(pairs))
    }

    fn take<T: FromStr>(&mut self, name: &str) -> anyhow::Result<Option<T>>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let Some(at) = self.0.iter().position(|(found, _)| found == name) else {
            return Ok(None);
        };
        let (_, value) = self.0.remove(at);
        let parsed = value.parse().with_context(|| format!("--{name} {value}"))?;
        Ok(Some(parsed))
    }

    fn demand<T: FromStr>(&mut self, name: &str) -> anyhow::Result<T>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        self.take(name)?
            .with_context(|| format!("--{name} is missing: {USAGE}"))
    }

    pub(crate) fn kind(&mut self) -> anyhow::Result<Kind> {
        Ok(match &*self.demand::<String>("db")? {
            "postgres" => Kind::Postgres,
            "mysql" => Kind::Mysql,
            "sqlite" => Kind::Sqlite,
            other => bail!("--db {other}: {USAGE}"),
        })
    }

    fn end(self) -> anyhow::Result<()> {
        match self.0.first() {
            Some((name, _)) => bail!("--{name} is not known: {USAGE}"),
            None => Ok(()),
        }
    }
}

impl Arguments {
    pub(crate) fn read(mut pairs: Pairs) -> anyhow::Result<Self> {
        let kind = pairs.kind()?;
        let faults: Option<String> = pairs.take("faults")?;
        let read = Self {
            kind,
            workers: pairs.take("workers")?.unwrap_or(3),
            seconds: pairs.take("seconds")?.unwrap_or(60),
            seed: pairs.take("seed")?.unwrap_or(1),
            publishers: pairs.take("publishers")?.unwrap_or(4),
            faults: match faults {
                Some(names) => faults_by_name(&names)?,
                None => FaultKind::ALL.to_vec(),
            },
            lease: Duration::from_secs(pairs.take("lease")?.unwrap_or(5)),
            keys: pairs.take("keys")?.unwrap_or(200),
            poll: pairs.take("poll")?.map(Duration::from_millis),
            history: pairs.take("history")?,
        };
        pairs.end()?;
        Ok(Self {
            faults: (read.faults.iter().copied())
                .filter(|fault| fault.applies_to(kind))
                .collect(),
            ..read
        })
    }

    /// The arguments that all workers of this run have in common.
    pub(crate) fn for_workers(&self, history: &std::path::Path) -> Vec<String> {
        let db = match self.kind {
            Kind::Postgres => "postgres",
            Kind::Mysql => "mysql",
            Kind::Sqlite => "sqlite",
        };
        let (lease, history) = (self.lease.as_secs(), history.display());
        let mut words = format!("--db {db} --lease {lease} --history {history}");
        if let Some(poll) = self.poll {
            words += &format!(" --poll {}", poll.as_millis());
        }
        words.split(' ').map(str::to_owned).collect()
    }
}

impl WorkerArguments {
    pub(crate) fn read(mut pairs: Pairs) -> anyhow::Result<(Kind, Self)> {
        let kind = pairs.kind()?;
        let arguments = Self {
            name: pairs.demand("name")?,
            url: pairs.demand("url")?,
            history: pairs.demand("history")?,
            offset: pairs.demand("offset")?,
            lease: Duration::from_secs(pairs.demand("lease")?),
            poll: pairs.take("poll")?.map(Duration::from_millis),
        };
        pairs.end()?;
        Ok((kind, arguments))
    }
}

fn faults_by_name(names: &str) -> anyhow::Result<Vec<FaultKind>> {
    let fault_by_name = |name: &str| {
        let found = FaultKind::ALL.into_iter().find(|kind| kind.name() == name);
        found.with_context(|| format!("--faults {name}: {USAGE}"))
    };
    names
        .split(',')
        .filter(|name| !name.is_empty())
        .map(fault_by_name)
        .collect()
}
