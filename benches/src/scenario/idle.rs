//! `idle`: what an instance costs that has nothing to do: statements, and time of a processor.

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
/// What it may cost: one statement a second, half a percent of a core.
const STATEMENTS: f64 = 1.0;
const PERCENT: f64 = 0.5;

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let (settling, watched) = match site.arguments.small {
        true => (Duration::from_secs(1), Duration::from_secs(2)),
        false => (SETTLING, WATCHED),
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
    // A tick is a hundredth of a second on every Linux.
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

/// How many the worker has sent so far.
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
    // Of the whole server, on which there is nobody else; this question is one of them.
    let sql = "select cast(variable_value as signed) from information_schema.global_status where variable_name = 'questions'";
    Ok(Some(Db::number(&site.pool, sql).await?))
}

/// The processor time of the worker so far, in hundredths of a second.
fn ticks(worker: &Child) -> anyhow::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", worker.id()?))?;
    ticks_of(&stat).with_context(|| format!("not understood: {stat}"))
}

/// The 14th and 15th field; the second one is a name in parentheses and may hold anything.
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
    fn the_time_of_a_process_is_read_whatever_its_name_is() {
        let stat = "42 (a) name) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0 9 0 100";
        assert_eq!(ticks_of(stat), Some(42));
        assert_eq!(ticks_of("42"), None);
    }
}
