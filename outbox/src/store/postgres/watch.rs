//! How the watcher notices other processes in PostgreSQL: notifications and session locks.

use std::time::Duration;

use sqlx::{Acquire as _, PgConnection, PgPool, Postgres, postgres::PgListener};

use crate::{
    record::Partition,
    store::{Notification, Statements, WatchSql},
};

/// The message of the statement `notify_peers`. Any other message is a list of partitions: `3,17`.
const OWNERSHIP_CHANGED: &str = "leases";

impl WatchSql for Postgres {
    type WatchConnection = PgListener;

    const HAS_SESSION_LOCKS: bool = true;
    const HAS_NOTIFICATIONS: bool = true;
    const LONGEST_POLL_GAP: Duration = Duration::from_millis(100);

    async fn open(pool: &PgPool, sql: &Statements) -> Result<PgListener, sqlx::Error> {
        let mut watch = PgListener::connect_with(pool).await?;
        watch.eager_reconnect(false);
        watch.listen(sql.channel.text().as_str()).await?;
        Ok(watch)
    }

    async fn connection(watch: &mut PgListener) -> Result<&mut PgConnection, sqlx::Error> {
        watch.acquire().await
    }

    async fn next_notification(watch: &mut PgListener) -> Result<Notification, sqlx::Error> {
        Ok(match watch.try_recv().await? {
            Some(notification) => parse_notification(notification.payload()),
            None => Notification::ConnectionLost,
        })
    }
}

/// Any program may send on the channel. A payload that is not a list of partitions only wakes the
/// dispatcher.
fn parse_notification(payload: &str) -> Notification {
    if payload == OWNERSHIP_CHANGED {
        return Notification::OwnershipChanged;
    }
    let partitions = payload
        .split(',')
        .map_while(|number| number.parse().ok().map(Partition::new));
    Notification::Published(partitions.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_payload_is_parsed() {
        assert_eq!(parse_notification("leases"), Notification::OwnershipChanged);
        let published = |numbers: &[u16]| {
            let partitions = numbers.iter().copied().map(Partition::new);
            Notification::Published(partitions.collect())
        };
        assert_eq!(parse_notification("3,17"), published(&[3, 17]));
        assert_eq!(parse_notification("63"), published(&[63]));
        assert_eq!(parse_notification(""), published(&[]));
        assert_eq!(parse_notification("1,x,2"), published(&[1]));
    }
}
