//! Steps from nothing to the newest schema.

use sqlx::{Pool, SqlSafeStr as _};

use super::{
    Dialect, Statements, TableNames,
    call::{execute, read},
    statements::SqlFile,
    trusted,
};
use crate::outbox::{
    Error, Result,
    error::{DbContext as _, Operation},
};

/// One step. Each statement does nothing when it was done before, so that a step that broke off
/// can be made again.
#[derive(Debug, Clone)]
pub struct Migration {
    pub(crate) version: i64,
    pub(crate) statements: Vec<String>,
}

/// The statements that create the tables.
pub trait SchemaSql: Dialect {
    /// Every step from nothing to the newest schema, in order.
    fn migrations(names: &TableNames) -> Vec<Migration> {
        let files = (1..).zip(Self::WORDS.schema);
        let steps = files.map(|(version, file)| Migration {
            version,
            statements: SqlFile::read::<Self>(file, names).texts(),
        });
        steps.collect()
    }

    /// Applies the steps that are missing, one process at a time. The version that was found.
    fn migrate(pool: &Pool<Self>, names: &TableNames) -> impl Future<Output = Result<i64>> + Send {
        async move {
            let sql = Self::statements(names).map_err(sqlx::Error::from);
            let sql = sql.during(Operation::Migrate)?;
            // One transaction: its lock ends with it, also when this future is dropped.
            let tx = pool.begin_with(Self::BEGIN.into_sql_str()).await;
            let mut tx = tx.during(Operation::Migrate)?;
            let tables = names.to_string();
            let lock = execute::<Self>(&mut tx, sql.lock_migration.bind("tables", &*tables));
            lock.await.during(Operation::Migrate)?;
            let found = apply_missing::<Self>(&mut tx, &sql, names).await?;
            tx.commit().await.during(Operation::Migrate)?;
            Ok(found)
        }
    }
}

/// Applies the steps that are missing while no other process does. The version that was found.
pub(super) async fn apply_missing<Db: SchemaSql>(
    connection: &mut Db::Connection,
    sql: &Statements,
    names: &TableNames,
) -> Result<i64> {
    let found = found_version::<Db>(connection, sql, names);
    let found = found.await.during(Operation::Migrate)?;
    for step in missing(Db::migrations(names), found)? {
        let applied = apply::<Db>(connection, sql, step).await;
        applied.during(Operation::Migrate)?;
    }
    Ok(found)
}

async fn found_version<Db: Dialect>(
    connection: &mut Db::Connection,
    sql: &Statements,
    names: &TableNames,
) -> Result<i64, sqlx::Error> {
    if names.has_schema() {
        execute::<Db>(connection, sql.create_schema.call()).await?;
    }
    execute::<Db>(connection, sql.create_versions.call()).await?;
    let versions = read::<Db, i64>(connection, sql.newest_version.call()).await?;
    Ok(versions.first().copied().unwrap_or(0))
}

async fn apply<Db: Dialect>(
    connection: &mut Db::Connection,
    sql: &Statements,
    step: Migration,
) -> Result<(), sqlx::Error> {
    for statement in step.statements {
        Db::execute_query(connection, sqlx::query(trusted(statement))).await?;
    }
    let add = sql.add_version.bind("version", step.version);
    execute::<Db>(connection, add).await.map(drop)
}

/// The steps that are missing.
fn missing(steps: Vec<Migration>, found: i64) -> Result<Vec<Migration>> {
    let known = steps.iter().map(|step| step.version).max().unwrap_or(0);
    if found > known {
        return Err(Error::NewerSchema { found, known });
    }
    Ok(steps
        .into_iter()
        .filter(|step| step.version > found)
        .collect())
}

/// All steps as text, for those who migrate by hand.
pub(crate) fn printed(steps: &[Migration]) -> String {
    let mut text = String::new();
    for step in steps {
        text.push_str(&format!("-- outbox schema version {}\n", step.version));
        for statement in &step.statements {
            text.push_str(statement);
            text.push_str(";\n\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<Migration> {
        [1, 2, 3]
            .map(|version| Migration {
                version,
                statements: vec![format!("step {version}")],
            })
            .to_vec()
    }

    #[test]
    fn only_later_steps_are_missing() {
        let versions = |found| {
            let missing = missing(steps(), found).unwrap();
            missing.iter().map(|step| step.version).collect::<Vec<_>>()
        };
        assert_eq!(versions(0), [1, 2, 3]);
        assert_eq!(versions(2), [3]);
        assert!(versions(3).is_empty());
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let error = missing(steps(), 4).unwrap_err();
        assert!(
            matches!(error, Error::NewerSchema { found: 4, known: 3 }),
            "{error}"
        );
    }
}
