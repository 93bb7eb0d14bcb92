//! The event and the handlers of these tests: a script decides how each invocation ends, and the
//! scene keeps a list of all invocations.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outbox::{
    Config, Database, HandlerError, Metadata, Outbox, OutboxBuilder, OutboxEvent, Registry,
    RegistryBuilder, Retry, State, outbox_handler,
};
use serde::{Deserialize, Serialize};
use sqlx::Pool;

/// The event of most tests: the `n`th step of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "step", key = key)]
pub(crate) struct Step {
    pub(crate) key: String,
    pub(crate) n: u32,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "numbers and texts, without `&` at each of many calls"
)]
pub(crate) fn step(key: impl ToString, n: u32) -> Step {
    Step {
        key: key.to_string(),
        n,
    }
}

/// One invocation that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) handler: &'static str,
    pub(crate) key: String,
    pub(crate) n: u32,
    pub(crate) attempt: u32,
}

type Script = dyn Fn(&Step, &Metadata) -> Result<(), HandlerError> + Send + Sync;

/// Decides how invocations end, and keeps a list of them.
#[derive(Clone)]
pub(crate) struct Scene {
    script: Arc<Script>,
    /// The duration of an invocation of `first`.
    takes: Arc<dyn Fn(&Step) -> Duration + Send + Sync>,
    seen: Arc<Mutex<Vec<Seen>>>,
    tried: Arc<Mutex<Vec<Seen>>>,
}

impl Scene {
    /// Every invocation succeeds.
    pub(crate) fn new() -> Self {
        Self::with(|_, _| Ok(()))
    }

    pub(crate) fn with(
        script: impl Fn(&Step, &Metadata) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            script: Arc::new(script),
            takes: Arc::new(|_| Duration::ZERO),
            seen: Arc::default(),
            tried: Arc::default(),
        }
    }

    pub(crate) fn taking(self, takes: impl Fn(&Step) -> Duration + Send + Sync + 'static) -> Self {
        Self {
            takes: Arc::new(takes),
            ..self
        }
    }

    pub(crate) fn play(
        &self,
        handler: &'static str,
        event: &Step,
        meta: &Metadata,
    ) -> Result<(), HandlerError> {
        let seen = Seen {
            handler,
            key: event.key.clone(),
            n: event.n,
            attempt: meta.attempt(),
        };
        self.tried.lock().expect("a lock").push(seen.clone());
        (self.script)(event, meta)?;
        self.seen.lock().expect("a lock").push(seen);
        Ok(())
    }

    /// Plays as the handler `first`, after the duration that `takes` gives.
    async fn play_slowly(&self, event: &Step, meta: &Metadata) -> Result<(), HandlerError> {
        let takes = (self.takes)(event);
        if takes.is_zero() {
            return self.play("first", event, meta);
        }
        let seen = Seen {
            handler: "first",
            key: event.key.clone(),
            n: event.n,
            attempt: meta.attempt(),
        };
        self.tried.lock().expect("a lock").push(seen.clone());
        tokio::time::sleep(takes).await;
        (self.script)(event, meta)?;
        self.seen.lock().expect("a lock").push(seen);
        Ok(())
    }

    /// All invocations that succeeded, in the order in which they ended.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("a lock").clone()
    }

    /// All invocations, in the order in which they started.
    pub(crate) fn tried(&self) -> Vec<Seen> {
        self.tried.lock().expect("a lock").clone()
    }

    /// The steps of one key that succeeded, in the order in which they ended.
    pub(crate) fn steps(&self, handler: &str, key: &str) -> Vec<u32> {
        let seen = self.seen();
        let of_key = seen
            .iter()
            .filter(|seen| seen.handler == handler && seen.key == key);
        of_key.map(|seen| seen.n).collect()
    }

    /// Waits until at least `count` invocations have succeeded.
    pub(crate) async fn seen_at_least(&self, count: usize) {
        eventually(&format!("{count} successes"), async || {
            self.seen.lock().expect("a lock").len() >= count
        })
        .await;
    }

    /// Waits until at least `count` invocations have started.
    pub(crate) async fn tried_at_least(&self, count: usize) {
        eventually(&format!("{count} attempts"), async || {
            self.tried.lock().expect("a lock").len() >= count
        })
        .await;
    }

    /// An outbox with the handler `first`, which retries without limit, 5 ms apart.
    pub(crate) fn outbox<Db: Database>(&self, pool: &Pool<Db>) -> OutboxBuilder<Db> {
        self.outbox_of(pool, Registry::builder().handler::<first>())
    }

    pub(crate) fn outbox_of<Db: Database>(
        &self,
        pool: &Pool<Db>,
        registry: RegistryBuilder,
    ) -> OutboxBuilder<Db> {
        Outbox::builder(pool.clone())
            .registry(registry.state(self.clone()))
            .retry_policy(quick(u32::MAX))
            .config(config())
    }

    /// The numbers of the attempts at one step, in the order in which they started.
    pub(crate) fn attempts(&self, handler: &str, key: &str, n: u32) -> Vec<u32> {
        let tried = self.tried();
        let of_step = tried
            .iter()
            .filter(|tried| tried.handler == handler && tried.key == key && tried.n == n);
        of_step.map(|tried| tried.attempt).collect()
    }
}

/// The settings of these tests: a short poll interval, and little memory, so that a few thousand
/// records fill it.
pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.poll_interval = Duration::from_millis(500);
    config.processing.max_in_memory = 4096;
    config
}

/// Publishes steps of one key in one transaction.
pub(crate) async fn publish<Db: Database>(
    outbox: &Outbox<Db>,
    pool: &Pool<Db>,
    key: &str,
    steps: impl IntoIterator<Item = u32>,
) {
    let steps: Vec<Step> = steps.into_iter().map(|n| step(key, n)).collect();
    let mut tx = pool.begin().await.expect("a transaction");
    let written = outbox.publish_all(&mut tx, &steps).await;
    written.expect("steps are valid");
    tx.commit().await.expect("a commit");
}

/// Random numbers that are the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| random.0 = random.below(u64::MAX));
        random
    }

    /// Marsaglia's xorshift.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A policy of `retries` retries, 5 ms apart.
pub(crate) fn quick(retries: u32) -> Retry {
    let delay = Duration::from_millis(5);
    Retry::builder()
        .max_retries(retries)
        .fixed(delay)
        .build()
        .expect("a policy")
}

#[outbox_handler(id = "first")]
pub(crate) async fn first(
    event: Step,
    meta: &Metadata,
    State(scene): State<Scene>,
) -> Result<(), HandlerError> {
    scene.play_slowly(&event, meta).await
}

#[outbox_handler(id = "second")]
pub(crate) async fn second(
    event: Step,
    meta: &Metadata,
    State(scene): State<Scene>,
) -> Result<(), HandlerError> {
    scene.play("second", &event, meta)
}

#[outbox_handler(id = "third")]
pub(crate) async fn third(
    event: Step,
    meta: &Metadata,
    State(scene): State<Scene>,
) -> Result<(), HandlerError> {
    scene.play("third", &event, meta)
}

/// Waits until `holds` returns `true`; panics after 60 seconds. `what` names the condition.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    let limit = Duration::from_secs(60);
    let waited = tokio::time::timeout(limit, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    if waited.await.is_err() {
        panic!("waited a minute for {what}");
    }
}

/// Whether the numbers are 1, 2, 3 and so on, without a gap.
pub(crate) fn count_up(attempts: &[u32]) -> bool {
    attempts.iter().zip(1..).all(|(attempt, n)| *attempt == n)
}
