//! A second crate with handlers, none of which is public. They are registered only if the crate is
//! linked.
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

use outbox::{AnyEvent, Metadata, State, outbox_handler, retryable};

#[outbox_handler(id = "linked.audit", events = "linked.*", when = wanted, fallback = give_up)]
#[retryable(exponential(initial = "1s"), retry_on(std::io::Error))]
async fn audit(_event: AnyEvent, _meta: &Metadata) -> Result<(), std::io::Error> {
    Ok(())
}

fn wanted(_event: &AnyEvent, _meta: &Metadata) -> bool {
    true
}

async fn give_up(_event: AnyEvent, _prefix: State<String>) {}
