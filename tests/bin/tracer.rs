//! A traced process. It prints finished spans to stdout and log lines of all levels to stderr, each
//! as one line of JSON.
//!
//! `tracer publish URL WORD..`: publishes an order per word in one span, `place_order`.
//! `tracer handle URL`: handles orders until none is left. The word of an order decides the result:
//! `third` succeeds at the third attempt, `panics` panics, any other word fails.
//!
//! `tracer handle-tx URL` does the same with a handler that takes a transaction. With `keys` as the
//! last word, logs and spans contain keys.

use std::{io::Write as _, time::Duration};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use outbox::{
    Config, Database, HandlerError, Metadata, Outbox, Registry, RegistryBuilder, Retry, Tx,
    outbox_handler,
};
use outbox_tests::order::Order;
use sqlx::{MySql, Pool, Postgres, Sqlite};
use tracing::Instrument as _;
use tracing_subscriber::{
    Layer as _, filter::LevelFilter, fmt::format::FmtSpan, layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Prints each span when it ends.
#[derive(Debug)]
struct PrintSpans;

impl SpanExporter for PrintSpans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        for span in batch {
            let attributes: serde_json::Map<_, _> = (span.attributes.iter())
                .map(|field| (field.key.to_string(), field.value.to_string().into()))
                .collect();
            let line = serde_json::json!({
                "name": span.name,
                "trace": span.span_context.trace_id().to_string(),
                "id": span.span_context.span_id().to_string(),
                "parent": span.parent_span_id.to_string(),
                "parent_is_remote": span.parent_span_is_remote,
                "state": span.span_context.trace_state().header(),
                "kind": format!("{:?}", span.span_kind),
                "status": format!("{:?}", span.status),
                "events": format!("{:?}", span.events),
                "fields": attributes,
            });
            // Writing fails after the test has closed the pipe.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
        Ok(())
    }
}

fn play(event: &Order, meta: &Metadata) -> Result<(), HandlerError> {
    tracing::trace!("the handler runs");
    // The texts of errors and panics may contain the payload.
    let Order { does, card, .. } = event;
    match &**does {
        "third" if meta.attempt() == 3 => Ok(()),
        // `resume_unwind` does not call the panic hook, which would print the text.
        "panics" => std::panic::resume_unwind(Box::new(format!("no {card}"))),
        _ => Err(format!("{card} was refused").into()),
    }
}

#[outbox_handler(id = "charge")]
async fn charge(event: Order, meta: &Metadata) -> Result<(), HandlerError> {
    tokio::task::yield_now().await;
    play(&event, meta)
}

macro_rules! with_transaction {
    ($($name:ident on $Db:ty,)*) => {$(
        #[outbox_handler(id = "charge")]
        async fn $name(event: Order, meta: &Metadata, mut tx: Tx<'_, $Db>) -> Result<(), HandlerError> {
            sqlx::query("select 1").execute(&mut *tx).await?;
            play(&event, meta)
        }
    )*};
}

with_transaction! {
    on_sqlite on Sqlite,
    on_postgres on Postgres,
    on_mysql on MySql,
}

async fn publish<Db: Database>(
    outbox: &Outbox<Db>,
    pool: &Pool<Db>,
    does: &[String],
) -> Result<(), Failure> {
    let mut tx = pool.begin().await?;
    for word in does {
        let order = Order::that(word);
        let sent = outbox.schedule(&order).header("note", order.secret());
        let _ = sent.dedup_key(order.secret()).send(&mut tx).await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn handle<Db: Database>(outbox: &Outbox<Db>) -> Result<(), Failure> {
    let dispatcher = outbox.start().await?;
    loop {
        let counts = outbox
            .operations()
            .counts(outbox::operations::Precision::Exact)
            .await?;
        if counts.pending + counts.waiting + counts.retrying == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    dispatcher.shutdown().await?;
    Ok(())
}

async fn work<Db: Database>(
    pool: Pool<Db>,
    arguments: &[String],
    handlers: RegistryBuilder,
) -> Result<(), Failure> {
    let mut config = Config::default();
    config.observability.log_keys = arguments.last().is_some_and(|last| last == "keys");
    let retry = Retry::builder()
        .max_retries(3)
        .fixed(Duration::from_millis(1));
    let outbox = Outbox::builder(pool.clone())
        .registry(handlers.retry_policy(retry))
        .config(config)
        .build()
        .await?;
    let done = match &*arguments[0] {
        "publish" => {
            let does: Vec<String> = arguments[2..]
                .iter()
                .filter(|word| *word != "keys")
                .cloned()
                .collect();
            let span = tracing::info_span!("place_order");
            publish(&outbox, &pool, &does).instrument(span).await
        }
        _ => handle(&outbox).await,
    };
    // The threads of SQLite keep spans open. Closing the pool ends them.
    pool.close().await;
    done
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(PrintSpans)
        .build();
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("tracer"));
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .with_span_events(FmtSpan::FULL)
        .with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(spans.with_filter(LevelFilter::INFO))
        .with(lines.with_filter(LevelFilter::TRACE))
        .init();

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, url, ..] = &*arguments else {
        return Err("tracer publish|handle|handle-tx URL ..".into());
    };
    let plain = match &**mode {
        "publish" => Some(Registry::builder().allow_empty()),
        "handle" => Some(Registry::builder().handler::<charge>()),
        _ => None,
    };
    let builder = Registry::builder;
    if url.starts_with("sqlite:") {
        let handlers = plain.unwrap_or_else(|| builder().handler::<on_sqlite>());
        work(Pool::<Sqlite>::connect(url).await?, &arguments, handlers).await?;
    } else if url.starts_with("postgres") {
        let handlers = plain.unwrap_or_else(|| builder().handler::<on_postgres>());
        work(Pool::<Postgres>::connect(url).await?, &arguments, handlers).await?;
    } else {
        let handlers = plain.unwrap_or_else(|| builder().handler::<on_mysql>());
        work(Pool::<MySql>::connect(url).await?, &arguments, handlers).await?;
    }
    provider.shutdown()?;
    Ok(())
}
