//! What users store is not told: no payload, header, dedup key or text of an error, and no key
//! unless it is switched on. Everything that two processes say at any level is looked at.

use std::collections::BTreeSet;

use outbox_tests::{on_each_database, order::Order};

use crate::process::tracer;

on_each_database! {
    async fn nothing_that_users_store_is_told(db) {
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
            for told in [&published, &handled] {
                assert!(!told.text.contains(Order::KEY), "{}", told.text);
                assert!(!told.text.contains(Order::SECRET), "{}", told.text);
            }
            database::replay(&db.pool).await;
        }
    }

    async fn keys_are_told_when_that_is_switched_on(db) {
        let key = format!("{}-third", Order::KEY);
        let published = tracer(&["publish", &db.url(), "third", "keys"]).await;
        let handled = tracer(&["handle", &db.url(), "keys"]).await;
        assert_eq!(published.named("outbox.publish")[0].field("key"), key);
        let attempts = handled.named("outbox.attempt");
        assert!(attempts.iter().all(|span| span.field("key") == key), "{attempts:#?}");
        let lines = handled.lines_of("outbox::attempt");
        assert!(!lines.is_empty() && lines.iter().all(|(_, line)| line["key"] == key), "{lines:#?}");
        for told in [&published, &handled] {
            assert!(!told.text.contains(Order::SECRET), "{}", told.text);
        }
    }
}
