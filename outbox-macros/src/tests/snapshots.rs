//! The output of the macros, kept in `src/snapshots` for review. After a change, write it with
//! `OUTBOX_SNAPSHOTS=overwrite cargo test -p outbox-macros`, and review the difference.

use std::{env, fs, path::Path};

use proc_macro2::TokenStream;

use super::expand;
use crate::event;

fn snapshot(name: &str, expansion: TokenStream) {
    let written = prettyplease::unparse(&syn::parse2(expansion).expect("items"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/snapshots/{name}.rs"));
    if env::var_os("OUTBOX_SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        fs::write(&path, &written).expect("the snapshot can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == written,
        "{} differs; it would be:\n{written}",
        path.display()
    );
}

#[test]
fn bare_function() {
    let source = "#[outbox_handler] async fn charge_card(event: OrderCreated) {}";
    snapshot("bare_function", expand(source));
}

#[test]
fn every_kind_of_argument() {
    let source = r#"
        #[outbox_handler(
            id = "charge-card",
            aliases = ["charge"],
            timeout = "30s",
            concurrency = 8,
            when = is_large,
            validate = has_an_amount,
            fallback = refund,
            on_permanent_failure = skip,
            events = ["order.*", "payment.*"],
            marker = ChargeCard,
            crate = ::renamed,
        )]
        #[retryable(
            exponential(initial = "500ms", multiplier = 2.0, max = "10s"),
            max_attempts = 4,
            max_elapsed = "1h",
            jitter = full,
            retry_on(io::Error),
            no_retry_on(ValidationError),
            retry_if = is_temporary,
        )]
        /// Documented.
        pub async fn charge_card(
            event: AnyEvent,
            meta: &Metadata,
            State(bank): State<Bank>,
            tenant: Tenant,
        ) -> Result<(), BankError> {
            bank.charge(event, meta).await
        }
    "#;
    snapshot("every_kind_of_argument", expand(source));
}

#[test]
fn inherent_impl() {
    let source = r"
        #[outbox_handler]
        impl Payments {
            const LIMIT: i64 = 7;

            #[outbox_handler]
            #[retryable(policy = Aggressive)]
            async fn on_order(&self, event: OrderCreated) -> anyhow::Result<()> {
                self.charge(event).await
            }

            #[outbox_handler]
            #[retryable(policy = BANK_POLICY)]
            pub async fn on_refund(&self, event: OrderRefunded, meta: &Metadata) {}

            async fn charge(&self, event: OrderCreated) -> anyhow::Result<()> {
                Ok(())
            }
        }
    ";
    snapshot("inherent_impl", expand(source));
}

#[test]
fn trait_impl() {
    let source = r#"
        #[outbox_handler]
        #[retryable(policy = "gentle")]
        impl Handler<OrderCreated> for Payments {
            async fn handle(&self, event: OrderCreated, meta: &Metadata) -> Result<(), Declined> {
                Ok(())
            }
        }
    "#;
    snapshot("trait_impl", expand(source));
}

/// The output still has the function and its marker, so that one mistake gives one message.
#[test]
fn mistakes_in_a_function() {
    let source = r#"
        #[outbox_handler(timeout = "soon")]
        #[retryable(max_retry = 3)]
        fn charge_card(event: &OrderCreated) {}
    "#;
    snapshot("mistakes_in_a_function", expand(source));
}

/// A `handle` that does not fit the trait is replaced by one that does, for the same reason.
#[test]
fn mistakes_in_a_trait_impl() {
    let source = r"
        #[outbox_handler]
        impl<B> Handler<OrderCreated> for Payments<B> {
            async fn handle(&self, event: OrderCreated, meta: &Metadata, bank: State<B>) {}
        }
    ";
    snapshot("mistakes_in_a_trait_impl", expand(source));
}

#[test]
fn event() {
    let source = r#"
        #[outbox_event(
            name = "order.created",
            key = format!("{tenant}/{order_id}"),
            aliases = ["order.new"],
            version = 2,
            validate = check,
        )]
        struct OrderCreated {
            tenant: String,
            order_id: i64,
        }
    "#;
    snapshot("event", event::derive(source.parse().expect("tokens")));
}
