//! [`HealthCheck`]: a health probe and its limits.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use tokio::time::{Instant, timeout};

use super::{DatabaseHealth, DispatcherHealth, Health};
use crate::{
    outbox::Outbox,
    store::{Database, Operator},
};

/// A probe; see [`Outbox::health`].
#[must_use = "a probe does nothing until it is awaited"]
#[derive(Debug, Clone)]
pub struct HealthCheck<Db: Database> {
    outbox: Outbox<Db>,
    max_lag: Option<Duration>,
    max_failed: Option<u64>,
    silence: Duration,
    limit: Duration,
}

/// Without a limit, failures are counted up to this number.
const MAX_COUNTED: u32 = 1_000;

impl<Db: Database> Outbox<Db> {
    /// Checks the health of this outbox, for the endpoints that an orchestrator probes. Runs three small
    /// statements, cheap enough for a call every second. Never fails, and never takes longer than
    /// [`within`](HealthCheck::within).
    ///
    /// Lag and failures count only if they have a limit. They are those of all processes: if a service
    /// that answers requests has such a limit, all its processes become unready at the same time.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use outbox::{Outbox, Registry};
    ///
    /// /// GET /live and GET /ready: status and body.
    /// async fn ready(outbox: &Outbox<sqlx::Sqlite>) -> (u16, String) {
    ///     let health = outbox
    ///         .health()
    ///         .max_lag(Duration::from_secs(300))
    ///         .max_failed(100)
    ///         .within(Duration::from_millis(800))
    ///         .await;
    ///     let status = if health.ready { 200 } else { 503 };
    ///     (status, serde_json::to_string(&health).unwrap_or_default())
    /// }
    ///
    /// fn live(outbox: &Outbox<sqlx::Sqlite>) -> u16 {
    ///     if outbox.is_live() { 200 } else { 503 } // without the database
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    /// # let outbox = Outbox::builder(pool).registry(Registry::builder().allow_empty()).build().await?;
    /// # let (status, body) = ready(&outbox).await;
    /// # assert_eq!((status, live(&outbox)), (200, 200), "{body}");
    /// # assert_eq!(body, r#"{"live":true,"ready":true,"dispatcher":"not_started","database":"ok","lag_seconds":0.0,"failed":0,"lags":false,"fails":false}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self) -> HealthCheck<Db> {
        HealthCheck {
            outbox: self.clone(),
            max_lag: None,
            max_failed: None,
            silence: Duration::from_secs(30),
            limit: Duration::from_secs(1),
        }
    }

    /// Whether the dispatcher, if one was started, has not panicked and its event loop ran within the
    /// last 30 s. Does not use the database: to restart a process does not help if its database cannot be
    /// reached.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.health().dispatcher().is_live()
    }
}

impl<Db: Database> HealthCheck<Db> {
    /// Not ready if the oldest pending record was published longer ago than this.
    pub fn max_lag(mut self, lag: Duration) -> Self {
        self.max_lag = Some(lag);
        self
    }

    /// Not ready if there are more failed deliveries than this.
    pub fn max_failed(mut self, failed: u64) -> Self {
        self.max_failed = Some(failed);
        self
    }

    /// Not alive if the event loop of the dispatcher has not run for longer than this. It runs at least
    /// every ten seconds, whatever the database does. Default: 30 s.
    pub fn max_silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// The longest time to wait for the database. Choose less than the timeout of the probe. Default: 1 s.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The state of the dispatcher of this process. Does not use the database.
    #[must_use]
    pub fn dispatcher(&self) -> DispatcherHealth {
        let liveness = &self.outbox.inner.liveness;
        match liveness.state() {
            DispatcherHealth::Running if liveness.silent_for(Instant::now()) > self.silence => {
                DispatcherHealth::Stuck
            }
            state => state,
        }
    }

    async fn check(self) -> Health {
        let (database, lag, failed) = match timeout(self.limit, self.query()).await {
            Ok(Ok(found)) => found,
            Ok(Err(sqlx::Error::PoolTimedOut)) | Err(_) => (DatabaseHealth::TimedOut, None, None),
            Ok(Err(_)) => (DatabaseHealth::Failing, None, None),
        };
        let dispatcher = self.dispatcher();
        let lags = self.max_lag.zip(lag).is_some_and(|(max, lag)| lag > max);
        let fails = self.max_failed.zip(failed);
        let fails = fails.is_some_and(|(max, failed)| failed > max);
        Health {
            live: dispatcher.is_live(),
            ready: dispatcher.is_ready() && database == DatabaseHealth::Ok && !lags && !fails,
            dispatcher,
            database,
            lag,
            failed,
            lags,
            fails,
        }
    }

    async fn query(&self) -> Result<(DatabaseHealth, Option<Duration>, Option<u64>), sqlx::Error> {
        let inner = &self.outbox.inner;
        let (pool, names) = (&inner.pool, &inner.names);
        let mut connection = pool.acquire().await?;
        let mut operator = Operator::<Db>::new(&mut connection, names);
        if operator.visible_version().await? != Some(Db::newest_version(names)) {
            return Ok((DatabaseHealth::NotMigrated, None, None));
        }
        let oldest = operator.oldest_pending().await?;
        let age = oldest.map_or(0, |(age, _)| u64::try_from(age).unwrap_or(0));
        let lag = Duration::from_micros(age);
        let cap = self.max_failed.map_or(MAX_COUNTED, |max| {
            u32::try_from(max.saturating_add(1)).unwrap_or(u32::MAX)
        });
        let failed = operator.capped_failures(cap).await?;
        Ok((DatabaseHealth::Ok, Some(lag), Some(failed)))
    }
}

impl<Db: Database> IntoFuture for HealthCheck<Db> {
    type Output = Health;
    type IntoFuture = Pin<Box<dyn Future<Output = Health> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.check())
    }
}
