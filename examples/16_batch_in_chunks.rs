//! A job over many rows, in chunks, each of which is an event: `cargo run --example batch_in_chunks`

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use outbox::{Metadata, Outbox, OutboxEvent, Registry, State, Tx, outbox_handler, retryable};
use outbox_examples::{say, sqlite, until};

const ROWS: i64 = 1000;
const CHUNK: i64 = 100;

/// The next chunk of a job: the rows after the cursor. The chunks of a job have one key, so they run
/// one after the other; several jobs run at the same time.
#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "risk.chunk", key = job)]
struct ScoreChunk {
    job: String,
    after: i64,
}

#[derive(Clone, Default)]
struct Attempts(Arc<AtomicU32>);

/// The rows, the cursor, the next chunk and the completion of this one commit together. A failed chunk
/// is repeated alone, with the delays of its policy, also after a restart. A chunk that fails
/// permanently stays as a failed record, with its error, until a person replays it: the job then goes
/// on from there.
#[outbox_handler(id = "score-chunk")]
#[retryable(exponential(initial = "10ms", max = "1s"), max_retries = 5)]
async fn score_chunk(
    chunk: ScoreChunk,
    meta: &Metadata,
    State(outbox): State<Outbox<sqlx::Sqlite>>,
    State(attempts): State<Attempts>,
    mut tx: Tx<'_, sqlx::Sqlite>,
) -> anyhow::Result<()> {
    attempts.0.fetch_add(1, Ordering::Relaxed);
    let ids: Vec<i64> =
        sqlx::query_scalar("select id from cases where id > ?1 order by id limit ?2")
            .bind(chunk.after)
            .bind(CHUNK)
            .fetch_all(&mut *tx)
            .await?;
    let Some(last) = ids.last().copied() else {
        say(format!("{}: done", chunk.job));
        return Ok(());
    };
    sqlx::query("update cases set scored = scored + 1 where id > ?1 and id <= ?2")
        .bind(chunk.after)
        .bind(last)
        .execute(&mut *tx)
        .await?;
    if chunk.after == 3 * CHUNK && !meta.is_retry() {
        say(format!(
            "  {} to {last}: a failure after the write",
            chunk.after + 1
        ));
        anyhow::bail!("the scoring service is down");
    }
    // In the same transaction. A cursor that is saved elsewhere could skip or repeat rows.
    sqlx::query("update jobs set cursor = ?1 where name = ?2")
        .bind(last)
        .bind(&chunk.job)
        .execute(&mut *tx)
        .await?;
    let job = chunk.job;
    outbox
        .publish(&mut tx, &ScoreChunk { job, after: last })
        .await?;
    say(format!("  {} to {last}: scored", chunk.after + 1));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    sqlx::raw_sql(
        "create table cases (id integer primary key, scored integer not null default 0);
         create table jobs (name text primary key, cursor integer not null);
         insert into jobs values ('march', 0)",
    )
    .execute(&db.pool)
    .await?;
    let fill = "insert into cases (id) with recursive n (i) as
        (select 1 union all select i + 1 from n where i < ?1) select i from n";
    sqlx::query(fill).bind(ROWS).execute(&db.pool).await?;

    // The handler publishes with an outbox of its own, which runs no handlers.
    let publisher = Outbox::builder(db.pool.clone())
        .registry(Registry::builder().allow_empty())
        .build()
        .await?;
    let attempts = Attempts::default();
    let outbox = Outbox::builder(db.pool.clone())
        .state(publisher)
        .state(attempts.clone())
        .build()
        .await?;
    let dispatcher = outbox.start().await?;

    let mut tx = db.pool.begin().await?;
    let job = "march".to_owned();
    outbox
        .publish(&mut tx, &ScoreChunk { job, after: 0 })
        .await?;
    tx.commit().await?;

    // Ten chunks with rows, and one that finds none.
    until(&outbox, |now| now.completed == 11).await?;
    dispatcher.shutdown().await?;
    let once: i64 = sqlx::query_scalar("select count(*) from cases where scored = 1")
        .fetch_one(&db.pool)
        .await?;
    let cursor: i64 = sqlx::query_scalar("select cursor from jobs")
        .fetch_one(&db.pool)
        .await?;
    let attempts = attempts.0.load(Ordering::Relaxed);
    say(format!(
        "{once} rows were scored once, with {attempts} attempts; the cursor is {cursor}"
    ));
    anyhow::ensure!((once, cursor, attempts) == (ROWS, ROWS, 12));
    Ok(())
}
