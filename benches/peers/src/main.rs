//! Drains a stored backlog of no-op jobs with the libraries that `outbox` is compared with.
//!
//! ```sh
//! scripts/with-databases sh -c 'cargo run --release --manifest-path benches/peers/Cargo.toml -- \
//!     --url "$OUTBOX_TEST_POSTGRES_URL" [--records 50000] [--ordered 2000] [--only NAME[,NAME]] [--list]'
//! ```
//!
//! One JSON object per peer and mode goes to stdout, progress to stderr. `unordered` jobs are
//! independent; `ordered` jobs of one key must be handled one after the other. The time runs from
//! the start of the worker until every job is handled and the queue's own tables hold no open job.
//! An `ordered` run uses no more than `--ordered` records, five of each key.
//!
//! Every peer gets a new database; the note has its settings. Other settings of awa, pgmq and sqlxmq
//! were not tried yet. To give all peers the asynchronous commits of `outbox`, add
//! `?options=-csynchronous_commit%3Doff` to the URL.

mod apalis;
mod arguments;
mod awa;
mod case;
mod database;
mod graphile_worker;
mod node;
mod outbox_postgres;
mod pgmq;
mod report;
mod ruststream;
mod sqlxmq;
mod tally;
mod version;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::case::{Case, Mode, Outcome, Peer};
use crate::database::Database;
use crate::report::Line;

const PEERS: [Peer; 9] = [
    graphile_worker::PEER,
    node::GRAPHILE_WORKER,
    apalis::PEER,
    awa::PEER,
    node::PG_BOSS,
    pgmq::PEER,
    ruststream::PEER,
    outbox_postgres::PEER,
    sqlxmq::PEER,
];

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse()?;
    for peer in PEERS {
        if !arguments.wants(peer.name) {
            continue;
        }
        for &mode in peer.modes {
            if arguments.list {
                println!("{} {}", peer.name, mode.name());
                continue;
            }
            println!("{}", run(peer, mode, &arguments).await);
        }
    }
    Ok(())
}

/// A failure, also of the database, becomes a line with its reason.
async fn run(peer: Peer, mode: Mode, arguments: &Arguments) -> Line {
    let records = match mode {
        Mode::Unordered => arguments.records,
        Mode::Ordered => arguments.records.min(arguments.ordered),
    };
    eprintln!("{} {}, {records} records", peer.name, mode.name());
    let outcome = measure(peer, mode, records, arguments).await;
    Line::new(peer, mode, records, arguments.records, outcome)
}

async fn measure(peer: Peer, mode: Mode, records: usize, arguments: &Arguments) -> Result<Outcome> {
    let database = Database::create(&arguments.url, peer.name).await?;
    let case = Case::new(&database, mode, records);
    let outcome = (peer.run)(case).await;
    database.remove().await?;
    outcome
}
