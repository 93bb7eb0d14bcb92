//! [`KeptConnection`]: a connection that the dispatcher keeps.

use sqlx::{Pool, pool::PoolConnection};

use super::Driver;

/// The component of the dispatcher that uses a kept connection. It decides the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Reader,
    Writer,
}

/// A connection that is taken from the pool once and kept. The pool pings the server each time that
/// it hands out a connection, which would cost one round trip per statement. With a pool of fewer
/// than [`MIN_POOL`] connections, the connection returns to the pool after each use.
///
/// A kept connection has settings of its own, so it never returns to the pool. It is closed after an
/// error, and when this is dropped.
#[derive(Debug)]
pub(crate) struct KeptConnection<Db: Driver> {
    pool: Pool<Db>,
    role: Role,
    held: Option<PoolConnection<Db>>,
}

/// A pool with fewer connections has none to spare: the application needs them.
const MIN_POOL: u32 = 4;

impl<Db: Driver> KeptConnection<Db> {
    pub(crate) fn for_role(pool: Pool<Db>, role: Role) -> Self {
        Self {
            pool,
            role,
            held: None,
        }
    }

    fn is_kept(&self) -> bool {
        self.pool.options().get_max_connections() >= MIN_POOL
    }

    pub(crate) async fn connection(&mut self) -> Result<&mut Db::Connection, sqlx::Error> {
        let held = match self.held.take() {
            Some(held) => held,
            None => self.open().await?,
        };
        Ok(self.held.insert(held))
    }

    async fn open(&mut self) -> Result<PoolConnection<Db>, sqlx::Error> {
        let mut held = self.pool.acquire().await?;
        if self.is_kept() {
            // First: if this future is dropped while the settings change, the connection must not
            // return to the pool.
            held.close_on_drop();
            Db::configure(&mut held, self.role).await?;
        }
        Ok(held)
    }

    /// Ends one use of the connection. After an error the connection is closed.
    pub(crate) fn release<T>(&mut self, result: &Result<T, sqlx::Error>) {
        if result.is_err() {
            if let Some(mut held) = self.held.take() {
                held.close_on_drop();
            }
        } else if !self.is_kept() {
            self.held = None;
        }
    }
}
