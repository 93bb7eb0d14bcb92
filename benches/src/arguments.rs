//! The arguments of the program.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::{database::Kind, scenario::Scenario};

/// Measures outbox against the same work done by hand.
#[derive(Debug, Clone, Parser)]
#[command(name = "outbox-bench")]
pub(crate) struct Arguments {
    /// The scenario to measure
    #[arg(value_enum)]
    pub(crate) scenario: Choice,
    /// Only on this database; otherwise on all three
    #[arg(long, value_enum)]
    pub(crate) db: Option<Kind>,
    /// The number of records; each scenario has its own default
    #[arg(long)]
    pub(crate) records: Option<u64>,
    /// The number of rounds; the best round of each side counts
    #[arg(long)]
    pub(crate) rounds: Option<usize>,
    /// A server to use instead of a throw-away one; only with `--db`
    #[arg(long, requires = "db")]
    pub(crate) url: Option<String>,
    /// One JSON object per figure, as the last lines
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes the results page; an existing page keeps its notes and the databases that were not measured
    #[arg(long, value_name = "FILE.md")]
    pub(crate) report: Option<PathBuf>,
    /// Writes the figures as charts, in one self-contained file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) charts: Option<PathBuf>,
    /// Few records and one round: checks that the scenarios work, without a goal
    #[arg(long)]
    pub(crate) small: bool,
    /// A missed goal is a failure
    #[arg(long)]
    pub(crate) strict: bool,
}

/// One scenario or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    All,
    One(Scenario),
}

impl ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Choice; Scenario::ALL.len() + 1] = {
            let mut all = [Choice::All; Scenario::ALL.len() + 1];
            let mut at = 0;
            while at < Scenario::ALL.len() {
                all[at + 1] = Choice::One(Scenario::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(match self {
            Self::All => clap::builder::PossibleValue::new("all").help("Every scenario"),
            Self::One(scenario) => {
                clap::builder::PossibleValue::new(scenario.name()).help(scenario.about())
            }
        })
    }
}

impl Arguments {
    pub(crate) fn read() -> Self {
        Self::parse()
    }

    /// The databases to measure on.
    pub(crate) fn databases(&self) -> Vec<Kind> {
        match self.db {
            Some(kind) => vec![kind],
            None => Kind::ALL.to_vec(),
        }
    }

    /// Whether the user selected this scenario.
    pub(crate) fn wants(&self, scenario: Scenario) -> bool {
        match self.scenario {
            // `--small` leaves out scenarios that compile other crates.
            Choice::All => !(self.small && scenario.compiles()),
            Choice::One(one) => one == scenario,
        }
    }

    /// Whether a selected scenario needs a database.
    pub(crate) fn needs_database(&self) -> bool {
        match self.scenario {
            Choice::All => true,
            Choice::One(scenario) => scenario.needs_database(),
        }
    }

    /// The number of records; `usual` is the default of the scenario.
    pub(crate) fn records(&self, usual: u64) -> u64 {
        let small = (usual / 50).clamp(500, 4_000).min(usual);
        let records = if self.small { small } else { usual };
        self.records.unwrap_or(records).max(1)
    }

    /// The number of rounds; `usual` is the default of the scenario.
    pub(crate) fn rounds(&self, usual: usize) -> usize {
        let rounds = if self.small { 1 } else { usual };
        self.rounds.unwrap_or(rounds).max(1)
    }
}
