async fn charge_card(event: OrderCreated) {}
#[doc(hidden)]
struct charge_card {}
impl ::outbox::__private::Marker for charge_card {
    const MARKER: Self = Self {};
}
const _: () = {
    use ::outbox::__private::NotRetryAware as _;
    impl ::outbox::__private::Registered<()> for charge_card {
        const REGISTRATIONS: &'static [::outbox::__private::Registration] = &[
            ::outbox::__private::Registration {
                id: ::core::concat!(::core::module_path!(), "::", "charge_card"),
                aliases: &[],
                location: ::outbox::__private::Location {
                    file: ::core::file!(),
                    line: ::core::line!(),
                    column: ::core::column!(),
                },
                event: <OrderCreated as ::outbox::__private::ReceivedEvent>::MATCH,
                requires: |requirements| {
                    let _ = &requirements;
                },
                invoke: |context| ::std::boxed::Box::pin(async move {
                    let event = ::outbox::__private::attempt!(
                        < OrderCreated as ::outbox::__private::ReceivedEvent >
                        ::receive(context)
                    );
                    <() as ::outbox::__private::IntoOutcome>::into_outcome(
                        charge_card(event).await,
                    )
                }),
                fallback: ::core::option::Option::None,
                timeout: ::core::option::Option::None,
                concurrency: ::core::option::Option::None,
                on_permanent_failure: ::outbox::__private::PermanentFailure::Block,
                of_trait: ::outbox::__private::Probe::<charge_card>::OF_MARKER,
                of_attribute: ::core::option::Option::None,
            },
        ];
    }
    ::outbox::__private::submit!(charge_card, ());
};
