//! Spans of publications and attempts, the trace that they belong to, and log lines of attempts.
//!
//! [`span`] makes the spans, and [`outcome`] names their outcomes. [`w3c`] reads a stored trace
//! context, and `carry` passes it from the publisher to the attempt. [`attempt_log`] writes the log
//! lines about failed attempts, and [`rate`] limits their number.
//!
//! All names are stable; `docs/tracing.md` lists them. Payloads and the texts of errors are in no
//! span and no line. Keys are, if `observability.log-keys` is on.

mod attempt_log;
#[cfg(feature = "opentelemetry")]
mod carry;
mod outcome;
mod rate;
mod span;
mod w3c;

pub(crate) use attempt_log::AttemptLog;
pub(crate) use carry_or_not::trace_headers;
pub(crate) use outcome::{BECAUSE, PublishOutcome, because_index};
pub(crate) use rate::Rate;
pub(crate) use span::{attempt, decided, handler, invoked, publish, published};
pub(crate) use w3c::{TRACEPARENT, TRACESTATE, trace_parent, trace_state};

#[cfg(feature = "opentelemetry")]
use carry as carry_or_not;

/// Without the feature a record gets no trace headers.
#[cfg(not(feature = "opentelemetry"))]
mod carry_or_not {
    pub(crate) fn trace_headers() -> Vec<(String, String)> {
        Vec::new()
    }
}

/// `tests/tracing/` tests the headers with the feature.
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
