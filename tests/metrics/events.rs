//! Events that say what their handler is to do, and handlers that do it and count it.

use std::time::Duration;

use outbox::{HandlerError, Metadata, OutboxEvent, State, outbox_handler, retryable};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::truth::Truth;

/// What a handler does with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Script {
    Succeed,
    /// As many times, then succeed.
    Fail(u32),
    Panic(u32),
    TimeOut(u32),
    FailAlways,
    Permanent,
    /// In an hour.
    Later,
}

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order", key = key)]
pub(crate) struct Order {
    pub(crate) key: String,
    pub(crate) script: Script,
}

/// Nobody handles this.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "nobody", key = key)]
pub(crate) struct Nobody {
    pub(crate) key: String,
}

/// Handled with a fallback, or refused by a guard.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "mail", key = key)]
pub(crate) struct Mail {
    pub(crate) key: String,
    pub(crate) wanted: bool,
}

/// Handled when the gate opens.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "slow", key = key)]
pub(crate) struct Slow {
    pub(crate) key: String,
}

/// What waits for it goes on when it gets a permit.
pub(crate) struct Gate(pub(crate) Semaphore);

pub(crate) const MAX_RETRIES: u32 = 3;

#[outbox_handler(id = "ship", timeout = "200ms")]
#[retryable(fixed("5ms"), max_retries = 3)]
pub(crate) async fn ship(
    event: Order,
    meta: &Metadata,
    State(truth): State<Truth>,
) -> Result<(), HandlerError> {
    let attempt = meta.attempt();
    truth.add("ship", "attempt");
    if attempt > 1 {
        truth.add("ship", "retry of an earlier one");
    }
    let fails = match event.script {
        Script::Succeed => false,
        Script::Fail(times) | Script::Panic(times) | Script::TimeOut(times) => attempt <= times,
        Script::FailAlways | Script::Permanent | Script::Later => true,
    };
    if !fails {
        truth.add("ship", "completed");
        return Ok(());
    }
    let (cause, last) = match event.script {
        Script::Panic(_) => ("panicked", false),
        Script::TimeOut(_) => ("timed_out", false),
        Script::Permanent => ("permanent", true),
        Script::Later => ("retry_after", false),
        Script::Succeed | Script::Fail(_) | Script::FailAlways => ("error", attempt > MAX_RETRIES),
    };
    truth.add("ship", cause);
    truth.add("ship", if last { "failed" } else { "retry" });
    match event.script {
        Script::Panic(_) => panic!("as the test wants it"),
        Script::TimeOut(_) => std::future::pending().await,
        Script::Permanent => Err(HandlerError::permanent("no such address")),
        Script::Later => Err(HandlerError::retry_after(
            Duration::from_secs(3600),
            "closed",
        )),
        Script::Succeed | Script::Fail(_) | Script::FailAlways => Err("out of stock".into()),
    }
}

#[outbox_handler(id = "send", when = wanted, fallback = write_letter)]
#[retryable(max_retries = 0)]
pub(crate) async fn send(_event: Mail, State(truth): State<Truth>) -> Result<(), String> {
    truth.add("send", "attempt");
    truth.add("send", "error");
    Err("no such mailbox".to_owned())
}

fn wanted(event: &Mail, _: &Metadata) -> bool {
    event.wanted
}

async fn write_letter(_event: Mail, _: &HandlerError, _: &Metadata, State(truth): State<Truth>) {
    truth.add("send", "fell_back");
}

#[outbox_handler(id = "wait")]
pub(crate) async fn wait(_event: Slow, State(gate): State<std::sync::Arc<Gate>>) {
    if let Ok(permit) = gate.0.acquire().await {
        permit.forget();
    }
}
