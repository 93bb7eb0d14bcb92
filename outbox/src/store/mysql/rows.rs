//! Rows of MySQL as records and deliveries.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::{Row as _, mysql::MySqlRow};

use crate::{
    record::{Attempt, Record},
    store::{FetchedDelivery, FetchedRecord, LaneName},
};

/// What a record is read from; `r` is its table.
pub(super) const RECORD: &str =
    "r.part, r.id, r.event_id, r.event, r.version, r.`key`, r.payload, r.headers,
    timestampdiff(microsecond, '1970-01-01', r.created_at), r.max_retries";
/// What a delivery is read from, after [`RECORD`]; `d` is its table.
pub(super) const DELIVERY: &str =
    "d.handler, d.status = 'waiting', d.blocking, d.attempt, d.failure_count,
    timestampdiff(microsecond, '1970-01-01', d.first_failed_at)";

pub(super) fn part_and_key(row: &MySqlRow) -> Result<(u16, String), sqlx::Error> {
    let part = row.try_get::<i16, _>(0)?.cast_unsigned();
    Ok((part, text(row.try_get(1)?)?))
}

pub(super) fn lane_name(row: &MySqlRow) -> Result<LaneName, sqlx::Error> {
    let (part, key) = part_and_key(row)?;
    Ok(LaneName {
        part,
        key,
        handler: row.try_get(2)?,
    })
}

pub(super) fn fetched(row: &MySqlRow) -> Result<FetchedRecord, sqlx::Error> {
    let headers: Option<&str> = row.try_get(7)?;
    let record = Record {
        id: row.try_get(1)?,
        event_id: row.try_get(2)?,
        event: row.try_get(3)?,
        version: u32::try_from(row.try_get::<i64, _>(4)?).unwrap_or(u32::MAX),
        key: text(row.try_get(5)?)?,
        payload: row.try_get(6)?,
        headers: headers.map_or_else(BTreeMap::new, crate::store::headers),
        created_at: moment(row.try_get(8)?),
        max_retries: row
            .try_get::<Option<i64>, _>(9)?
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
    };
    Ok(FetchedRecord {
        part: row.try_get::<i16, _>(0)?.cast_unsigned(),
        record,
    })
}

pub(super) fn fetched_delivery(row: &MySqlRow) -> Result<FetchedDelivery, sqlx::Error> {
    Ok(FetchedDelivery {
        handler: row.try_get(10)?,
        waiting: row.try_get(11)?,
        blocking: row.try_get(12)?,
        followed: row.try_get(16)?,
        attempt: Attempt {
            number: u32::try_from(row.try_get::<i64, _>(13)?).unwrap_or(u32::MAX),
            failure_count: u32::try_from(row.try_get::<i64, _>(14)?).unwrap_or(u32::MAX),
            first_failed_at: row.try_get::<Option<i64>, _>(15)?.map(moment),
        },
        fetched: fetched(row)?,
    })
}

/// What was put there by hand may be beyond what a timestamp can be.
fn moment(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

/// Keys are stored as bytes.
fn text(bytes: Vec<u8>) -> Result<String, sqlx::Error> {
    String::from_utf8(bytes).map_err(|error| sqlx::Error::Decode(error.into()))
}
