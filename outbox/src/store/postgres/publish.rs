//! Publishing into PostgreSQL.

use sqlx::{PgConnection, Postgres};
use uuid::Uuid;

use crate::store::{NewRecord, PublishSql, PublishStatements, TableNames, trusted};

impl PublishSql for Postgres {
    fn inserts(names: &TableNames) -> PublishStatements {
        let (record, instance) = (names.table("record", '"'), names.table("instance", '"'));
        // Only if somebody sleeps: commits that tell something wait for each other. Asked by the
        // same statement, so that an instance that began to listen before it is notified.
        let channel = names.channel();
        let tell = |parts: &str| {
            format!(
                "select pg_notify('{channel}', {parts})::text from {instance} where listening and expires_at > clock_timestamp() limit 1"
            )
        };
        let (tell_one, tell_many) = (
            tell("$5::text"),
            tell("(select string_agg(distinct p::text, ',') from unnest($3::smallint[]) as p)"),
        );
        let one = format!(
            "insert into {record} (event_id, event, version, key, part, payload, headers, max_retries, dedup_key, due_at, status)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9,
    coalesce(clock_timestamp() + $10 * interval '1 microsecond', timestamptz 'epoch' + $11 * interval '1 microsecond'),
    case when $10::bigint is null and $11::bigint is null then 'pending' else 'scheduled' end)"
        );
        let many = format!(
            "with published as (
insert into {record} (event_id, event, version, key, part, payload, headers, max_retries)
select event_id, $5::text, $6::bigint, key, part, payload, $7::text, $8::bigint
from unnest($1::uuid[], $2::text[], $3::smallint[], $4::text[]) with ordinality as r (event_id, key, part, payload, place)
order by place
)
{tell_many}"
        );
        PublishStatements {
            one_deduplicated: trusted(format!(
                "{one} on conflict (dedup_key) where dedup_key is not null do nothing returning id, ({tell_one})"
            )),
            one: trusted(format!("{one} returning id, ({tell_one})")),
            many: trusted(many),
        }
    }

    async fn insert(
        connection: &mut PgConnection,
        inserts: &PublishStatements,
        new: &NewRecord,
    ) -> Result<Option<i64>, sqlx::Error> {
        let sql = match new.dedup_key {
            Some(_) => &inserts.one_deduplicated,
            None => &inserts.one,
        };
        let (delay, at) = new.due.micros();
        sqlx::query_scalar(sql.clone())
            .bind(new.record.event_id)
            .bind(&new.record.event)
            .bind(i64::from(new.record.version))
            .bind(&new.record.key)
            .bind(new.partition.cast_signed())
            .bind(&new.record.payload)
            .bind(new.headers())
            .bind(new.record.max_retries.map(i64::from))
            .bind(&new.dedup_key)
            .bind(delay)
            .bind(at)
            .fetch_optional(connection)
            .await
    }

    async fn insert_all(
        connection: &mut PgConnection,
        inserts: &PublishStatements,
        new: &[NewRecord],
    ) -> Result<(), sqlx::Error> {
        let Some(each) = new.first() else {
            return Ok(());
        };
        let column = |of: fn(&NewRecord) -> &str| new.iter().map(of).collect::<Vec<&str>>();
        let ids: Vec<Uuid> = new.iter().map(|new| new.record.event_id).collect();
        let partitions: Vec<i16> = new.iter().map(|new| new.partition.cast_signed()).collect();
        sqlx::query(inserts.many.clone())
            .bind(ids)
            .bind(column(|new| &new.record.key))
            .bind(partitions)
            .bind(column(|new| &new.record.payload))
            .bind(&each.record.event)
            .bind(i64::from(each.record.version))
            .bind(each.headers())
            .bind(each.record.max_retries.map(i64::from))
            .execute(connection)
            .await?;
        Ok(())
    }
}
