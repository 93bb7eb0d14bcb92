//! `old-snapshot`: a long transaction prevents the database from removing deleted rows. Draining must
//! be as fast as without it.

use crate::{
    backlog::{self, KEYS},
    database::Bench,
    ours,
    rounds::{alternate, best},
    scenario::drain,
    site::Site,
    verdict::Verdict,
};

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let records = site.arguments.records(drain::RECORDS);
    let with_snapshot = async || {
        backlog::write(site, records, KEYS).await?;
        // The connection is closed at the end, also after an error.
        let mut holder = site.pool.acquire().await?;
        holder.close_on_drop();
        Db::execute_on(&mut holder, Db::BEGIN_SNAPSHOT).await?;
        Db::execute_on(
            &mut holder,
            "select count(*) from outbox_record where id < 10",
        )
        .await?;
        let measured = ours::drain(site, records, KEYS, false).await?;
        Db::execute_on(&mut holder, "rollback").await?;
        Ok(measured)
    };
    let without = async || {
        backlog::write(site, records, KEYS).await?;
        ours::drain(site, records, KEYS, false).await
    };
    let rounds = site.arguments.rounds(drain::ROUNDS);
    let (held, free) = alternate(
        &site.progress,
        "old-snapshot",
        rounds,
        with_snapshot,
        without,
    )
    .await?;
    let pair = (best(&held)?, best(&free)?);
    Ok(vec![Verdict::rates("old-snapshot", Db::KIND, pair, 0.95)])
}
