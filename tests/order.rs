//! An event whose key and payload must not appear in a log.

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

/// An order whose key and payload are easy to find in a text.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.placed", key = customer)]
pub struct Order {
    /// The key of the event.
    pub customer: String,
    /// A secret that only the handler may see.
    pub card: String,
    /// The result of its handler: a word that the handlers of each test define.
    pub does: String,
}

impl Order {
    /// The prefix of all keys.
    pub const KEY: &str = "customer-2718";
    /// A text that is part of every payload, header, dedup key and error.
    pub const SECRET: &str = "card-3141";

    /// An order with a key that no order with another result has.
    #[must_use]
    pub fn that(does: &str) -> Self {
        Self {
            customer: format!("{}-{does}", Self::KEY),
            card: Self::SECRET.to_owned(),
            does: does.to_owned(),
        }
    }

    /// A value for headers and dedup keys; it contains the secret.
    #[must_use]
    pub fn secret(&self) -> String {
        format!("{}/{}", self.card, self.does)
    }
}
