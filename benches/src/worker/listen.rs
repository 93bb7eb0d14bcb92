//! A worker that waits for notifications of PostgreSQL, with nothing around it.

use sqlx::postgres::PgListener;

use super::{READY, now, until_told_to_end};

/// What it listens to.
pub(crate) const CHANNEL: &str = "bench_bare";

pub(super) async fn run(url: &str) -> anyhow::Result<()> {
    let mut listener = PgListener::connect(url).await?;
    listener.listen(CHANNEL).await?;
    println!("{READY}");
    let end = until_told_to_end();
    tokio::pin!(end);
    loop {
        tokio::select! {
            ended = &mut end => return ended,
            told = listener.recv() => {
                let (at, n) = (now(), told?.payload().to_owned());
                println!("{n} 0 {at}");
            }
        }
    }
}
