//! What is told about the way of a record: spans, the trace that they belong to, and log lines.
//!
//! [`span`] makes the spans, [`outcome`] has the words for what came of them, [`w3c`] reads a stored
//! trace context and `carry` takes it from the publisher to the attempt; [`line`] writes the log
//! lines about failed attempts, and [`rate`] keeps them from flooding.
//!
//! All names here are documented in `docs/tracing.md` and stable. Payloads and the texts of errors
//! are never told, keys only if `observability.log-keys` says so.

#[cfg(feature = "opentelemetry")]
mod carry;
mod line;
mod outcome;
mod rate;
mod span;
mod w3c;

pub(crate) use carry_or_not::carried;
pub(crate) use line::Lines;
pub(crate) use outcome::Sent;
pub(crate) use rate::Rate;
pub(crate) use span::{attempt, decided, handler, invoked};
pub(crate) use span::{publish, published};
pub(crate) use w3c::TRACESTATE;
pub(crate) use w3c::{TRACEPARENT, trace_parent, trace_state};

#[cfg(feature = "opentelemetry")]
use carry as carry_or_not;

/// Without OpenTelemetry there is nothing to carry.
#[cfg(not(feature = "opentelemetry"))]
mod carry_or_not {
    pub(crate) fn carried() -> Vec<(String, String)> {
        Vec::new()
    }
}

/// With the feature, `tests/tracing/` shows what is added.
#[cfg(all(test, feature = "sqlite", not(feature = "opentelemetry")))]
mod tests {
    use tracing::Instrument as _;

    use crate::{OutboxEvent, outbox::Outbox, registry::Registry};

    #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
    #[outbox_event(name = "order.created", crate = crate)]
    struct OrderCreated {}

    #[tokio::test]
    async fn without_the_feature_no_header_is_added() {
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry());
        let options = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
        let pool = options.connect("sqlite::memory:").await.unwrap();
        let registry = Registry::builder().allow_empty();
        let outbox = Outbox::builder(pool.clone()).registry(registry);
        let outbox = outbox.build().await.unwrap();
        let publish = async {
            let mut connection = pool.acquire().await.unwrap();
            outbox
                .publish(&mut connection, &OrderCreated {})
                .await
                .unwrap();
        };
        let request = tracing::info_span!("request");
        assert!(!request.is_disabled());
        publish.instrument(request).await;
        let headers = sqlx::query_scalar("select headers from outbox_record");
        let headers: Option<String> = headers.fetch_one(&pool).await.unwrap();
        assert_eq!(headers, None);
    }
}
