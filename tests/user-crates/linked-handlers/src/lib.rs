//! A second crate with handlers. Nothing in it is public but its events: it registers by being
//! linked, or not at all.
#![forbid(unsafe_code)]

mod deep {
    pub(super) mod deeper {
        use outbox::{OutboxEvent, outbox_handler};

        #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
        #[outbox_event(name = "linked.created")]
        struct LinkedCreated {}

        #[outbox_handler(id = "linked.send-mail")]
        async fn send_mail(_event: LinkedCreated) {}
    }
}

use outbox::{AnyEvent, outbox_handler};

#[outbox_handler(id = "linked.audit", events = "linked.*")]
async fn audit(_event: AnyEvent) {}
