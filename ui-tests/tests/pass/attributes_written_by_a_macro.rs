#![deny(warnings)]

macro_rules! handlers {
    ($($name:ident),*) => {$(
        #[outbox::retryable(max_retries = 1)]
        #[outbox::outbox_handler]
        async fn $name(_event: outbox_ui_tests::OrderCreated) {}
    )*};
}
handlers!(charge_card, send_receipt);

fn main() {
    let _ = outbox::Registry::builder()
        .handler::<charge_card>()
        .handler::<send_receipt>();
}
