//! [`KeptConnection`]: a connection that the dispatcher keeps.

use sqlx::{Pool, pool::PoolConnection};

use super::Driver;

/// A connection that is taken from the pool once and kept. The pool pings the server whenever it
/// hands a connection out, which would cost a round trip per statement. With a pool of fewer than
/// four connections it goes back after each use.
///
/// A kept connection has settings of its own, so it never goes back to the pool: it is closed after
/// an error, and when this is dropped.
#[derive(Debug)]
pub(crate) struct KeptConnection<Db: Driver> {
    pool: Pool<Db>,
    held: Option<PoolConnection<Db>>,
    /// This is the writer's connection.
    settles: bool,
}

/// With fewer connections than this, the application needs all of them.
const SMALL_POOL: u32 = 4;

impl<Db: Driver> KeptConnection<Db> {
    /// The reader's connection.
    pub(crate) fn new(pool: Pool<Db>) -> Self {
        Self {
            pool,
            held: None,
            settles: false,
        }
    }

    /// The writer's connection.
    pub(crate) fn settling(pool: Pool<Db>) -> Self {
        Self {
            settles: true,
            ..Self::new(pool)
        }
    }

    fn keeps(&self) -> bool {
        self.pool.options().get_max_connections() >= SMALL_POOL
    }

    pub(crate) async fn connection(&mut self) -> Result<&mut Db::Connection, sqlx::Error> {
        let held = match self.held.take() {
            Some(held) => held,
            None => self.acquire().await?,
        };
        Ok(self.held.insert(held))
    }

    async fn acquire(&mut self) -> Result<PoolConnection<Db>, sqlx::Error> {
        let mut held = self.pool.acquire().await?;
        if self.keeps() {
            // Before settings change: dropped in between, it must not go back to the pool.
            held.close_on_drop();
            Db::configure(&mut held, self.settles).await?;
        }
        Ok(held)
    }

    /// Ends one use of the connection. After an error the connection is closed.
    pub(crate) fn done<T>(&mut self, result: &Result<T, sqlx::Error>) {
        if result.is_err() {
            if let Some(mut held) = self.held.take() {
                held.close_on_drop();
            }
        } else if !self.keeps() {
            self.held = None;
        }
    }
}
