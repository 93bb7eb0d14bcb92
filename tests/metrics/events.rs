//! Events that tell their handler how to end, and handlers that count how they ended.

use std::time::Duration;

use outbox::{HandlerError, Metadata, OutboxEvent, State, outbox_handler, retryable};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::truth::Truth;

/// How a handler ends for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Script {
    Succeed,
    /// Fails in this number of attempts, then succeeds.
    Fail(u32),
    Panic(u32),
    TimeOut(u32),
    FailAlways,
    Permanent,
    /// Asks for a retry after one hour.
    Later,
}

#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order", key = key)]
pub(crate) struct Order {
    pub(crate) key: String,
    pub(crate) script: Script,
}

/// An event without a handler.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "unhandled", key = key)]
pub(crate) struct Unhandled {
    pub(crate) key: String,
}

/// An event whose handler fails and falls back, or whose guard refuses it.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "mail", key = key)]
pub(crate) struct Mail {
    pub(crate) key: String,
    pub(crate) wanted: bool,
}

/// An event whose handler waits for the gate.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "slow", key = key)]
pub(crate) struct Slow {
    pub(crate) key: String,
}

/// A handler that waits at the gate continues when it gets a permit.
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
        Script::Panic(_) => panic!("planned by the test"),
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
