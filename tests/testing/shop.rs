//! The event and the handlers of these tests: a script decides how each invocation ends.

use std::sync::{Arc, Mutex};

use outbox::{
    HandlerError, Metadata, OutboxEvent, Retry, State, outbox_handler,
    testing::{Kit, Step},
};
use serde::{Deserialize, Serialize};

/// The `n`th event of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.placed", key = key)]
pub(crate) struct Placed {
    pub(crate) key: String,
    pub(crate) n: u32,
}

/// An event without a handler.
#[derive(Debug, PartialEq, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.forgotten")]
pub(crate) struct Forgotten {}

pub(crate) fn placed(key: &str, n: u32) -> Placed {
    Placed {
        key: key.to_owned(),
        n,
    }
}

type Play = dyn Fn(&Placed, &Metadata) -> Result<(), HandlerError> + Send + Sync;

/// Decides how invocations end.
#[derive(Clone)]
pub(crate) struct Script(pub(crate) Arc<Play>);

impl Script {
    pub(crate) fn new(
        play: impl Fn(&Placed, &Metadata) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(play))
    }

    pub(crate) fn succeeds() -> Self {
        Self::new(|_, _| Ok(()))
    }

    pub(crate) fn fails() -> Self {
        Self::new(|_, _| Err("no card".into()))
    }
}

#[outbox_handler(id = "charge")]
pub(crate) async fn charge(
    event: Placed,
    meta: &Metadata,
    State(script): State<Script>,
) -> Result<(), HandlerError> {
    (script.0)(&event, meta)
}

#[outbox_handler(id = "mail")]
pub(crate) async fn mail(
    event: Placed,
    meta: &Metadata,
    State(script): State<Script>,
) -> Result<(), HandlerError> {
    (script.0)(&event, meta)
}

/// A kit with one handler.
pub(crate) async fn kit(script: Script) -> Kit {
    let kit = Kit::new(|builder| builder.handler::<charge>().state(script));
    kit.await.expect("a kit")
}

/// A kit with one handler that has this policy.
pub(crate) async fn kit_with(policy: Retry, script: Script) -> Kit {
    let kit = Kit::new(|builder| {
        builder
            .handler::<charge>()
            .retry_policy(policy)
            .state(script)
    });
    kit.await.expect("a kit")
}

/// A kit with two handlers.
pub(crate) async fn kit_of_two(script: Script) -> Kit {
    let kit = Kit::new(|builder| builder.handler::<mail>().handler::<charge>().state(script));
    kit.await.expect("a kit")
}

pub(crate) async fn run(kit: &Kit) -> Vec<Step> {
    kit.run_until_idle().await.expect("a run")
}

pub(crate) async fn publish(kit: &Kit, key: &str, n: u32) -> i64 {
    kit.publish(&placed(key, n)).await.expect("a record")
}

/// A list that handlers write to.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub(crate) fn add(&self, text: String) {
        self.0.lock().expect("a lock").push(text);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("a lock").clone()
    }
}
