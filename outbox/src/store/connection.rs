//! A connection that the machinery keeps.

use sqlx::{Pool, pool::PoolConnection};

use super::Driver;

/// A connection that is taken from the pool once and kept, because a pool asks the server for a
/// sign of life whenever it hands one out. A pool too small for that gives it back each time.
///
/// A kept connection has settings of its own. After an error, and when this is dropped, it is
/// closed; it never goes back to the pool.
#[derive(Debug)]
pub(crate) struct KeptConnection<Db: Driver> {
    pool: Pool<Db>,
    held: Option<PoolConnection<Db>>,
    /// For writing what became of records.
    settles: bool,
}

/// Below this many connections, all of them are the application's.
const SMALL_POOL: u32 = 4;

impl<Db: Driver> KeptConnection<Db> {
    /// For reading.
    pub(crate) fn new(pool: Pool<Db>) -> Self {
        Self {
            pool,
            held: None,
            settles: false,
        }
    }

    /// For writing what became of records.
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

    /// After each use, with what came of it.
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
