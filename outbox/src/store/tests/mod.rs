//! The statements on real databases: the same cases on SQLite, PostgreSQL and MySQL/MariaDB.

mod database;
mod deliveries;
mod files;
mod finishing;
mod leases;
mod reading;
#[cfg(feature = "postgres")]
mod scans;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod sessions;
mod settling;

use super::{DeliveryRow, DueQuery, FailureRow, Fence, InMemory, Page, PendingQuery};
use crate::record::{DeliveryStatus, Partition};

/// Declares each test once per database. `$db` is a [`database::Store`] of its own.
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

fn p(number: u16) -> Partition {
    Partition::new(number)
}

fn every_partition() -> Vec<Partition> {
    (0..64).map(p).collect()
}

/// The whole partition, from id 0.
fn page(number: u16) -> Page {
    Page {
        partition: p(number),
        after: 0,
    }
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

fn due<'a>(
    partitions: &'a [Partition],
    handlers: &'a [&'a str],
    offset: i64,
    limit: i64,
) -> DueQuery<'a> {
    DueQuery {
        partitions,
        handlers,
        offset,
        limit,
    }
}

/// The same leases with another owner.
fn with_other_owner(fence: &Fence) -> Fence {
    Fence {
        owner: uuid::Uuid::now_v7(),
        leases: fence.leases.clone(),
    }
}

/// The same leases with the epochs of the owner before.
fn with_old_epochs(fence: &Fence) -> Fence {
    let mut old = fence.clone();
    for lease in &mut old.leases {
        lease.epoch -= 1;
    }
    old
}

/// A delivery of key `a` in partition 3 whose first attempt failed, due in 10 s.
fn retrying(record_id: i64, handler: &'static str) -> DeliveryRow {
    DeliveryRow {
        record_id,
        partition: p(3),
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

/// A delivery that waits behind a [`retrying`] one.
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
        ..retrying(record_id, handler)
    }
}

/// The row of this delivery after its handler completed it.
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
        partition: p(3),
        handler: "mail",
        attempt,
        kind: "failed",
        fingerprint: "f1".to_owned(),
        error: format!("attempt {attempt}"),
    }
}

#[test]
fn the_longest_duration_fits_into_microseconds() {
    assert_eq!(super::as_micros(std::time::Duration::from_micros(7)), 7);
    assert_eq!(
        super::as_micros(std::time::Duration::MAX),
        super::as_micros(std::time::Duration::from_secs(u64::MAX / 2))
    );
    assert!(super::as_micros(std::time::Duration::MAX) > 0);
}
