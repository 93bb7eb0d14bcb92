#![deny(warnings)]

mod outer {
    mod inner {
        use outbox::outbox_handler;
        use serde::{Deserialize, Serialize};

        #[derive(Serialize, Deserialize, outbox::OutboxEvent)]
        #[outbox_event(name = "private.event")]
        struct Private {}

        #[outbox_handler]
        async fn private(_event: Private) {}

        struct Payments;

        #[outbox_handler]
        impl Payments {
            #[outbox_handler]
            async fn on_private(&self, _event: Private) {}
        }
    }
}

fn main() {}
