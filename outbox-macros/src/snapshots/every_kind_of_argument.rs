/// Documented.
pub async fn charge_card(
    event: AnyEvent,
    meta: &Metadata,
    State(bank): State<Bank>,
    tenant: Tenant,
) -> Result<(), BankError> {
    bank.charge(event, meta).await
}
#[doc(hidden)]
pub struct ChargeCard {}
impl ::renamed::__private::Marker for ChargeCard {
    const MARKER: Self = Self {};
}
const _: () = {
    use ::renamed::__private::NotRetryAware as _;
    impl ::renamed::__private::Registered<()> for ChargeCard {
        const REGISTRATIONS: &'static [::renamed::__private::Registration] = &[
            ::renamed::__private::Registration {
                id: "charge-card",
                aliases: &["charge"],
                location: ::renamed::__private::Location {
                    file: ::core::file!(),
                    line: ::core::line!(),
                    column: ::core::column!(),
                },
                event: {
                    ::renamed::__private::chosen_by_name::<AnyEvent>();
                    ::renamed::__private::EventMatch::Patterns(&["order.*", "payment.*"])
                },
                requires: |requirements| {
                    let _ = &requirements;
                    <&Metadata as ::renamed::__private::FromContext<
                        '_,
                    >>::requires(requirements);
                    <State<
                        Bank,
                    > as ::renamed::__private::FromContext<'_>>::requires(requirements);
                    <Tenant as ::renamed::__private::FromContext<
                        '_,
                    >>::requires(requirements);
                },
                invoke: |context| ::std::boxed::Box::pin(async move {
                    let event = ::renamed::__private::attempt!(
                        < AnyEvent as ::renamed::__private::ReceivedEvent >
                        ::receive(context)
                    );
                    ::renamed::__private::attempt!(
                        ::renamed::__private::Validate:: < AnyEvent >
                        ::check(has_an_amount, & event, context)
                    );
                    if !::renamed::__private::guard(is_large, &event, context) {
                        return ::renamed::__private::Outcome::Skipped;
                    }
                    let argument0 = ::renamed::__private::attempt!(
                        < & Metadata as ::renamed::__private::FromContext < '_ >>
                        ::from_context(context)
                    );
                    let argument1 = ::renamed::__private::attempt!(
                        < State < Bank > as ::renamed::__private::FromContext < '_ >>
                        ::from_context(context)
                    );
                    let argument2 = ::renamed::__private::attempt!(
                        < Tenant as ::renamed::__private::FromContext < '_ >>
                        ::from_context(context)
                    );
                    <Result<
                        (),
                        BankError,
                    > as ::renamed::__private::IntoOutcome>::into_outcome(
                        charge_card(event, argument0, argument1, argument2).await,
                    )
                }),
                fallback: ::core::option::Option::Some(::renamed::__private::FallbackFn {
                    requires: |requirements| ::renamed::__private::Fallback::<
                        '_,
                        AnyEvent,
                        _,
                    >::requires(&refund, requirements),
                    invoke: |context| ::std::boxed::Box::pin(async move {
                        let event = ::renamed::__private::attempt!(
                            < AnyEvent as ::renamed::__private::ReceivedEvent >
                            ::receive(context)
                        );
                        ::renamed::__private::Fallback::<
                            '_,
                            AnyEvent,
                            _,
                        >::call(refund, event, context)
                            .await
                    }),
                }),
                timeout: ::core::option::Option::Some(
                    ::core::time::Duration::new(30u64, 0u32),
                ),
                concurrency: ::core::option::Option::Some(8u32),
                on_permanent_failure: ::renamed::__private::PermanentFailure::Skip,
                of_trait: ::renamed::__private::Probe::<ChargeCard>::OF_MARKER,
                of_attribute: ::core::option::Option::Some(
                    ::renamed::__private::AttributePolicy::Inline(|| {
                        ::renamed::__private::RetryParts::new()
                            .exponential(
                                ::core::time::Duration::new(0u64, 500000000u32),
                                2f64,
                                ::core::time::Duration::new(10u64, 0u32),
                            )
                            .max_retries(3u32)
                            .max_elapsed(::core::time::Duration::new(3600u64, 0u32))
                            .jitter(::renamed::retry::Jitter::Full)
                            .retry_on::<io::Error>()
                            .no_retry_on::<ValidationError>()
                            .retry_if(is_temporary)
                    }),
                ),
            },
        ];
    }
    ::renamed::__private::submit!(ChargeCard, ());
};
#[retryable(__consumed)]
const _: () = ();
