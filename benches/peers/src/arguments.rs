//! The command line.

use anyhow::{Context, Result, bail};

pub(crate) struct Arguments {
    pub(crate) url: String,
    pub(crate) records: usize,
    /// The slowest libraries handle a few hundred ordered jobs per second, so a small number is enough.
    pub(crate) ordered: usize,
    pub(crate) list: bool,
    only: Vec<String>,
}

impl Arguments {
    pub(crate) fn parse() -> Result<Self> {
        let mut arguments = Self {
            url: std::env::var("OUTBOX_TEST_POSTGRES_URL").unwrap_or_default(),
            records: 50_000,
            ordered: 2_000,
            list: false,
            only: Vec::new(),
        };
        let mut given = std::env::args().skip(1);
        while let Some(name) = given.next() {
            let mut value = || {
                given
                    .next()
                    .with_context(|| format!("{name} needs a value"))
            };
            match name.as_str() {
                "--url" => arguments.url = value()?,
                "--records" => arguments.records = value()?.parse().context("--records")?,
                "--ordered" => arguments.ordered = value()?.parse().context("--ordered")?,
                "--only" => arguments.only = value()?.split(',').map(str::to_owned).collect(),
                "--list" => arguments.list = true,
                _ => bail!("unknown argument {name}"),
            }
        }
        if arguments.records == 0 || arguments.ordered == 0 {
            bail!("--records and --ordered must be above 0");
        }
        if arguments.url.is_empty() && !arguments.list {
            bail!("--url postgres://.. is missing");
        }
        Ok(arguments)
    }

    /// Whether the user selected this peer.
    pub(crate) fn wants(&self, peer: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == peer)
    }
}
