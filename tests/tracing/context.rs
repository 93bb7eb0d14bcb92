//! The stored trace context: which one is stored, and how an invalid one is handled.

use outbox::{Outbox, Registry};
use outbox_tests::{database::sqlite as database, order::Order};
use sqlx::SqlitePool;

use crate::process::{NO_PARENT, Span, tracer};

/// Publishes an order with these headers, outside of a trace. Another process handles it.
async fn attempts_with(headers: &[(&str, &str)]) -> (SqlitePool, Vec<Span>) {
    let db = database::fresh().await;
    let registry = Registry::builder().allow_empty();
    let outbox = Outbox::builder(db.pool.clone())
        .registry(registry)
        .build()
        .await
        .unwrap();
    let order = Order::that("third");
    let mut connection = db.pool.acquire().await.unwrap();
    let sent = headers
        .iter()
        .fold(outbox.schedule(&order), |sent, (name, value)| {
            sent.header(*name, *value)
        });
    let _ = sent.send(&mut connection).await.unwrap();
    drop(connection);
    let handled = tracer(&["handle", &db.url()]).await;
    (db.pool, handled.named("outbox.attempt"))
}

async fn headers(pool: &SqlitePool) -> serde_json::Value {
    let headers =
        database::texts(pool, "select coalesce(headers, 'none') from outbox_record").await;
    match &*headers[0] {
        "none" => serde_json::Value::Null,
        headers => serde_json::from_str(headers).unwrap(),
    }
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test]
async fn attempts_continue_the_trace_context_of_the_publisher() {
    let (_, attempts) =
        attempts_with(&[("traceparent", PARENT), ("tracestate", "vendor=1,other=2")]).await;
    assert_eq!(attempts.len(), 3);
    for span in attempts {
        assert_eq!(span.trace, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(span.parent, "b7ad6b7169203331");
        assert_eq!(span.state, "vendor=1,other=2");
    }
}

#[tokio::test]
async fn an_invalid_trace_context_is_ignored() {
    let long = "x".repeat(60_000);
    let zero = "00-00000000000000000000000000000000-0000000000000000-01";
    for parent in ["", "invalid", "00-é", zero, &PARENT.to_uppercase(), &long] {
        let (_, attempts) =
            attempts_with(&[("traceparent", parent), ("tracestate", "=,==,\u{0},é")]).await;
        assert_eq!(attempts.len(), 3, "{parent}");
        let handled = attempts
            .iter()
            .filter(|span| span.field("outcome") == "completed");
        assert_eq!(handled.count(), 1);
        assert!(
            attempts.iter().all(|span| span.parent == NO_PARENT),
            "{attempts:#?}"
        );
    }
    // The trace is valid, but its state is not.
    for state in ["=,==", "a", &format!("a={}", &long[..511])] {
        let (_, attempts) = attempts_with(&[("traceparent", PARENT), ("tracestate", state)]).await;
        let handled = attempts
            .iter()
            .filter(|span| span.field("outcome") == "completed");
        assert_eq!(handled.count(), 1);
        assert!(
            attempts
                .iter()
                .all(|span| span.parent == "b7ad6b7169203331"),
            "{attempts:#?}"
        );
        assert!(
            attempts.iter().all(|span| span.state.is_empty()),
            "{attempts:#?}"
        );
    }
}

#[tokio::test]
async fn publish_without_a_trace_adds_no_header() {
    let (pool, _) = attempts_with(&[]).await;
    assert_eq!(headers(&pool).await, serde_json::Value::Null);
}

/// A trace in this process, and headers that the publisher sets.
mod own {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use outbox::config::Limits;
    use tracing::Instrument as _;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// The headers of an event that is published in a trace, with options that `with` adds.
    async fn published(
        limits: Limits,
        with: impl for<'a> Fn(
            outbox::Schedule<'a, sqlx::Sqlite, Order>,
        ) -> outbox::Schedule<'a, sqlx::Sqlite, Order>,
    ) -> serde_json::Value {
        let db = database::fresh().await;
        let provider = SdkTracerProvider::builder().build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        let registry = Registry::builder().allow_empty();
        let outbox = Outbox::builder(db.pool.clone())
            .registry(registry)
            .limits(limits)
            .build()
            .await
            .unwrap();
        let order = Order::that("third");
        let publish = async {
            let mut connection = db.pool.acquire().await.unwrap();
            let _ = with(outbox.schedule(&order))
                .send(&mut connection)
                .await
                .unwrap();
        };
        publish.instrument(tracing::info_span!("request")).await;
        headers(&db.pool).await
    }

    #[tokio::test]
    async fn publish_stores_the_trace_of_the_publisher() {
        let headers = published(Limits::default(), |sent| sent.header("note", "n")).await;
        let parent = headers["traceparent"].as_str().unwrap();
        assert!(
            parent.len() == 55 && parent.starts_with("00-") && parent.ends_with("-01"),
            "{parent}"
        );
        assert_eq!(headers["note"], "n");
        assert_eq!(headers.as_object().unwrap().len(), 2, "{headers}");
    }

    #[tokio::test]
    async fn a_traceparent_header_of_the_publisher_wins() {
        let headers = published(Limits::default(), |sent| sent.header("traceparent", "mine")).await;
        assert_eq!(headers, serde_json::json!({ "traceparent": "mine" }));
    }

    #[tokio::test]
    async fn publish_drops_the_trace_if_headers_would_be_too_long() {
        let mut limits = Limits::default();
        limits.header_bytes = 20;
        let headers = published(limits, |sent| sent.header("note", "n")).await;
        assert_eq!(headers, serde_json::json!({ "note": "n" }));
    }
}
