//! Both orders of the two attributes give the same expansion, token for token.

use proc_macro2::TokenStream;

use super::{expand, retryable_alone, split};

const RETRYABLE: &str =
    "#[retryable(exponential(initial = \"1s\", multiplier = 2.0), max_retries = 7)]";
const HANDLER: &str = "#[outbox_handler(id = \"charge-card\", timeout = \"30s\")]";
const INSTRUMENT: &str = "#[tracing::instrument(skip_all)]";

const FUNCTION: &str = "pub async fn charge_card(event: OrderCreated, meta: &Metadata) {}";
const TRAIT_IMPL: &str = "impl Handler<OrderCreated> for Payments {
    async fn handle(&self, event: OrderCreated, meta: &Metadata) -> Result<(), Declined> { Ok(()) }
}";
const METHOD: &str = "async fn on_order(&self, event: OrderCreated) {}";

/// Checks that each order of the lines has the same expansion, and returns it.
fn same(orders: &[[&str; 4]]) -> String {
    let expansions: Vec<String> = orders
        .iter()
        .map(|lines| expand(&lines.join("\n")).to_string())
        .collect();
    for expansion in &expansions {
        assert_eq!(*expansion, expansions[0]);
        assert!(!expansion.contains("compile_error"), "{expansion}");
    }
    expansions[0].clone()
}

#[test]
fn both_orders_are_equal_on_a_function() {
    let expansion = same(&[
        [HANDLER, RETRYABLE, "", FUNCTION],
        [RETRYABLE, HANDLER, "", FUNCTION],
    ]);
    assert!(expansion.contains("max_retries (7u32)"), "{expansion}");
}

#[test]
fn both_orders_are_equal_on_a_trait_impl() {
    let expansion = same(&[
        [HANDLER, RETRYABLE, "", TRAIT_IMPL],
        [RETRYABLE, HANDLER, "", TRAIT_IMPL],
    ]);
    assert!(expansion.contains("max_retries (7u32)"), "{expansion}");
}

#[test]
fn both_orders_are_equal_on_a_method() {
    let block =
        |first, second| format!("#[outbox_handler] impl Payments {{ {first} {second} {METHOD} }}");
    let (below, above) = (block(HANDLER, RETRYABLE), block(RETRYABLE, HANDLER));
    assert_eq!(expand(&below).to_string(), expand(&above).to_string());
}

#[test]
fn both_orders_are_equal_with_another_attribute_below_or_between() {
    for item in [FUNCTION, TRAIT_IMPL] {
        let expansion = same(&[
            [HANDLER, RETRYABLE, INSTRUMENT, item],
            [HANDLER, INSTRUMENT, RETRYABLE, item],
            [RETRYABLE, HANDLER, INSTRUMENT, item],
        ]);
        assert!(expansion.contains("tracing :: instrument"), "{expansion}");
    }
}

/// The other attribute expands next, on the same tokens as in the other order.
#[test]
fn both_orders_are_equal_with_another_attribute_above_the_handler() {
    let item: TokenStream = [INSTRUMENT, HANDLER, FUNCTION].join("\n").parse().unwrap();
    let (attrs, _) = split(RETRYABLE.parse().unwrap());
    let moved = retryable_alone(&attrs[0], &item);
    let below: TokenStream = [INSTRUMENT, HANDLER, RETRYABLE, FUNCTION]
        .join("\n")
        .parse()
        .unwrap();
    assert_eq!(moved.to_string(), below.to_string());
}

#[test]
fn both_orders_are_equal_with_full_paths() {
    let (handler, retryable) = (
        "#[outbox::outbox_handler]",
        "#[outbox::retryable(max_retries = 7)]",
    );
    same(&[
        [handler, retryable, "", FUNCTION],
        [retryable, handler, "", FUNCTION],
    ]);
    let mixed = "#[::outbox::retryable(max_retries = 7)]";
    let expansion = same(&[
        ["#[outbox_handler]", mixed, "", FUNCTION],
        [mixed, "#[outbox_handler]", "", FUNCTION],
    ]);
    assert!(
        expansion.contains("# [:: outbox :: retryable (__consumed)]"),
        "{expansion}"
    );
}
