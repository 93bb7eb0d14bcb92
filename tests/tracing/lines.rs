//! The log lines of failed attempts.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use outbox::{__private::Attempt, HandlerError, Registry, clock::ManualClock, outbox_handler};
use outbox_tests::{database::sqlite as database, order::Order, record};
use serde_json::json;
use tracing::Level;

use crate::process::tracer;

#[tokio::test]
async fn retries_and_permanent_failures_are_logged_inside_their_span() {
    let db = database::fresh().await;
    let published = tracer(&["publish", &db.url(), "fails"]).await;
    let record_id: i64 = published.named("outbox.publish")[0]
        .field("record_id")
        .parse()
        .unwrap();
    let handled = tracer(&["handle", &db.url()]).await;
    let retry = |attempt: u32| {
        let fields = json!({
            "message": "attempt failed; the record will be retried",
            "handler": "charge", "event": "order.placed", "record_id": record_id,
            "attempt": attempt, "failure": "error", "delay_ms": 1,
        });
        ("INFO".to_owned(), fields)
    };
    let failed = json!({
        "message": "record failed permanently; it stays until it is replayed or discarded",
        "handler": "charge", "event": "order.placed", "record_id": record_id,
        "attempt": 4, "failure": "error", "because": "retries_exhausted",
    });
    let expected = [retry(1), retry(2), retry(3), ("ERROR".to_owned(), failed)];
    assert_eq!(handled.lines_of("outbox::attempt"), expected);
    let lines = handled.lines.iter();
    for line in lines.filter(|line| line["target"] == "outbox::attempt") {
        assert_eq!(line["span"]["name"], "outbox.attempt", "{line}");
        assert_eq!(line["span"]["attempt"], line["fields"]["attempt"], "{line}");
    }
}

/// A writer that keeps all bytes.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log lines of level debug and above during `run`, as JSON.
async fn logged(run: impl Future<Output = ()>) -> Vec<serde_json::Value> {
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    {
        let _guard = tracing::subscriber::set_default(subscriber);
        run.await;
    }
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[outbox_handler(id = "refuse")]
async fn refuse(_: Order) -> Result<(), String> {
    Err("refused".to_owned())
}

#[outbox_handler(id = "give-up", fallback = forget)]
async fn give_up(_: Order) -> Result<(), HandlerError> {
    Err(HandlerError::permanent("refused"))
}

async fn forget(_: Order) {}

#[tokio::test]
async fn only_ten_retries_per_second_are_logged_at_info() {
    let registry = Registry::builder().handler::<refuse>().build().unwrap();
    let clock = ManualClock::default();
    let order = record(&Order::that("fails"));
    let lines = logged(async {
        for second in [0, 1] {
            clock.advance(Duration::from_secs(second));
            for _ in 0..12 {
                let _ = registry
                    .dispatch("refuse", &order, Attempt::first(), &clock)
                    .await;
            }
        }
    })
    .await;
    let levels: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["level"].as_str())
        .collect();
    let second = [vec!["INFO"; 10], vec!["DEBUG"; 2]].concat();
    assert_eq!(levels, [second.clone(), second].concat());
}

#[tokio::test]
async fn a_fallback_that_completes_a_record_is_logged() {
    let registry = Registry::builder().handler::<give_up>().build().unwrap();
    let order = record(&Order::that("fails"));
    let lines = logged(async {
        let clock = ManualClock::default();
        let _ = registry
            .dispatch("give-up", &order, Attempt::first(), &clock)
            .await;
    })
    .await;
    let [line] = &*lines else {
        panic!("{lines:#?}");
    };
    let expected = json!({
        "message": "handler failed permanently; its fallback completed the record",
        "handler": "give-up", "event": "order.placed", "record_id": 0,
        "attempt": 1, "failure": "permanent", "because": "permanent",
    });
    assert_eq!(
        (&line["level"], &line["fields"]),
        (&json!("WARN"), &expected)
    );
}
