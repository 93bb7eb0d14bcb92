//! An event whose parts nobody is to read in a log.

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

/// Whose key and payload are easy to find again.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.placed", key = customer)]
pub struct Order {
    /// Its key.
    pub customer: String,
    /// What nobody but its handler is to know.
    pub card: String,
    /// What handling it comes to.
    pub does: String,
}

impl Order {
    /// What all keys begin with.
    pub const KEY: &str = "customer-2718";
    /// In every payload, header, dedup key and error.
    pub const SECRET: &str = "card-3141";

    /// An order of its own customer.
    #[must_use]
    pub fn that(does: &str) -> Self {
        Self {
            customer: format!("{}-{does}", Self::KEY),
            card: Self::SECRET.to_owned(),
            does: does.to_owned(),
        }
    }

    /// For headers and dedup keys.
    #[must_use]
    pub fn secret(&self) -> String {
        format!("{}/{}", self.card, self.does)
    }
}
