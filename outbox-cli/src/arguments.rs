//! What can be said on the command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

use crate::{
    help,
    select::{LaneSelection, Selection},
};

/// Also in the README.
const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    something failed, or cannot be done to what is there
  2    the command line is wrong
  3    the database cannot be used: not reachable, no permission, no outbox tables
  4    there is no such record, handler or file
  130  interrupted; what was done until then stays done

With --json each command prints one object, or one per line; its own help says which.";

/// Looks at a transactional outbox and changes what is in it, on PostgreSQL, MySQL, MariaDB or SQLite.
#[derive(Debug, Parser)]
#[command(name = "outbox", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    /// Prints JSON: one object, or one per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which tables.
#[derive(Debug, Args)]
pub(crate) struct TargetArguments {
    /// The database: postgres://.., mysql://.. or sqlite://..; else the variable `DATABASE_URL`. Others
    /// can see a command line: a URL with a password is better in the variable
    #[arg(
        long,
        global = true,
        env = "OUTBOX_DATABASE_URL",
        hide_env_values = true
    )]
    pub(crate) url: Option<String>,
    /// The schema of the tables, in MySQL the database; by default the connection's own
    #[arg(long, global = true, env = "OUTBOX_SCHEMA")]
    pub(crate) schema: Option<String>,
    /// What the names of the tables start with
    #[arg(
        long,
        global = true,
        env = "OUTBOX_TABLE_PREFIX",
        default_value = "outbox_"
    )]
    pub(crate) table_prefix: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// How much there is, by what it waits for; causes of failures, blocked lanes, pauses
    #[command(after_help = help::STATUS)]
    Status(StatusArguments),
    /// The same live: rates, lag, lanes and instances; q or Ctrl-C ends it
    #[command(after_help = help::WATCH)]
    Watch(WatchArguments),
    /// Records, or deliveries with --status waiting, retrying or failed; the newest first
    #[command(after_help = help::LIST)]
    List(ListArguments),
    /// Everything that is stored of one record, its payload among it
    #[command(after_help = help::SHOW)]
    Show(ShowArguments),
    /// Gives records to their handlers again, now; failed ones with all their retries
    #[command(after_help = help::CHANGE)]
    Replay(ChangeArguments),
    /// Gives records up, for good; their lanes go on
    #[command(after_help = help::CHANGE)]
    Discard(ChangeArguments),
    /// Lanes in which later records wait behind one that failed or is retried
    #[command(after_help = help::LANES)]
    Lanes(LaneArguments),
    /// Processes that run a dispatcher
    #[command(after_help = help::INSTANCES)]
    Instances,
    /// Gives nothing to a handler until it is resumed, in every process; its records are kept
    #[command(after_help = help::HANDLER)]
    Pause(HandlerArguments),
    /// Ends a pause
    #[command(after_help = help::HANDLER)]
    Resume(HandlerArguments),
    /// Deletes records that were completed or discarded long ago
    #[command(after_help = help::PRUNE)]
    Prune(PruneArguments),
    /// Creates or updates the tables
    #[command(after_help = help::MIGRATE)]
    Migrate(MigrateArguments),
    /// The schedule of each retry policy of a configuration file; needs no database
    #[command(after_help = help::POLICY)]
    Policy(PolicyArguments),
    /// Prints a completion script for a shell
    Completions(CompletionArguments),
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Counts finished records one by one instead of estimating them; takes a second per million
    #[arg(long)]
    pub(crate) exact: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    /// How long between two looks
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration)]
    pub(crate) interval: Duration,
    /// Ends after this many
    #[arg(long)]
    pub(crate) count: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// How many, of 1 to 1000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// The oldest first
    #[arg(long)]
    pub(crate) oldest: bool,
    /// Goes on after the last of another list, as that said
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<outbox::operations::Cursor>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The id of the record
    pub(crate) id: i64,
}

#[derive(Debug, Args)]
pub(crate) struct ChangeArguments {
    /// These records; else all that the filters select, failed deliveries unless --status says
    /// otherwise
    #[arg(value_name = "ID", conflicts_with_all = ["status", "event", "key", "error", "older_than", "all"])]
    pub(crate) ids: Vec<i64>,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Everything that has failed, where no filter is given
    #[arg(long)]
    pub(crate) all: bool,
    /// How many in one transaction, of 1 to 1000
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) batch_size: u32,
    /// Changes nothing: says how many would be changed, and which
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How many --dry-run names, of 1 to 1000
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct LaneArguments {
    #[command(flatten)]
    pub(crate) selection: LaneSelection,
    /// How many, of 1 to 1000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct HandlerArguments {
    /// The id of the handler
    pub(crate) handler: String,
    /// Changes nothing: says what would be
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArguments {
    /// Finished longer ago than this, such as 7d
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    pub(crate) older_than: Duration,
    /// Deletes nothing: says how many would be deleted, and which
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    /// Prints the statements, for those who run them by hand; of the database only the kind matters
    #[arg(long)]
    pub(crate) print: bool,
    /// Changes nothing: says what would be
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyArguments {
    /// The configuration, TOML or YAML; variables such as `OUTBOX__RETRY__MAX_RETRIES` count too
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// How many retries of a policy are shown
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    pub(crate) shell: clap_complete::Shell,
}
