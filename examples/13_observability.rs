//! Metrics at `/metrics`, health at `/health`, logs as JSON, and one trace from a request to the
//! attempts of its event's handler. `cargo run --example observability` sends itself requests and ends.
//! `cargo run --example observability 127.0.0.1:3000` serves until ctrl-c or SIGTERM.

use std::net::SocketAddr;

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::IntoResponse,
    routing::{get, post},
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use outbox::{Metadata, Outbox, OutboxEvent, metrics::SECONDS_BUCKETS, outbox_handler, retryable};
use outbox_examples::{Console, Ended, http, say, sqlite, stop_signal, until};
use sqlx::{Sqlite, SqlitePool};
use tokio::net::TcpListener;
use tracing_subscriber::{
    Layer as _, filter::LevelFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

#[outbox_handler(id = "charge-card")]
#[retryable(fixed("20ms"), max_retries = 3)]
async fn charge_card(event: OrderCreated, meta: &Metadata) -> Result<(), String> {
    // This line, like everything in the handler, belongs to the trace of the request.
    tracing::info!(order_id = event.order_id, "charging");
    if !meta.is_retry() {
        return Err("the bank does not answer".to_owned());
    }
    Ok(())
}

#[derive(Clone)]
struct App {
    pool: SqlitePool,
    outbox: Outbox<Sqlite>,
    prometheus: PrometheusHandle,
}

type Answer<T> = Result<T, (StatusCode, String)>;

fn failed(error: impl std::fmt::Display) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

#[tracing::instrument(name = "POST /orders", skip_all)]
async fn create(State(app): State<App>) -> Answer<String> {
    let mut tx = app.pool.begin().await.map_err(failed)?;
    let insert = sqlx::query_scalar("insert into orders default values returning id");
    let order_id: i64 = insert.fetch_one(&mut *tx).await.map_err(failed)?;
    let event = OrderCreated { order_id };
    app.outbox.publish(&mut tx, &event).await.map_err(failed)?;
    tx.commit().await.map_err(failed)?;
    Ok(order_id.to_string())
}

async fn metrics(State(app): State<App>) -> String {
    app.prometheus.render()
}

async fn health(State(app): State<App>) -> impl IntoResponse {
    let health = app.outbox.health().await;
    let status = if health.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(health))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let console = Console::default();
    // A real service would use a batch exporter here, for example that of `opentelemetry-otlp`.
    let traces = SdkTracerProvider::builder()
        .with_simple_exporter(console.clone())
        .build();
    let spans = tracing_opentelemetry::layer().with_tracer(traces.tracer("shop"));
    tracing_subscriber::registry()
        .with(spans.with_filter(LevelFilter::INFO))
        .with(
            tracing_subscriber::fmt::layer()
                .json()
                .with_filter(LevelFilter::INFO),
        )
        .init();
    // The dispatcher looks for a recorder once, when it starts, so the recorder is installed before.
    let prometheus = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)?
        .install_recorder()?;

    let db = sqlite().await?;
    let create_table = sqlx::query("create table orders (id integer primary key)");
    create_table.execute(&db.pool).await?;
    let pool = db.pool.clone();
    let outbox = Outbox::builder(pool.clone()).build().await?;
    let dispatcher = outbox.start().await?;
    let routes = Router::new()
        .route("/orders", post(create))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .with_state(App {
            pool,
            outbox: outbox.clone(),
            prometheus,
        });
    let argument = std::env::args().nth(1);
    let is_demonstration = argument.is_none();
    let listener = TcpListener::bind(argument.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let address = listener.local_addr()?;
    say(format!("serving on http://{address}"));
    let server = tokio::spawn(axum::serve(listener, routes).into_future());
    if is_demonstration {
        demonstrate(address, &outbox).await?;
    } else {
        stop_signal().await?;
    }
    // `axum_service` shows how to let requests finish.
    server.abort();
    dispatcher.shutdown().await?;
    db.pool.close().await;
    traces.shutdown()?; // exports the remaining spans

    if is_demonstration {
        check_trace(&console.ended())?;
    }
    Ok(())
}

fn check_trace(spans: &[Ended]) -> anyhow::Result<()> {
    let mut request = spans.iter().filter(|span| span.name == "POST /orders");
    let trace = request.next().map(|span| &span.trace);
    let same = spans.iter().filter(|span| Some(&span.trace) == trace);
    let mut names: Vec<&str> = same.map(|span| &*span.name).collect();
    names.sort_unstable();
    say(format!("one trace: {names:?}"));
    let count = |name| names.iter().filter(|other| **other == name).count();
    anyhow::ensure!(count("outbox.publish") == 1);
    anyhow::ensure!(count("outbox.attempt") == 2 && count("outbox.handler") == 2);
    Ok(())
}

async fn demonstrate(address: SocketAddr, outbox: &Outbox<Sqlite>) -> anyhow::Result<()> {
    http(address, "POST", "/orders", "").await?;
    until(outbox, |now| now.completed == 1).await?;
    let health = http(address, "GET", "/health", "").await?;
    say(format!("GET /health: {health}"));
    anyhow::ensure!(health.contains(r#""dispatcher":"running""#));
    let metrics = http(address, "GET", "/metrics", "").await?;
    for outcome in ["retry", "completed"] {
        let line =
            format!(r#"outbox_attempts_total{{handler="charge-card",outcome="{outcome}"}} 1"#);
        say(format!("GET /metrics: {line}"));
        anyhow::ensure!(metrics.contains(&line), "{metrics}");
    }
    Ok(())
}
