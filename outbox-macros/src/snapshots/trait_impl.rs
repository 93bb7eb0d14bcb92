#[allow(refining_impl_trait)]
impl Handler<OrderCreated> for Payments {
    async fn handle(
        &self,
        event: OrderCreated,
        meta: &Metadata,
    ) -> Result<(), Declined> {
        Ok(())
    }
}
const _: () = {
    use ::outbox::__private::NotRetryAware as _;
    impl ::outbox::__private::Registered<OrderCreated> for Payments {
        const REGISTRATIONS: &'static [::outbox::__private::Registration] = &[
            ::outbox::__private::Registration {
                id: ::core::concat!(
                    ::core::module_path!(), "::", "Payments<OrderCreated>"
                ),
                aliases: &[],
                location: ::outbox::__private::Location {
                    file: ::core::file!(),
                    line: ::core::line!(),
                    column: ::core::column!(),
                },
                event: <OrderCreated as ::outbox::__private::ReceivedEvent>::MATCH,
                requires: |requirements| {
                    let _ = &requirements;
                    requirements.state::<Payments>();
                },
                invoke: |context| ::std::boxed::Box::pin(async move {
                    let event = ::outbox::__private::attempt!(
                        < OrderCreated as ::outbox::__private::ReceivedEvent >
                        ::receive(context)
                    );
                    let this = ::outbox::__private::attempt!(
                        ::outbox::__private::instance:: < Payments > (context)
                    );
                    ::outbox::__private::IntoOutcome::into_outcome(
                        <Payments as ::outbox::Handler<
                            OrderCreated,
                        >>::handle(this, event, context.metadata())
                            .await,
                    )
                }),
                fallback: ::core::option::Option::None,
                timeout: ::core::option::Option::None,
                concurrency: ::core::option::Option::None,
                on_permanent_failure: ::outbox::__private::PermanentFailure::Block,
                of_trait: ::outbox::__private::Probe::<Payments>::OF_INSTANCE,
                of_attribute: ::core::option::Option::Some(
                    ::outbox::__private::AttributePolicy::Named("gentle"),
                ),
            },
        ];
    }
    ::outbox::__private::submit!(Payments, OrderCreated);
};
#[retryable(__consumed)]
const _: () = ();
