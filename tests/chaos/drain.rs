//! After the last fault: waits until every event is delivered, and adds rows of the tables to the
//! history.

use std::{
    collections::{BTreeSet, HashSet},
    path::Path,
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::{
    database::Tested,
    fleet::Fleet,
    history::{self, End, Fact, Handler, History, Sent},
};

/// If no event is delivered for this time plus a lease, the missing ones count as lost.
const MAX_SILENCE: Duration = Duration::from_secs(40);

/// Writes the committed events, by the publishers' table, to the history.
pub(crate) async fn write_sent<Db: Tested>(
    connection: &mut Db::Connection,
    history: &History,
) -> anyhow::Result<()> {
    for (event, tx, key, number, handler, dedup) in Db::sent(connection).await? {
        let handler = Handler::named(&handler).unwrap_or(Handler::Plain);
        let sent = Sent {
            event,
            tx,
            key,
            number,
            handler,
            dedup,
        };
        history.write(&Fact::Sent(sent));
    }
    Ok(())
}

/// Writes the rows of handlers' transactions to the history.
pub(crate) async fn write_effects<Db: Tested>(
    connection: &mut Db::Connection,
    history: &History,
) -> anyhow::Result<()> {
    for (id, event, key) in Db::effects(connection).await? {
        history.write(&Fact::Effect { id, event, key });
    }
    Ok(())
}

/// Waits until every event is delivered, or deliveries have stopped.
pub(crate) async fn drain<Db: Tested>(
    connection: &mut Db::Connection,
    folder: &Path,
    fleet: &mut Fleet,
    lease: Duration,
) -> anyhow::Result<()> {
    let (mut left, mut progress) = (usize::MAX, Instant::now());
    while left > 0 && progress.elapsed() < MAX_SILENCE + lease {
        let facts = history::read(folder)?;
        let mut sent: BTreeSet<i64> = BTreeSet::new();
        let mut done: HashSet<i64> = HashSet::new();
        for fact in &facts {
            match fact {
                Fact::Sent(fact) => {
                    sent.insert(fact.event);
                }
                Fact::End {
                    invocation,
                    end: End::Ok,
                } if invocation.handler == Handler::Plain => {
                    done.insert(invocation.event);
                }
                _ => {}
            }
        }
        let effects = Db::effects(connection).await?;
        done.extend(effects.iter().map(|(_, event, _)| *event));
        let now_left = sent.iter().filter(|event| !done.contains(event)).count();
        if now_left < left {
            (left, progress) = (now_left, Instant::now());
        }
        eprintln!("draining  {left} of {} left", sent.len());
        fleet.reap()?;
        sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}
