fn charge_card(event: &OrderCreated) {}
#[doc(hidden)]
struct charge_card {}
impl ::outbox::__private::Marker for charge_card {
    const MARKER: Self = Self {};
}
impl ::outbox::__private::Registered<()> for charge_card {
    const REGISTRATIONS: &'static [::outbox::__private::Registration] = &[];
}
#[retryable(__consumed)]
const _: () = ();
::core::compile_error! {
    "\"soon\" is not a duration: write a number and a unit, such as \"500ms\", \"30s\" or \"1h 30m\""
}
::core::compile_error! {
    "`#[retryable]` has no argument `max_retry`; did you mean `max_retries`?"
}
::core::compile_error! {
    "an outbox handler is asynchronous: write `async fn charge_card`"
}
::core::compile_error! {
    "an outbox handler takes its event by value: write `OrderCreated` instead of a reference"
}
