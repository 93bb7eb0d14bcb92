//! Spans and log lines contain no payload, header, dedup key or text of an error, and no key unless
//! `log-keys` is on. The tests search the whole output of two processes, at every level.

use std::collections::BTreeSet;

use outbox_tests::{on_each_database, order::Order};

use crate::process::tracer;

on_each_database! {
    async fn no_span_or_log_line_contains_stored_data(db) {
        let url = db.url();
        let published = tracer(&["publish", &url, "third", "fails", "panics", "broken"]).await;
        let broken = "update outbox_record set payload = replace(payload, 'broken\"', 'broken') \
            where payload like '%broken%'";
        database::execute(&db.pool, broken).await;
        for handle in ["handle", "handle-tx"] {
            let handled = tracer(&[handle, &url]).await;
            let attempts = handled.named("outbox.attempt");
            let failures: BTreeSet<&str> = attempts.iter().map(|span| span.field("failure")).collect();
            assert!(failures.is_superset(&["error", "panicked", "undecodable"].into()), "{failures:?}");
            assert!(handled.lines.iter().any(|line| line["level"] == "TRACE"));
            for output in [&published, &handled] {
                assert!(!output.text.contains(Order::KEY), "{}", output.text);
                assert!(!output.text.contains(Order::SECRET), "{}", output.text);
            }
            database::replay(&db.pool).await;
        }
    }

    async fn spans_and_log_lines_contain_keys_when_log_keys_is_on(db) {
        let key = format!("{}-third", Order::KEY);
        let published = tracer(&["publish", &db.url(), "third", "keys"]).await;
        let handled = tracer(&["handle", &db.url(), "keys"]).await;
        assert_eq!(published.named("outbox.publish")[0].field("key"), key);
        let attempts = handled.named("outbox.attempt");
        assert!(attempts.iter().all(|span| span.field("key") == key), "{attempts:#?}");
        let lines = handled.lines_of("outbox::attempt");
        assert!(!lines.is_empty() && lines.iter().all(|(_, line)| line["key"] == key), "{lines:#?}");
        for output in [&published, &handled] {
            assert!(!output.text.contains(Order::SECRET), "{}", output.text);
        }
    }
}
