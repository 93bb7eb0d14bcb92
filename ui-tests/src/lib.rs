//! What the cases share, so that each of them shows one idea and nothing else.

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

/// An event.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
#[non_exhaustive]
pub struct OrderCreated {
    /// Its key.
    pub order_id: i64,
}

/// An error.
#[derive(Debug, thiserror::Error)]
#[error("declined")]
#[non_exhaustive]
pub struct Declined;

/// A state.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Bank;
