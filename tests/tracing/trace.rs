//! One trace from the publisher through every attempt to the handler, across processes.

use outbox::Database;
use outbox_tests::{database::Fresh, on_each_database};

use crate::process::{NO_PARENT, Span, tracer};

/// One process publishes; another one runs the command `handle`.
async fn is_one_trace<Db: Database>(db: &Fresh<Db>, handle: &str) {
    let published = tracer(&["publish", &db.url(), "third"]).await;
    let handled = tracer(&[handle, &db.url()]).await;

    let [request] = &*published.named("place_order") else {
        panic!("{:#?}", published.spans);
    };
    let [publish] = &*published.named("outbox.publish") else {
        panic!("{:#?}", published.spans);
    };
    assert_eq!(request.parent, NO_PARENT);
    assert_eq!(publish.parent, request.id);
    assert_eq!((&*publish.kind, &*publish.status), ("Producer", "Unset"));
    assert_eq!(publish.field("event"), "order.placed");
    assert_eq!(publish.field("records"), "1");
    assert_eq!(publish.field("outcome"), "published");

    let mut attempts = handled.named("outbox.attempt");
    // The exporter prints spans in the order of their ends, and a thread of SQLite may keep one open.
    attempts.sort_by_key(|span| span.field("attempt").to_owned());
    let handlers = handled.named("outbox.handler");
    assert_eq!(
        (attempts.len(), handlers.len()),
        (3, 3),
        "{:#?}",
        handled.spans
    );
    let expected = [("1", "retry"), ("2", "retry"), ("3", "completed")];
    for (attempt, (number, outcome)) in attempts.iter().zip(expected) {
        let mut inside = handlers.iter().filter(|span| span.parent == attempt.id);
        let handler = inside.next().expect("a handler's span inside");
        assert_eq!(attempt.parent, publish.id);
        assert!(attempt.parent_is_remote);
        assert_eq!(attempt.kind, "Consumer");
        assert_eq!(attempt.field("handler"), "charge");
        assert_eq!(attempt.field("event"), "order.placed");
        assert_eq!(attempt.field("record_id"), publish.field("record_id"));
        assert_eq!(attempt.field("attempt"), number);
        assert_eq!(attempt.field("outcome"), outcome);
        assert!(inside.next().is_none(), "{handlers:#?}");
        assert!(!handler.parent_is_remote);
        assert_eq!(handler.field("handler"), "charge");
        assert_eq!(handler.field("fallback"), "false");
        let failed = outcome == "retry";
        let (handler_outcome, failure) = if failed {
            ("failed", "error")
        } else {
            ("completed", "")
        };
        assert_eq!(handler.field("outcome"), handler_outcome);
        for span in [attempt, handler] {
            assert_eq!(span.field("failure"), failure);
            assert_eq!(span.status.starts_with("Error"), failed, "{span:?}");
        }
    }

    let mut all: Vec<&Span> = published.spans.iter().chain(&handled.spans).collect();
    assert!(
        all.iter().all(|span| span.trace == request.trace),
        "{all:#?}"
    );
    all.sort_by_key(|span| &span.id);
    all.dedup_by_key(|span| &span.id);
    assert_eq!(all.len(), 2 + 3 + 3);
}

on_each_database! {
    async fn one_trace_contains_the_publisher_and_every_attempt(db) {
        is_one_trace(&db, "handle").await;
    }

    async fn one_trace_contains_the_attempts_of_a_handler_with_a_transaction(db) {
        is_one_trace(&db, "handle-tx").await;
    }
}
