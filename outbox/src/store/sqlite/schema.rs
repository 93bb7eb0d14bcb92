impl SchemaSql for Sqlite {
    fn migrations(names: &Names) -> Vec<Migration> {
        let record = names.table("record", '"');
        // Indexes are in the schema of their table; their own name carries it, the table's does not.
        let index = |name: &str| match names.schema() {
            Some(schema) => format!("\"{schema}\".\"{}\"", names.plain(name)),
            None => format!("\"{}\"", names.plain(name)),
        };
        let table = format!("\"{}\"", names.plain("record"));
        let (pending, scheduled, dedup) = (
            index("record_pending"),
            index("record_scheduled"),
            index("record_dedup"),
        );
        vec![Migration {
            version: 1,
            statements: vec![
                // `autoincrement`: an id is never given twice, not even after its record is deleted.
                format!(
                    "create table if not exists {record} (
    id integer primary key autoincrement,
    part integer not null,
    status text not null default 'pending',
    key text not null,
    event text not null,
    version integer not null,
    event_id blob not null,
    payload text not null,
    headers text,
    max_retries integer,
    dedup_key text,
    created_at integer not null default ({NOW}),
    due_at integer,
    completed_at integer
)"
                ),
                format!(
                    "create index if not exists {pending} on {table} (part, id) where status = 'pending'"
                ),
                format!(
                    "create index if not exists {scheduled} on {table} (part, due_at) where status = 'scheduled'"
                ),
                format!(
                    "create unique index if not exists {dedup} on {table} (dedup_key) where dedup_key is not null"
                ),
            ],
        }]
    }

    async fn migrate(pool: &SqlitePool, names: &Names) -> Result<i64> {
        let doing = "migrating the outbox tables";
        let schema = names.table("schema", '"');
        // `immediate`: the one writer from the start, so that nobody else migrates meanwhile.
        let mut tx = pool.begin_with("begin immediate").await.doing(doing)?;
        let sql = trusted(format!(
            "create table if not exists {schema} (version integer primary key, applied_at integer not null default ({NOW}))"
        ));
        sqlx::query(sql).execute(&mut *tx).await.doing(doing)?;
        let sql = trusted(format!("select coalesce(max(version), 0) from {schema}"));
        let found: i64 = sqlx::query_scalar(sql)
            .fetch_one(&mut *tx)
            .await
            .doing(doing)?;
        for step in migrate::missing(Self::migrations(names), found)? {
            for statement in step.statements {
                sqlx::query(trusted(statement))
                    .execute(&mut *tx)
                    .await
                    .doing(doing)?;
            }
            let sql = trusted(format!("insert into {schema} (version) values (?1)"));
            sqlx::query(sql)
                .bind(step.version)
                .execute(&mut *tx)
                .await
                .doing(doing)?;
        }
        tx.commit().await.doing(doing)?;
        Ok(found)
    }
}
