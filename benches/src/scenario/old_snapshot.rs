//! `old-snapshot`: somebody's long transaction keeps the database from forgetting what was deleted.
//! Draining goes on as without it.

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
    let held = async || {
        backlog::write(site, records, KEYS).await?;
        // A connection that nobody else uses: it is closed, whatever happens.
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
    let free = async || {
        backlog::write(site, records, KEYS).await?;
        ours::drain(site, records, KEYS, false).await
    };
    let rounds = site.arguments.rounds(drain::ROUNDS);
    let (held, free) = alternate(&site.progress, "old-snapshot", rounds, held, free).await?;
    let pair = (best(&held)?, best(&free)?);
    Ok(vec![Verdict::rates("old-snapshot", Db::KIND, pair, 0.95)])
}
