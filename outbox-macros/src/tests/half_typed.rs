//! While a body is being typed it does not parse; the item must come out as it went in, so that
//! the editor can complete, and nothing but the compiler may complain.

use super::expand;

fn keeps(source: &str, item: &str) {
    let expansion = expand(source).to_string();
    let item: proc_macro2::TokenStream = item.parse().unwrap();
    assert!(expansion.starts_with(&item.to_string()), "{expansion}");
    assert!(expansion.contains("REGISTRATIONS"), "{expansion}");
    assert!(!expansion.contains("compile_error"), "{expansion}");
}

#[test]
fn a_function() {
    let function = "async fn charge_card(event: OrderCreated) { let id = event. }";
    keeps(&format!("#[outbox_handler] {function}"), function);
    keeps(
        &format!("#[retryable(max_retries = 1)] #[outbox_handler] {function}"),
        function,
    );
}

#[test]
fn a_method() {
    let method = "async fn on_order(&self, event: OrderCreated) { if self.limit < }";
    keeps(
        &format!("#[outbox_handler] impl Payments {{ #[outbox_handler] {method} }}"),
        &format!("impl Payments {{ {method} }}"),
    );
}

#[test]
fn a_trait_impl() {
    let block = "impl Handler<OrderCreated> for Payments {
        async fn handle(&self, event: OrderCreated, meta: &Metadata) { match event. }
    }";
    keeps(
        &format!("#[outbox_handler] {block}"),
        &format!("#[allow(refining_impl_trait)] {block}"),
    );
}
