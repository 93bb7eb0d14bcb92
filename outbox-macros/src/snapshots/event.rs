impl ::outbox::OutboxEvent for OrderCreated {
    const NAME: &'static str = "order.created";
    const ALIASES: &'static [&'static str] = &["order.new"];
    const VERSION: ::outbox::__private::Version = 2u32;
    fn key(&self) -> ::core::option::Option<::std::string::String> {
        ::core::option::Option::Some({
            let Self { tenant, order_id, .. } = self;
            let _ = (&tenant, &order_id);
            ::outbox::record::EventKey::to_key(&format!("{tenant}/{order_id}"))
        })
    }
    fn validate(&self) -> ::core::result::Result<(), ::outbox::handler::BoxError> {
        ::outbox::__private::validated(self, check)
    }
}
