//! Signs of other processes in PostgreSQL: notifications, and the locks of sessions.

use std::time::Duration;

use sqlx::{Acquire as _, PgConnection, PgPool, Postgres, postgres::PgListener};

use crate::store::{Notification, Statements, WatchSql};

/// The message of the statement `notify_peers`: partitions changed hands. Any other message is a list of partitions: `3,17`.
const LEASES: &str = "leases";

impl WatchSql for Postgres {
    type WatchConnection = PgListener;

    const HAS_SESSION_LOCKS: bool = true;
    const HAS_NOTIFICATIONS: bool = true;
    const LONGEST_POLL_GAP: Duration = Duration::from_millis(100);

    async fn open(pool: &PgPool, sql: &Statements) -> Result<PgListener, sqlx::Error> {
        let mut line = PgListener::connect_with(pool).await?;
        line.eager_reconnect(false);
        line.listen(sql.channel.text().as_str()).await?;
        Ok(line)
    }

    async fn connection(line: &mut PgListener) -> Result<&mut PgConnection, sqlx::Error> {
        line.acquire().await
    }

    async fn next_notification(line: &mut PgListener) -> Result<Notification, sqlx::Error> {
        Ok(match line.try_recv().await? {
            Some(told) => understood(told.payload()),
            None => Notification::ConnectionLost,
        })
    }
}

/// Anybody may send anything on a channel: what is no list of partitions only wakes.
fn understood(payload: &str) -> Notification {
    if payload == LEASES {
        return Notification::OwnershipChanged;
    }
    let parts = payload.split(',').map_while(|part| part.parse().ok());
    Notification::Published(parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_told_is_understood_somehow() {
        assert_eq!(understood("leases"), Notification::OwnershipChanged);
        assert_eq!(understood("3,17"), Notification::Published(vec![3, 17]));
        assert_eq!(understood("63"), Notification::Published(vec![63]));
        assert_eq!(understood(""), Notification::Published(vec![]));
        assert_eq!(understood("1,x,2"), Notification::Published(vec![1]));
    }
}
