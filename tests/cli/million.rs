//! `outbox status` stays fast with a million finished records.

use std::time::{Duration, Instant};

use outbox_tests::{database, on_each_database};

use crate::program::outbox;

#[tokio::test]
async fn status_answers_within_seconds_over_a_million_completed_records() {
    let db = database::postgres::fresh().await;
    let insert = |status: &str, count: u32| {
        format!(
            "insert into outbox_record (part, status, key, event, version, event_id, payload, completed_at) \
            select n % 64, '{status}', 'k' || n % 1000, 'order.created', 1, gen_random_uuid(), '{{}}', now() \
            from generate_series(1, {count}) n"
        )
    };
    database::postgres::execute(&db.pool, &insert("completed", 1_000_000)).await;
    database::postgres::execute(&db.pool, &insert("pending", 10_000)).await;

    let started = Instant::now();
    let status = outbox(&db.url(), "status --json").await.object();
    let took = started.elapsed();
    assert_eq!(
        (&status["pending"], &status["exact"]),
        (&10_000.into(), &false.into())
    );
    let completed = status["completed"].as_u64().unwrap();
    assert!((950_000..=1_050_000).contains(&completed), "{completed}");
    // It takes 0.1 s on an idle machine, including the connection.
    assert!(took < Duration::from_secs(3), "{took:?}");

    let exact = outbox(&db.url(), "status --json --exact").await.object();
    assert_eq!(
        (&exact["completed"], &exact["exact"]),
        (&1_000_000.into(), &true.into())
    );
    let text = outbox(&db.url(), "status").await.succeeds();
    assert!(text.contains("completed  ~"), "{text}");
    db.pool.close().await;
}

/// Numbers from 0 to 199,999.
const MANY: &str = "with recursive d (n) as (select 0 union all select n + 1 from d where n < 499), \
    m (n) as (select a.n * 400 + b.n from d a cross join d b where b.n < 400)";

on_each_database! {
    async fn status_answers_within_seconds_over_many_failures(db) {
        let key = if database::NOW.starts_with("utc") { "`key`" } else { "key" };
        let (now, id) = (database::NOW, database::ID);
        database::execute(&db.pool, &format!(
            "insert into outbox_record (part, status, {key}, event, version, event_id, payload, created_at) \
            {MANY} select n % 64, 'split', 'k', case when n % 4 = 0 then 'order.paid' else 'order.created' end, 1, {id}, '{{}}', {now} \
            from m order by n"
        )).await;
        database::execute(&db.pool, &format!(
            "insert into outbox_delivery (record_id, part, {key}, handler, status, blocking, attempt, failure_count, failed_at, error, error_kind, fingerprint) \
            select id, part, {key}, 'charge', 'failed', true, 1, 1, {now}, 'declined', 'error', case when id % 10 = 0 then 'rare' else 'usual' end \
            from outbox_record order by id"
        )).await;
        let started = Instant::now();
        let status = outbox(&db.url(), "status --json").await.object();
        let took = started.elapsed();
        println!("status with 200,000 failures: {took:?}");
        assert_eq!((&status["failed"], &status["exact"]), (&200_000.into(), &false.into()));
        let about = |value: &serde_json::Value, truth: u64| {
            let count = value.as_u64().unwrap();
            assert!((truth * 9 / 10..=truth * 11 / 10).contains(&count), "{count} of {truth}");
        };
        assert_eq!((&status["events"][0]["event"], &status["events"][1]["event"]), (&"order.created".into(), &"order.paid".into()));
        about(&status["events"][0]["failed"], 150_000);
        about(&status["events"][1]["failed"], 50_000);
        assert_eq!((&status["errors"][0]["fingerprint"], &status["errors"][1]["fingerprint"]), (&"usual".into(), &"rare".into()));
        about(&status["errors"][0]["count"], 180_000);
        about(&status["errors"][1]["count"], 20_000);
        assert_eq!(status["errors"][0]["oldest_record_id"], 1);
        assert_eq!(status["errors"][1]["newest_record_id"], 200_000);
        // It takes less than 1 s on an idle machine.
        assert!(took < Duration::from_secs(4), "{took:?}");

        for arguments in ["list --json --order failed --limit 10", "list --json --order failed --failed-since 1h --limit 10"] {
            let started = Instant::now();
            let newest = outbox(&db.url(), arguments).await.objects();
            let took = started.elapsed();
            println!("{arguments}: {took:?}");
            assert_eq!((newest.len(), &newest[0]["record_id"]), (10, &200_000.into()));
            assert!(took < Duration::from_secs(2), "{took:?}");
        }

        let exact = outbox(&db.url(), "status --json --exact").await.object();
        assert_eq!((&exact["events"][0]["failed"], &exact["exact"]), (&150_000.into(), &true.into()));
        assert_eq!(exact["errors"][0]["count"], 180_000);
        let text = outbox(&db.url(), "status").await.succeeds();
        assert!(text.contains("`--exact` counts every row"), "{text}");
        db.pool.close().await;
    }
}
