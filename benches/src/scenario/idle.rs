//! `idle`: the costs of an instance without work: statements and processor time.

use std::{fs, time::Duration};

use anyhow::Context as _;

use crate::{
    database::{Bench, Kind},
    site::Site,
    statements::Proxy,
    verdict::{Verdict, rounded},
    worker::{Child, Entry, Role},
};

const SETTLING: Duration = Duration::from_secs(10);
const WATCHED: Duration = Duration::from_secs(30);
/// The goals: at most one statement per second, and 0.5 % of a core.
const STATEMENTS: f64 = 1.0;
const PERCENT: f64 = 0.5;

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let (settling, watched) = if site.arguments.small {
        (Duration::from_secs(1), Duration::from_secs(2))
    } else {
        (SETTLING, WATCHED)
    };
    let proxy = match Db::KIND {
        Kind::Postgres => Some(Proxy::start(&site.url).await?),
        Kind::Mysql | Kind::Sqlite => None,
    };
    let url = proxy.as_ref().map_or(&site.url, |proxy| &proxy.url);
    let worker = Child::start(Role::Observe, Db::KIND, url, 0).await?;
    site.progress.doing("idle: settling");
    tokio::time::sleep(settling).await;
    site.progress.doing("idle: watching");
    let before = (statements(site, proxy.as_ref()).await?, ticks(&worker)?);
    tokio::time::sleep(watched).await;
    let after = (statements(site, proxy.as_ref()).await?, ticks(&worker)?);
    let _: Vec<Entry> = worker.end().await?;

    let seconds = watched.as_secs_f64();
    // A tick is 10 ms on Linux, so ticks per second are percent of a core.
    let percent = (after.1 - before.1) as f64 / seconds;
    let statements = match (before.0, after.0) {
        (Some(before), Some(after)) => {
            let each = (after - before) as f64 / seconds;
            let pair = (each.max(0.001), STATEMENTS);
            Verdict::less_is_better("idle/statements", Some(Db::KIND), "per second", pair, 1.0)
        }
        _ => Verdict::skipped(
            "idle/statements",
            Db::KIND,
            "SQLite has no server that counts them",
        ),
    };
    let pair = (percent.max(0.001), PERCENT);
    let cpu = Verdict::less_is_better("idle/cpu", Some(Db::KIND), "% of a core", pair, 1.0);
    Ok(vec![
        statements.with("seconds", rounded(seconds)),
        cpu.with("seconds", rounded(seconds)),
    ])
}

/// The number of statements that the worker has sent so far.
async fn statements<Db: Bench>(
    site: &Site<Db>,
    proxy: Option<&Proxy>,
) -> anyhow::Result<Option<i64>> {
    if let Some(proxy) = proxy {
        return Ok(Some(i64::try_from(proxy.count())?));
    }
    if Db::KIND == Kind::Sqlite {
        return Ok(None);
    }
    // The counter is of the whole server, which has no other client. It includes this statement.
    let sql = "select cast(variable_value as signed) from information_schema.global_status where variable_name = 'questions'";
    Ok(Some(Db::number(&site.pool, sql).await?))
}

/// The processor time of the worker so far, in hundredths of a second.
fn ticks(worker: &Child) -> anyhow::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", worker.id()?))?;
    ticks_of(&stat).with_context(|| format!("cannot parse {stat}"))
}

/// The sum of fields 14 and 15. Field 2 is a name in parentheses, with any characters.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let user: u64 = fields.get(11)?.parse().ok()?;
    let system: u64 = fields.get(12)?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_is_read_for_any_process_name() {
        let stat = "42 (a) name) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0 9 0 100";
        assert_eq!(ticks_of(stat), Some(42));
        assert_eq!(ticks_of("42"), None);
    }
}
