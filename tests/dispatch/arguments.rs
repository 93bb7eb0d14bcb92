//! The arguments after the event: metadata, state, arguments of the user's own types, and `&self`.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use outbox::{
    __private::{Attempt, Decision},
    Context, FromContext, Handler, HandlerError, Metadata, OutboxEvent, Registry, State,
    clock::ManualClock,
    handler::Requirements,
    outbox_handler,
    record::Record,
};
use outbox_tests::{first_attempt, record};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "sent", key = id)]
struct Sent {
    id: i64,
}

const SENT: Sent = Sent { id: 3 };

#[derive(Clone, Default)]
struct Calls(Arc<AtomicU32>);

impl Calls {
    fn count(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

struct Tenant<'a>(&'a str);

impl<'a> FromContext<'a> for Tenant<'a> {
    fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
        let header = context.metadata().headers().get("tenant");
        let tenant = header.ok_or_else(|| HandlerError::permanent("no tenant"))?;
        context.state::<Calls>()?.count();
        Ok(Self(tenant))
    }

    fn requires(requirements: &mut Requirements) {
        requirements.state::<Calls>();
    }
}

#[outbox_handler(id = "all")]
async fn all(
    event: Sent,
    meta: &Metadata,
    Tenant(tenant): Tenant<'_>,
    State(calls): State<Calls>,
) -> Result<(), String> {
    assert_eq!((event.id, meta.key(), tenant), (3, "3", "acme"));
    assert_eq!(
        (meta.attempt(), meta.failure_count(), meta.is_retry()),
        (1, 0, false)
    );
    assert_eq!(
        (meta.event(), meta.handler_id(), meta.record_id()),
        ("sent", "all", 0)
    );
    assert_eq!(meta.event_id().get_version_num(), 7);
    assert_eq!(
        meta.trace_context(),
        Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    );
    calls.count();
    Ok(())
}

#[tokio::test]
async fn a_handler_gets_every_kind_of_argument() {
    let calls = Calls::default();
    let registry = Registry::builder()
        .handler::<all>()
        .state(calls.clone())
        .build()
        .unwrap();
    let mut with_headers = Record::clone(&record(&SENT));
    with_headers.headers = [
        ("tenant", "acme"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let decision = registry
        .dispatch(
            "all",
            &Arc::new(with_headers),
            Attempt::first(),
            &ManualClock::default(),
        )
        .await;
    assert!(matches!(decision, Decision::Completed(_)), "{decision:?}");
    assert_eq!(
        calls.0.load(Ordering::Relaxed),
        2,
        "the argument and the handler"
    );
}

#[tokio::test]
async fn an_argument_that_cannot_be_made_fails_the_attempt_with_its_error() {
    let calls = Calls::default();
    let registry = Registry::builder()
        .handler::<all>()
        .state(calls.clone())
        .build()
        .unwrap();
    let decision = first_attempt(&registry, "all", &SENT).await;
    let Decision::Failed { error, .. } = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(error.to_string(), "no tenant");
    assert_eq!(calls.0.load(Ordering::Relaxed), 0);
}

/// The type is not `Clone`: `&self` borrows the instance.
struct Mailer {
    calls: Calls,
}

#[outbox_handler]
impl Mailer {
    #[outbox_handler(id = "mailer.first")]
    async fn first(&self, _event: Sent) {
        self.calls.count();
    }

    #[outbox_handler(id = "mailer.second")]
    async fn second(&self, event: Sent, meta: &Metadata) -> Result<(), std::io::Error> {
        assert_eq!(event.id.to_string(), meta.key());
        self.calls.count();
        self.not_a_handler();
        Ok(())
    }

    fn not_a_handler(&self) {
        self.calls.count();
    }
}

#[outbox_handler(id = "mailer.trait")]
impl Handler<Sent> for Mailer {
    async fn handle(&self, _event: Sent, meta: &Metadata) -> anyhow::Result<()> {
        assert_eq!(meta.handler_id(), "mailer.trait");
        self.calls.count();
        Ok(())
    }
}

#[tokio::test]
async fn methods_and_trait_handlers_run_on_the_instance_from_the_state() {
    let calls = Calls::default();
    let registry = Registry::builder()
        .handler::<Mailer>()
        .handler_for::<Mailer, Sent>()
        .state(Mailer {
            calls: calls.clone(),
        })
        .build()
        .unwrap();
    for (handler, total) in [
        ("mailer.first", 1),
        ("mailer.second", 3),
        ("mailer.trait", 4),
    ] {
        let decision = first_attempt(&registry, handler, &SENT).await;
        assert!(matches!(decision, Decision::Completed(_)), "{decision:?}");
        assert_eq!(calls.0.load(Ordering::Relaxed), total);
    }
}

#[tokio::test]
async fn a_marked_function_stays_callable() {
    let calls = Calls::default();
    let mailer = Mailer {
        calls: calls.clone(),
    };
    mailer.first(SENT).await;
    plain(SENT).await.unwrap();
    assert_eq!(calls.0.load(Ordering::Relaxed), 1);
}

#[outbox_handler]
async fn plain(event: Sent) -> Result<(), String> {
    assert_eq!(event.id, 3);
    Ok(())
}
