//! [`Arguments`]: the command line.

use clap::{Parser, Subcommand};

use crate::{
    commands::{
        change, completions, instances, lanes, list, migrate, pause, policy, prune, restore, show,
        status, watch,
    },
    connection::ConnectionArguments,
    filter::status_among,
};

/// The README has the same list.
const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    the operation failed or does not apply to the record's current state
  2    the command line is invalid
  3    the database cannot be used: unreachable, permission denied, or no outbox tables
  4    the record, handler or file does not exist
  130  interrupted; completed batches are kept

With --json a command prints one object, or one object per line; `outbox COMMAND --help` lists the fields.";

/// Inspect and change a transactional outbox on PostgreSQL, MySQL, MariaDB or SQLite.
#[derive(Debug, Parser)]
#[command(name = "outbox", version, after_help = EXIT_CODES, next_help_heading = "Global options")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    /// Print JSON: one object, or one object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show counts by status, causes of failures, blocked lanes and paused handlers
    #[command(after_help = status::JSON)]
    Status(status::StatusArguments),
    /// Show the status live, with rates and instances; q or Ctrl-C quits
    #[command(after_help = watch::JSON)]
    Watch(watch::WatchArguments),
    /// List records, or deliveries with --status waiting, retrying or failed; newest first
    #[command(after_help = list::JSON)]
    List(list::ListArguments),
    /// Show everything that is stored about one record, including its payload
    #[command(after_help = show::JSON)]
    Show(show::ShowArguments),
    /// Run handlers again now; failed deliveries get all their retries back
    #[command(after_help = change::JSON, mut_arg("status", |arg| arg.value_parser(status_among(change::REPLAY.statuses))))]
    Replay(change::ChangeArguments),
    /// Give records up permanently; the later records of their lanes continue
    #[command(after_help = change::JSON, mut_arg("status", |arg| arg.value_parser(status_among(change::DISCARD.statuses))))]
    Discard(change::ChangeArguments),
    /// List lanes in which records wait behind a failed or retrying record
    #[command(after_help = lanes::JSON)]
    Lanes(lanes::LaneArguments),
    /// List the processes that run a dispatcher
    #[command(after_help = instances::JSON)]
    Instances,
    /// Stop delivering to a handler, in every process; its records are kept
    #[command(after_help = pause::JSON)]
    Pause(pause::HandlerArguments),
    /// Deliver to a paused handler again
    #[command(after_help = pause::JSON)]
    Resume(pause::HandlerArguments),
    /// Delete records that were completed or discarded long ago
    #[command(after_help = prune::JSON)]
    Prune(prune::PruneArguments),
    /// Put records back that `outbox show ID --json` printed, with their deliveries and attempts
    #[command(after_help = restore::JSON)]
    Restore(restore::RestoreArguments),
    /// Create or update the outbox tables
    #[command(after_help = migrate::JSON)]
    Migrate(migrate::MigrateArguments),
    /// Show the retry schedule of each policy of a configuration file; needs no database
    #[command(after_help = policy::JSON)]
    Policy(policy::PolicyArguments),
    /// Print a completion script for a shell
    Completions(completions::CompletionArguments),
}
