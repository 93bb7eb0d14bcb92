//! What the tests play with: one event, handlers that do what a script says, and what they saw.

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

/// The event: the `n`th step of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "step", key = key)]
pub(crate) struct Step {
    pub(crate) key: String,
    pub(crate) n: u32,
}

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

/// Says what handlers do, and remembers what they did.
#[derive(Clone)]
pub(crate) struct Scene {
    script: Arc<Script>,
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
            seen: Arc::default(),
            tried: Arc::default(),
        }
    }

    fn play(
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

    /// All invocations that succeeded, in their order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("a lock").clone()
    }

    /// All invocations, in their order.
    pub(crate) fn tried(&self) -> Vec<Seen> {
        self.tried.lock().expect("a lock").clone()
    }

    /// The steps of one key that succeeded, in their order.
    pub(crate) fn steps(&self, handler: &str, key: &str) -> Vec<u32> {
        let seen = self.seen();
        let of_key = seen
            .iter()
            .filter(|seen| seen.handler == handler && seen.key == key);
        of_key.map(|seen| seen.n).collect()
    }

    /// Waits until that many invocations have succeeded.
    pub(crate) async fn seen_at_least(&self, count: usize) {
        eventually(&format!("{count} successes"), async || {
            self.seen.lock().expect("a lock").len() >= count
        })
        .await;
    }

    /// Waits until that many invocations have been made.
    pub(crate) async fn tried_at_least(&self, count: usize) {
        eventually(&format!("{count} attempts"), async || {
            self.tried.lock().expect("a lock").len() >= count
        })
        .await;
    }

    /// An outbox with the handler `first`, which retries without end, a few milliseconds apart.
    pub(crate) fn outbox<Db: Database>(&self, pool: &Pool<Db>) -> OutboxBuilder<Db> {
        self.outbox_of(pool, Registry::builder().handler::<first>())
    }

    pub(crate) fn outbox_of<Db: Database>(
        &self,
        pool: &Pool<Db>,
        registry: RegistryBuilder,
    ) -> OutboxBuilder<Db> {
        let mut config = Config::default();
        config.poll_interval = Duration::from_millis(500);
        Outbox::builder(pool.clone())
            .registry(registry.state(self.clone()))
            .retry_policy(quick(u32::MAX))
            .config(config)
    }
}

/// That many retries, a few milliseconds apart.
pub(crate) fn quick(retries: u32) -> Retry {
    let millis = Duration::from_millis(5);
    Retry::builder()
        .max_retries(retries)
        .fixed(millis)
        .build()
        .expect("a policy")
}

#[outbox_handler(id = "first")]
pub(crate) async fn first(
    event: Step,
    meta: &Metadata,
    State(scene): State<Scene>,
) -> Result<(), HandlerError> {
    scene.play("first", &event, meta)
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

/// Waits until it is so; panics after a minute.
pub(crate) async fn eventually(what: &str, so: impl AsyncFn() -> bool) {
    let limit = Duration::from_secs(60);
    let waited = tokio::time::timeout(limit, async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    if waited.await.is_err() {
        panic!("waited a minute for {what}");
    }
}
