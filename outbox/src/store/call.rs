//! [`Call`]: a statement with the values of its parameters, and how it runs.

use sqlx::{Connection as _, SqlSafeStr as _, Transaction, error::BoxDynError, query::Query};
use uuid::Uuid;

use super::{
    Dialect, Fence, LaneName, Lease, NewRecord, Page, SessionKey,
    columns::{FromCells, read_all},
    sql::{Parameter, Sql, Step},
    statements::SqlFileError,
};
use crate::record::Partition;

/// The value of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Param<'a> {
    Int(Option<i64>),
    Text(Option<&'a str>),
    /// A key or the id of a command. MySQL stores it as bytes, because its collations may treat two
    /// different texts as equal.
    Key(Option<&'a str>),
    Uuid(Uuid),
    Flag(bool),
    Partition(Partition),
    Session(Option<SessionKey>),
    // Lists and rows: arrays or JSON.
    Ids(&'a [i64]),
    Partitions(&'a [Partition]),
    Texts(&'a [&'a str]),
    Leases(&'a [Lease]),
    Lanes(&'a [LaneName]),
    Pages(&'a [Page]),
    Records(&'a [NewRecord]),
}

macro_rules! param_from {
    ($($Type:ty => $variant:expr,)*) => {$(
        impl<'a> From<$Type> for Param<'a> {
            fn from(value: $Type) -> Self {
                $variant(value)
            }
        }
    )*};
}
param_from! {
    i64 => |value| Param::Int(Some(value)),
    Option<i64> => Param::Int,
    &'a str => |value| Param::Text(Some(value)),
    Option<&'a str> => Param::Text,
    Uuid => Param::Uuid,
    bool => Param::Flag,
    Option<SessionKey> => Param::Session,
    &'a [i64] => Param::Ids,
    &'a [Partition] => Param::Partitions,
    &'a [&'a str] => Param::Texts,
    &'a [Lease] => Param::Leases,
    &'a [LaneName] => Param::Lanes,
    &'a [Page] => Param::Pages,
    &'a [NewRecord] => Param::Records,
}

impl<'a> Param<'a> {
    /// The number of elements or rows.
    fn len(self) -> usize {
        match self {
            Self::Ids(list) => list.len(),
            Self::Partitions(list) => list.len(),
            Self::Texts(list) => list.len(),
            Self::Lanes(rows) => rows.len(),
            Self::Pages(rows) => rows.len(),
            _ => 0,
        }
    }

    /// One element of a list, or the value of a column in one row.
    fn element(self, column: &str, at: usize) -> Option<Self> {
        Some(match (self, column) {
            (Self::Ids(list), "each") => (*list.get(at)?).into(),
            (Self::Partitions(list), "each") => Self::Partition(*list.get(at)?),
            (Self::Texts(list), "each") => (*list.get(at)?).into(),
            (Self::Lanes(_), "place") => Self::Int(i64::try_from(at).ok()),
            (Self::Lanes(rows), "part") => Self::Partition(rows.get(at)?.partition),
            (Self::Lanes(rows), "key") => Self::Key(Some(&rows.get(at)?.key)),
            (Self::Lanes(rows), "handler") => (&*rows.get(at)?.handler).into(),
            (Self::Pages(rows), "part") => Self::Partition(rows.get(at)?.partition),
            (Self::Pages(rows), "after") => rows.get(at)?.after.into(),
            _ => return None,
        })
    }

    /// A list or rows as JSON, for databases without arrays.
    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    pub(super) fn as_json(self) -> Result<String, BoxDynError> {
        Ok(match self {
            Self::Ids(list) => serde_json::to_string(list),
            Self::Partitions(list) => serde_json::to_string(list),
            Self::Texts(list) => serde_json::to_string(list),
            Self::Leases(rows) => serde_json::to_string(rows),
            Self::Lanes(rows) => serde_json::to_string(rows),
            Self::Pages(rows) => serde_json::to_string(rows),
            Self::Records(rows) => serde_json::to_string(rows),
            _ => return Err("not a list".into()),
        }?)
    }
}

/// A statement with the values of its parameters. The statement uses the values that its text names.
/// It ignores a value that only the statements of other databases name.
#[derive(Debug)]
pub(super) struct Call<'a> {
    sql: &'a Sql,
    values: Vec<(&'static str, Param<'a>)>,
}

impl Sql {
    pub(super) fn call(&self) -> Call<'_> {
        Call {
            sql: self,
            values: Vec::new(),
        }
    }

    pub(super) fn bind<'a>(&'a self, name: &'static str, value: impl Into<Param<'a>>) -> Call<'a> {
        self.call().bind(name, value)
    }

    /// Binds the fence: the statement changes rows only if this owner still has these leases.
    pub(super) fn bind_fence<'a>(&'a self, fence: &'a Fence) -> Call<'a> {
        self.bind("owner", fence.owner)
            .bind("leases", &*fence.leases)
    }
}

impl<'a> Call<'a> {
    pub(super) fn bind(mut self, name: &'static str, value: impl Into<Param<'a>>) -> Self {
        self.values.push((name, value.into()));
        self
    }

    fn value(&self, name: &str) -> Option<Param<'a>> {
        let mut values = self.values.iter();
        values.find(|(known, _)| *known == name).map(|(_, v)| *v)
    }

    fn query<Db: Dialect>(
        &self,
        step: &Step,
    ) -> Result<Query<'static, Db, Db::Arguments>, sqlx::Error> {
        let rendered = step.rendered(|rows| self.value(rows).map_or(0, Param::len));
        let mut arguments = Db::Arguments::default();
        for parameter in &*rendered.parameters {
            let added = self.add::<Db>(&mut arguments, parameter);
            added.map_err(sqlx::Error::Encode)?;
        }
        Ok(sqlx::query_with(rendered.text, arguments))
    }

    fn add<Db: Dialect>(
        &self,
        arguments: &mut Db::Arguments,
        parameter: &Parameter,
    ) -> Result<(), BoxDynError> {
        let missing = || SqlFileError::NoValue(parameter.name.clone());
        let value = self.value(&parameter.name).ok_or_else(missing)?;
        match (parameter.column.as_deref(), parameter.row) {
            (Some(column), Some(row)) => {
                let element = value.element(column, row).ok_or_else(missing)?;
                Db::add_argument(arguments, element)
            }
            (Some(column), None) => Db::add_column(arguments, value, column),
            (None, _) => Db::add_argument(arguments, value),
        }
    }
}

