#[allow(refining_impl_trait)]
impl<B> ::outbox::Handler<OrderCreated> for Payments<B> {
    async fn handle(&self, _: OrderCreated, _: &::outbox::Metadata) {}
}
impl<B> ::outbox::__private::Registered<OrderCreated> for Payments<B> {
    const REGISTRATIONS: &'static [::outbox::__private::Registration] = &[];
}
::core::compile_error! {
    "a marked `impl` block cannot be generic, because its handlers are registered once, for one type: write the type out, such as `impl Payments<Bank>`"
}
::core::compile_error! {
    "`Handler::handle` takes `&self`, the event and `&Metadata`; to take more, write an `async fn` or a marked method of an inherent `impl`"
}
