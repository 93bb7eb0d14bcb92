//! The fetcher on a real database, where statements can fail.

use std::sync::Arc;

use sqlx::Sqlite;

use crate::{
    record::{OutboxEvent, Partition},
    registry::{Registered, Registration, route::Router},
    runtime::fetch::{BlockingKeys, FetchPlan, Fetched, Fetcher, PagePlan, PendingPlan},
    store::{FetchedRecord, Page},
    testing::Kit,
};

#[derive(serde::Serialize, serde::Deserialize)]
struct Published;

impl OutboxEvent for Published {
    const NAME: &'static str = "published";
}

/// An outbox needs a handler.
struct Unused;

impl Registered for Unused {
    const REGISTRATIONS: &'static [Registration] = &[super::registration("unused", &["other"])];
}

/// Reads all partitions from ids above `after`.
fn plan(after: i64, sweep: bool) -> FetchPlan {
    let partitions: Vec<Partition> = (0..64).map(Partition::new).collect();
    let page = |partition: &Partition| Page {
        partition: *partition,
        after,
    };
    FetchPlan {
        handlers: Vec::new(),
        clock_offset: 0,
        load: Vec::new(),
        due: None,
        pending: Some(PendingPlan {
            pages: PagePlan {
                pages: partitions.iter().map(page).collect(),
                per_page: 10,
                limit: 100,
            },
            in_memory: Vec::new(),
            highest_seen: after,
            probe_first: false,
        }),
        sweep,
        find_runnable: None,
        blocking_keys: Arc::new(BlockingKeys::default()),
        router: Arc::new(Router::for_tests([].into_iter())),
        partitions,
    }
}

fn ids(fetched: &Fetched) -> Vec<i64> {
    let id = |row: &FetchedRecord| row.record.id;
    fetched.pending.iter().map(id).collect()
}

/// The statement after the records failed, but the late records counted as read.
#[tokio::test]
async fn late_records_of_a_failed_fetch_are_read_again() {
    let kit = Kit::new(|builder| builder.handler::<Unused>());
    let kit = kit.await.unwrap();
    let id = kit.publish(&Published).await.unwrap();
    let mut fetcher: Fetcher<Sqlite> = kit.outbox().inner.fetcher();
    let rename =
        |from: &str, to: &str| sqlx::AssertSqlSafe(format!("alter table {from} rename to {to}"));
    let hide = sqlx::query(rename("outbox_delivery", "hidden"));
    hide.execute(kit.pool()).await.unwrap();
    fetcher.fetch(&plan(id, true)).await.unwrap_err();
    let show = sqlx::query(rename("hidden", "outbox_delivery"));
    show.execute(kit.pool()).await.unwrap();

    let fetched = fetcher.fetch(&plan(id, false)).await.unwrap();
    assert_eq!(ids(&fetched), [id], "it was not read before");
    assert_eq!(fetched.late_found, 1);
    let fetched = fetcher.fetch(&plan(id, false)).await.unwrap();
    assert!(ids(&fetched).is_empty(), "now it was");
}
