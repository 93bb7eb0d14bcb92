impl Payments {
    const LIMIT: i64 = 7;
    async fn on_order(&self, event: OrderCreated) -> anyhow::Result<()> {
        self.charge(event).await
    }
    pub async fn on_refund(&self, event: OrderRefunded, meta: &Metadata) {}
    async fn charge(&self, event: OrderCreated) -> anyhow::Result<()> {
        Ok(())
    }
}
const _: () = {
    use ::outbox::__private::NotRetryAware as _;
    impl ::outbox::__private::Registered<()> for Payments {
        const REGISTRATIONS: &'static [::outbox::__private::Registration] = &[
            ::outbox::__private::Registration {
                id: ::core::concat!(::core::module_path!(), "::", "Payments::on_order"),
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
                    <anyhow::Result<
                        (),
                    > as ::outbox::__private::IntoOutcome>::into_outcome(
                        <Payments>::on_order(this, event).await,
                    )
                }),
                fallback: ::core::option::Option::None,
                timeout: ::core::option::Option::None,
                concurrency: ::core::option::Option::None,
                on_permanent_failure: ::outbox::__private::PermanentFailure::Block,
                of_trait: ::outbox::__private::Probe::<Payments>::OF_INSTANCE,
                of_attribute: ::core::option::Option::Some(
                    ::outbox::__private::AttributePolicy::Built(|| ::outbox::__private::policy_by_default::<
                        Aggressive,
                    >()),
                ),
            },
            ::outbox::__private::Registration {
                id: ::core::concat!(::core::module_path!(), "::", "Payments::on_refund"),
                aliases: &[],
                location: ::outbox::__private::Location {
                    file: ::core::file!(),
                    line: ::core::line!(),
                    column: ::core::column!(),
                },
                event: <OrderRefunded as ::outbox::__private::ReceivedEvent>::MATCH,
                requires: |requirements| {
                    let _ = &requirements;
                    requirements.state::<Payments>();
                    <&Metadata as ::outbox::__private::FromContext<
                        '_,
                    >>::requires(requirements);
                },
                invoke: |context| ::std::boxed::Box::pin(async move {
                    let event = ::outbox::__private::attempt!(
                        < OrderRefunded as ::outbox::__private::ReceivedEvent >
                        ::receive(context)
                    );
                    let this = ::outbox::__private::attempt!(
                        ::outbox::__private::instance:: < Payments > (context)
                    );
                    let argument0 = ::outbox::__private::attempt!(
                        < & Metadata as ::outbox::__private::FromContext < '_ >>
                        ::from_context(context)
                    );
                    <() as ::outbox::__private::IntoOutcome>::into_outcome(
                        <Payments>::on_refund(this, event, argument0).await,
                    )
                }),
                fallback: ::core::option::Option::None,
                timeout: ::core::option::Option::None,
                concurrency: ::core::option::Option::None,
                on_permanent_failure: ::outbox::__private::PermanentFailure::Block,
                of_trait: ::outbox::__private::Probe::<Payments>::OF_INSTANCE,
                of_attribute: ::core::option::Option::Some(
                    ::outbox::__private::AttributePolicy::Built(|| ::outbox::__private::policy_by_clone(
                        &BANK_POLICY,
                    )),
                ),
            },
        ];
    }
    ::outbox::__private::submit!(Payments, ());
};
#[retryable(__consumed)]
const _: () = ();
#[retryable(__consumed)]
const _: () = ();
