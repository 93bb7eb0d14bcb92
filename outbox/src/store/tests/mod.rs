//! The statements on real databases: the same cases on SQLite, PostgreSQL and MySQL/MariaDB.

mod database;
mod deliveries;
mod files;
mod finishing;
mod leases;
mod reading;
mod settling;

use super::{DeliveryRow, DueQuery, FailureRow, Fence, InMemory, Page, PendingQuery};
use crate::record::DeliveryStatus;

/// Writes each test once per database. `$db` is a [`database::Store`] of its own.
macro_rules! on_each_database {
    ($(async fn $name:ident($db:ident) $body:block)*) => {
        #[cfg(feature = "sqlite")]
        on_each_database!(@sqlite Sqlite $(async fn $name($db) $body)*);
        #[cfg(feature = "postgres")]
        on_each_database!(@postgres Postgres $(async fn $name($db) $body)*);
        #[cfg(feature = "mysql")]
        on_each_database!(@mysql MySql $(async fn $name($db) $body)*);
    };
    (@$database:ident $Db:ident $(async fn $name:ident($db:ident) $body:block)*) => {
        mod $database {
            use sqlx::$Db as Db;

            use super::*;

            $(#[tokio::test]
            async fn $name() {
                let $db = crate::store::tests::database::$database().await;
                $body
            })*
        }
    };
}
use on_each_database;

/// All of a partition.
fn page(part: u16) -> Page {
    Page { part, after: 0 }
}

fn pending<'a>(
    pages: &'a [Page],
    in_memory: &'a [InMemory],
    per_partition: i64,
    limit: i64,
) -> PendingQuery<'a> {
    PendingQuery {
        pages,
        in_memory,
        per_partition,
        limit,
    }
}

fn due<'a>(parts: &'a [u16], handlers: &'a [&'a str], offset: i64, limit: i64) -> DueQuery<'a> {
    DueQuery {
        parts,
        handlers,
        offset,
        limit,
    }
}

/// The same leases as another owner's.
fn foreign(fence: &Fence) -> Fence {
    Fence {
        owner: uuid::Uuid::now_v7(),
        leases: fence.leases.clone(),
    }
}

/// The same leases as they were before they changed hands.
fn older(fence: &Fence) -> Fence {
    let mut older = fence.clone();
    for lease in &mut older.leases {
        lease.epoch -= 1;
    }
    older
}

/// A delivery of key `a` in partition 3 whose first attempt failed, due in 10 s.
fn scheduled(record_id: i64, handler: &'static str) -> DeliveryRow {
    DeliveryRow {
        record_id,
        part: 3,
        key: "a".to_owned(),
        handler,
        status: DeliveryStatus::Retrying,
        blocking: true,
        attempt: 2,
        failure_count: 1,
        first_failed_at: Some(1_700_000_000_123_456),
        due_in: Some(10_000_000),
        expected_attempt: 1,
        error: Some("it broke: ä".to_owned()),
        error_kind: Some("failed"),
        fingerprint: Some("f1".to_owned()),
    }
}

/// One behind it.
fn waiting(record_id: i64, handler: &'static str) -> DeliveryRow {
    DeliveryRow {
        status: DeliveryStatus::Waiting,
        attempt: 1,
        failure_count: 0,
        first_failed_at: None,
        due_in: None,
        error: None,
        error_kind: None,
        fingerprint: None,
        ..scheduled(record_id, handler)
    }
}

/// How such a delivery ends.
fn completed(row: &DeliveryRow) -> DeliveryRow {
    DeliveryRow {
        status: DeliveryStatus::Completed,
        blocking: false,
        due_in: None,
        expected_attempt: row.attempt,
        error: None,
        error_kind: None,
        fingerprint: None,
        ..row.clone()
    }
}

fn failure(record_id: i64, attempt: u32) -> FailureRow {
    FailureRow {
        record_id,
        part: 3,
        handler: "mail",
        attempt,
        kind: "failed",
        fingerprint: "f1".to_owned(),
        error: format!("attempt {attempt}"),
    }
}

#[test]
fn no_age_overflows() {
    assert_eq!(super::micros(std::time::Duration::from_micros(7)), 7);
    assert_eq!(
        super::micros(std::time::Duration::MAX),
        super::micros(std::time::Duration::from_secs(u64::MAX / 2))
    );
    assert!(super::micros(std::time::Duration::MAX) > 0);
}
