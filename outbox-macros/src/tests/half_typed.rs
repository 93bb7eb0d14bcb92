//! A body that is being typed does not parse. The macro must pass the item on unchanged, so that the
//! editor can complete it and only the compiler reports errors.

use super::expand;

fn keeps(source: &str, item: &str) {
    let expansion = expand(source).to_string();
    let item: proc_macro2::TokenStream = item.parse().unwrap();
    assert!(expansion.starts_with(&item.to_string()), "{expansion}");
    assert!(expansion.contains("REGISTRATIONS"), "{expansion}");
    assert!(!expansion.contains("compile_error"), "{expansion}");
}

#[test]
fn a_function_with_an_incomplete_body_is_passed_on() {
    let function = "async fn charge_card(event: OrderCreated) { let id = event. }";
    keeps(&format!("#[outbox_handler] {function}"), function);
    keeps(
        &format!("#[retryable(max_retries = 1)] #[outbox_handler] {function}"),
        function,
    );
}

#[test]
fn a_method_with_an_incomplete_body_is_passed_on() {
    let method = "async fn on_order(&self, event: OrderCreated) { if self.limit < }";
    keeps(
        &format!("#[outbox_handler] impl Payments {{ #[outbox_handler] {method} }}"),
        &format!("impl Payments {{ {method} }}"),
    );
}

#[test]
fn a_trait_impl_with_an_incomplete_body_is_passed_on() {
    let block = "impl Handler<OrderCreated> for Payments {
        async fn handle(&self, event: OrderCreated, meta: &Metadata) { match event. }
    }";
    keeps(
        &format!("#[outbox_handler] {block}"),
        &format!("#[allow(refining_impl_trait)] {block}"),
    );
}
