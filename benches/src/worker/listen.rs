//! A worker that only waits for notifications of PostgreSQL.

use sqlx::postgres::PgListener;

use super::{READY, now, until_stdin_closes};

/// The channel of the notifications.
pub(crate) const CHANNEL: &str = "bench_bare";

pub(super) async fn run(url: &str) -> anyhow::Result<()> {
    let mut listener = PgListener::connect(url).await?;
    listener.listen(CHANNEL).await?;
    println!("{READY}");
    let end = until_stdin_closes();
    tokio::pin!(end);
    loop {
        tokio::select! {
            ended = &mut end => return ended,
                        notification = listener.recv() => {
                            let (at, n) = (now(), notification?.payload().to_owned());
                println!("{n} 0 {at}");
            }
        }
    }
}
