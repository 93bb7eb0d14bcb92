//! A publisher runs real transactions, one after the other. Each writes to tables of the chaos
//! program and publishes events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use outbox::{Outbox, OutboxEvent, Scheduled};
use rand::{RngExt as _, rngs::StdRng};
use sqlx::{Pool, Transaction};
use tokio::time::sleep;

use crate::{
    database::Tested,
    draft::{DELAY, Draft, drafts},
    events::{Plain, Transactional},
    history::{self, Fact, Handler, History},
    server::Kind,
};

/// State that all publishers share.
#[derive(Debug)]
pub(crate) struct PublisherShared<Db: Tested> {
    pub(crate) pool: Pool<Db>,
    pub(crate) outbox: Outbox<Db>,
    pub(crate) history: Arc<History>,
    pub(crate) keys: u32,
    pub(crate) stop: AtomicBool,
    pub(crate) acknowledged: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// One publishing task. Its number is part of the ids of its transactions.
pub(crate) struct Publisher<Db: Tested> {
    shared: Arc<PublisherShared<Db>>,
    random: StdRng,
    last_tx: i64,
    /// Events with dedup keys that committed transactions have used.
    used: Vec<Draft>,
}

impl<Db: Tested> Publisher<Db> {
    pub(crate) fn new(shared: Arc<PublisherShared<Db>>, number: u32, random: StdRng) -> Self {
        Self {
            shared,
            random,
            last_tx: i64::from(number + 1) * 1_000_000_000,
            used: Vec::new(),
        }
    }

    /// Runs transactions until `stop` is set, also after a failed one.
    pub(crate) async fn run(mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            if let Err(_error) = self.transaction().await {
                self.shared.failed.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(100)).await;
            }
            let pause = self.random.random_range(0..20);
            sleep(Duration::from_millis(pause)).await;
        }
    }

    async fn transaction(&mut self) -> anyhow::Result<()> {
        self.last_tx += 1;
        let drafts = drafts(&mut self.random, self.last_tx, self.shared.keys, &self.used);
        let rolls_back = self.random.random_bool(0.1);
        let slow = self.slow();
        let mut tx = Db::begin(&self.shared.pool).await?;
        self.lock(&mut tx, &drafts).await?;
        let mut events = 0;
        for (n, draft) in (0..).zip(&drafts) {
            let sent = self.publish(&mut tx, draft, self.last_tx * 10 + n).await?;
            events += usize::from(sent);
        }
        if let Some(slow) = slow {
            sleep(slow).await;
        }
        if rolls_back {
            return Ok(tx.rollback().await?);
        }
        // If the commit fails, its outcome is unknown. The publishers' table shows it at the end.
        tx.commit().await?;
        let (at, tx) = (history::now(), self.last_tx);
        self.shared
            .history
            .write(&Fact::Acknowledged { at, tx, events });
        self.shared.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.used
            .extend(drafts.into_iter().filter(|draft| draft.dedup.is_some()));
        Ok(())
    }

    /// How long the transaction stays open after it has published; `None` for most transactions.
    fn slow(&mut self) -> Option<Duration> {
        let (chance, longest) = match Db::KIND {
            Kind::Postgres | Kind::Mysql => (0.02, 3000),
            // In SQLite no other connection can write meanwhile.
            Kind::Sqlite => (0.01, 400),
        };
        let slow = self.random.random_bool(chance);
        slow.then(|| Duration::from_millis(self.random.random_range(200..=longest)))
    }

    /// Locks the rows of all keys before the first publish, always in the same order.
    async fn lock(&self, tx: &mut Transaction<'_, Db>, drafts: &[Draft]) -> anyhow::Result<()> {
        let mut keys: Vec<&str> = drafts.iter().map(|draft| &*draft.key).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let sql = format!("update chaos_key set number = number + 1 where name = '{key}'");
            Db::execute(tx, sql).await?;
        }
        Ok(())
    }

    /// Returns whether the event was published, and not a duplicate.
    async fn publish(
        &self,
        tx: &mut Transaction<'_, Db>,
        draft: &Draft,
        event: i64,
    ) -> anyhow::Result<bool> {
        let Draft { key, handler, .. } = draft;
        let next = format!("update chaos_key set number = number + 1 where name = '{key}'");
        Db::execute(tx, next).await?;
        let select = format!("select number from chaos_key where name = '{key}'");
        let number = Db::number(tx, select).await?;
        let (key, event_id) = (key.clone(), event);
        let sent = match handler {
            Handler::Plain => self.send(tx, draft, &Plain { key, number, event }).await?,
            Handler::Tx => {
                let event = Transactional {
                    key,
                    number,
                    event: event_id,
                };
                self.send(tx, draft, &event).await?
            }
        };
        if let (Scheduled::Duplicate, Some(dedup)) = (sent, draft.dedup.clone()) {
            let at = history::now();
            self.shared.history.write(&Fact::Duplicate { at, dedup });
            return Ok(false);
        }
        let dedup = match &draft.dedup {
            Some(dedup) => format!("'{dedup}'"),
            None => "null".to_owned(),
        };
        let row = format!(
            "{event}, {}, '{}', {number}, '{}', {dedup}",
            self.last_tx,
            draft.key,
            handler.name()
        );
        Db::execute(tx, format!("insert into chaos_sent values ({row})")).await?;
        Ok(true)
    }

    async fn send<E: OutboxEvent>(
        &self,
        tx: &mut Transaction<'_, Db>,
        draft: &Draft,
        event: &E,
    ) -> outbox::Result<Scheduled> {
        let mut schedule = self.shared.outbox.schedule(event);
        if draft.is_delayed() {
            schedule = schedule.delay(DELAY);
        }
        if let Some(dedup) = &draft.dedup {
            schedule = schedule.dedup_key(dedup);
        }
        schedule.send(tx).await
    }
}
