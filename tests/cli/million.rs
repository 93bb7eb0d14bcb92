//! A million finished records are not in the way of a look.

use std::time::{Duration, Instant};

use outbox_tests::database::postgres;

use crate::program::outbox;

#[tokio::test]
async fn status_answers_at_once_over_a_million_completed_records() {
    let db = postgres::fresh().await;
    let insert = |status: &str, count: u32| {
        format!(
            "insert into outbox_record (part, status, key, event, version, event_id, payload, completed_at) \
            select n % 64, '{status}', 'k' || n % 1000, 'order.created', 1, gen_random_uuid(), '{{}}', now() \
            from generate_series(1, {count}) n"
        )
    };
    postgres::execute(&db.pool, &insert("completed", 1_000_000)).await;
    postgres::execute(&db.pool, &insert("pending", 10_000)).await;

    let began = Instant::now();
    let status = outbox(&db.url(), "status --json").await.object();
    let took = began.elapsed();
    assert_eq!(
        (&status["pending"], &status["exact"]),
        (&10_000.into(), &false.into())
    );
    let completed = status["completed"].as_u64().unwrap();
    assert!((950_000..=1_050_000).contains(&completed), "{completed}");
    // A tenth of a second on a machine with nothing else to do, the connection among it.
    assert!(took < Duration::from_secs(3), "{took:?}");

    let exact = outbox(&db.url(), "status --json --exact").await.object();
    assert_eq!(
        (&exact["completed"], &exact["exact"]),
        (&1_000_000.into(), &true.into())
    );
    let text = outbox(&db.url(), "status").await.well();
    assert!(text.contains("completed  ~"), "{text}");
    db.pool.close().await;
}
