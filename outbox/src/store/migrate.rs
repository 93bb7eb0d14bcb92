//! Steps from nothing to the newest schema.

use sqlx::Pool;

use super::{TableNames, statements::SqlFile};
use crate::outbox::{Error, Result};

/// One step. Each statement does nothing when it was done before, so that a step that broke off
/// can be made again.
#[derive(Debug, Clone)]
pub struct Migration {
    pub(crate) version: i64,
    pub(crate) statements: Vec<String>,
}

impl Migration {
    pub(super) fn of_file(
        version: i64,
        file: &'static str,
        names: &TableNames,
        quote: char,
    ) -> Self {
        Self {
            version,
            statements: SqlFile::read(file, names, quote).texts(),
        }
    }
}

/// The statements that create the tables.
pub trait SchemaSql: sqlx::Database {
    /// Every step from nothing to the newest schema, in order.
    fn migrations(names: &TableNames) -> Vec<Migration>;

    /// Applies the steps that are missing, one process at a time. The version that was found.
    fn migrate(pool: &Pool<Self>, names: &TableNames) -> impl Future<Output = Result<i64>> + Send;
}

/// The steps that are missing.
pub(super) fn missing(steps: Vec<Migration>, found: i64) -> Result<Vec<Migration>> {
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
