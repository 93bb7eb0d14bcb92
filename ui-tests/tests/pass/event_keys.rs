#![deny(warnings)]

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.changed", key = self.id())]
enum OrderChanged {
    Paid { id: i64 },
    Shipped(i64),
}

impl OrderChanged {
    fn id(&self) -> i64 {
        match self {
            Self::Paid { id } | Self::Shipped(id) => *id,
        }
    }
}

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.shipped", key = self.0)]
struct OrderShipped(i64);

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created")]
#[outbox_event(key = format!("{tenant}/{}", self.r#type), version = 2, aliases = ["order.new"])]
struct OrderCreated {
    tenant: String,
    r#type: String,
}

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "tick")]
struct Tick;

fn main() {
    assert_eq!(OrderChanged::Paid { id: 7 }.key().as_deref(), Some("7"));
    assert_eq!(OrderChanged::Shipped(8).key().as_deref(), Some("8"));
    assert_eq!(OrderShipped(9).key().as_deref(), Some("9"));
    let created = OrderCreated {
        tenant: "a".to_owned(),
        r#type: "b".to_owned(),
    };
    assert_eq!(created.key().as_deref(), Some("a/b"));
    assert_eq!(Tick.key(), None);
}
