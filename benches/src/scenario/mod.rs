//! The scenarios, one file each.

mod check_time;
mod dispatch;
mod drain;
mod growth;
mod idle;
mod latency;
mod memory;
mod old_snapshot;
mod peers;
mod publish;
mod retry_storm;
mod scale_out;

use sqlx::{MySql, Postgres, Sqlite};

use crate::{
    arguments::Arguments,
    database::{Bench, Kind},
    results::Results,
    site::Site,
    table::Rows,
    verdict::Verdict,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    Dispatch,
    CheckTime,
    Drain,
    DrainKeep,
    DrainHotKey,
    Publish,
    PublishBulk,
    Latency,
    OldSnapshot,
    Growth,
    RetryStorm,
    ScaleOut,
    Idle,
    Memory,
    Peers,
}

impl Scenario {
    pub(crate) const ALL: [Self; 15] = [
        Self::Dispatch,
        Self::CheckTime,
        Self::Drain,
        Self::DrainKeep,
        Self::DrainHotKey,
        Self::Publish,
        Self::PublishBulk,
        Self::Latency,
        Self::OldSnapshot,
        Self::Growth,
        Self::RetryStorm,
        Self::ScaleOut,
        Self::Idle,
        Self::Memory,
        Self::Peers,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::CheckTime => "check-time",
            Self::Drain => "drain",
            Self::DrainKeep => "drain-keep",
            Self::DrainHotKey => "drain-hot-key",
            Self::Publish => "publish",
            Self::PublishBulk => "publish-bulk",
            Self::Latency => "latency",
            Self::OldSnapshot => "old-snapshot",
            Self::Growth => "growth",
            Self::RetryStorm => "retry-storm",
            Self::ScaleOut => "scale-out",
            Self::Idle => "idle",
            Self::Memory => "memory",
            Self::Peers => "peers",
        }
    }

    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::Dispatch => "One record through one handler in memory, against the same by hand",
            Self::CheckTime => "`cargo check` of 300 handlers, against the same without attributes",
            Self::Drain => {
                "A backlog of 10,000 keys, completed records deleted, against a serial loop"
            }
            Self::DrainKeep => "The same with completed records kept, against a serial loop",
            Self::DrainHotKey => "A backlog of one key, against `drain`",
            Self::Publish => {
                "64 concurrent transactions with an event each, against an insert by hand"
            }
            Self::PublishBulk => "1,000 events in one statement, against an insert by hand",
            Self::Latency => "From commit to handler, against a bare notification",
            Self::OldSnapshot => "`drain` under a long transaction, against `drain`",
            Self::Growth => {
                "The first of 5,000,000 records, and a backlog with delayed and blocked ones, against few"
            }
            Self::RetryStorm => "Every record fails twice, against `drain`",
            Self::ScaleOut => "Two and four processes against one",
            Self::Idle => "Statements and processor time of an instance without work",
            Self::Memory => "The peak while 5,000,000 records drain, against a tenth of them",
            Self::Peers => "Our `drain` against other libraries",
        }
    }

    /// Whether the scenario compiles other crates.
    pub(crate) const fn compiles(self) -> bool {
        matches!(self, Self::CheckTime | Self::Peers)
    }

    /// Whether the scenario runs on a database.
    pub(crate) const fn needs_database(self) -> bool {
        !matches!(self, Self::Dispatch | Self::CheckTime)
    }
}

/// Runs every selected scenario, and prints the figures of each as soon as it has ended.
pub(crate) async fn run(arguments: &Arguments) -> Results {
    let mut results = Results::default();
    let (on_databases, without): (Vec<Scenario>, Vec<Scenario>) = Scenario::ALL
        .into_iter()
        .filter(|scenario| arguments.wants(*scenario))
        .partition(|scenario| scenario.needs_database());
    for scenario in without {
        let measured = measure(arguments, scenario, None);
        results.add(scenario.name(), None, measured).await;
        show(arguments, &mut results);
    }
    for kind in arguments.databases() {
        for scenario in &on_databases {
            let start = std::time::Instant::now();
            let measured = measure(arguments, *scenario, Some(kind));
            results.add(scenario.name(), Some(kind), measured).await;
            let (name, db, time) = (scenario.name(), kind.name(), start.elapsed());
            eprintln!("{name} on {db}: {:.1} s", time.as_secs_f64());
            show(arguments, &mut results);
        }
    }
    results
}

/// Prints the figures of the last scenario.
fn show(arguments: &Arguments, results: &mut Results) {
    let last = results.last_added();
    if arguments.small {
        // A run with few records cannot be compared with a goal.
        for verdict in &mut *last {
            verdict.remove_goal();
        }
    }
    print!("{}", Rows(last));
}

async fn measure(
    arguments: &Arguments,
    scenario: Scenario,
    kind: Option<Kind>,
) -> anyhow::Result<(Vec<Verdict>, String)> {
    let rounds = arguments.rounds(7);
    match kind {
        Some(Kind::Postgres) => Box::pin(on::<Postgres>(arguments, scenario)).await,
        Some(Kind::Mysql) => Box::pin(on::<MySql>(arguments, scenario)).await,
        Some(Kind::Sqlite) => Box::pin(on::<Sqlite>(arguments, scenario)).await,
        None if scenario == Scenario::Dispatch => {
            let verdicts = dispatch::run(arguments.records(200_000), rounds).await?;
            Ok((verdicts, String::new()))
        }
        None => Ok((check_time::run(rounds).await?, String::new())),
    }
}

/// The figures of one scenario, and the version of the database.
async fn on<Db: Bench>(
    arguments: &Arguments,
    scenario: Scenario,
) -> anyhow::Result<(Vec<Verdict>, String)> {
    let site = Site::<Db>::create(arguments, "outbox_bench").await?;
    let version = Db::text(&site.pool, Db::VERSION).await?;
    let verdicts = match scenario {
        Scenario::Drain => drain::deleting(&site).await?,
        Scenario::DrainKeep => drain::keeping(&site).await?,
        Scenario::DrainHotKey => drain::hot_key(&site).await?,
        Scenario::Publish => publish::concurrently(&site).await?,
        Scenario::PublishBulk => publish::in_bulk(&site).await?,
        Scenario::Latency => latency::run(&site).await?,
        Scenario::OldSnapshot => old_snapshot::run(&site).await?,
        Scenario::Growth => growth::run(&site).await?,
        Scenario::RetryStorm => retry_storm::run(&site).await?,
        Scenario::ScaleOut => scale_out::run(&site).await?,
        Scenario::Idle => idle::run(&site).await?,
        Scenario::Memory => memory::run(&site).await?,
        Scenario::Peers => peers::run(&site).await?,
        Scenario::Dispatch | Scenario::CheckTime => Vec::new(),
    };
    site.remove().await;
    Ok((verdicts, version))
}
