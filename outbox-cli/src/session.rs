//! [`Session`]: what a command works with. Each file of `commands` adds its command to it.

use outbox::{Database, operations};

use crate::output::Output;

/// The tables and the output of one command.
#[derive(Debug)]
pub(crate) struct Session<'a, Db: Database> {
    pub(crate) tables: &'a operations::Tables<Db>,
    pub(crate) operations: operations::Operations<'a, Db>,
    pub(crate) output: Output,
}