/// Begins a transaction with this statement. Dropping it before the commit rolls it back.
pub(super) async fn begin<'c, Db: Dialect>(
    connection: &'c mut Db::Connection,
    statement: &'static str,
) -> Result<Transaction<'c, Db>, sqlx::Error> {
    connection.begin_with(statement.into_sql_str()).await
}

/// Runs the steps of a statement. Returns how many rows the last step changed.
pub(super) async fn execute<Db: Dialect>(
    connection: &mut Db::Connection,
    call: Call<'_>,
) -> Result<u64, sqlx::Error> {
    if !call.sql.is_transaction {
        return run_steps::<Db>(connection, &call).await;
    }
    let mut tx = begin::<Db>(connection, Db::WORDS.begin_leases).await?;
    let changed = run_steps::<Db>(&mut tx, &call).await?;
    tx.commit().await?;
    Ok(changed)
}

async fn run_steps<Db: Dialect>(
    connection: &mut Db::Connection,
    call: &Call<'_>,
) -> Result<u64, sqlx::Error> {
    let mut changed = 0;
    for step in &call.sql.steps {
        changed = Db::execute_query(connection, call.query(step)?).await?;
        if changed == 0 {
            break;
        }
    }
    Ok(changed)
}

/// Runs a statement of one step and returns its rows.
pub(super) async fn rows<Db: Dialect>(
    connection: &mut Db::Connection,
    call: Call<'_>,
) -> Result<Vec<Db::Row>, sqlx::Error> {
    match call.sql.steps.first() {
        Some(step) => Db::fetch_rows(connection, call.query(step)?).await,
        None => Ok(Vec::new()),
    }
}

/// Runs a statement of one step and decodes its rows.
pub(super) async fn read<Db: Dialect, T: FromCells>(
    connection: &mut Db::Connection,
    call: Call<'_>,
) -> Result<Vec<T>, sqlx::Error> {
    read_all(&rows::<Db>(connection, call).await?)
}
