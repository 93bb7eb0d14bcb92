//! Gauges of the database.                                                                    (I/O)

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use crate::{
    outbox::{Outbox, error::Operation},
    runtime::meters::{Gauges, database_error},
    store::Database,
};

/// A sample takes milliseconds. One that takes five seconds is given up.
const SAMPLE_TIMEOUT: Duration = Duration::from_secs(5);

/// After an error the gauges stay as they are; the dispatcher logs errors of its own statements.
pub(super) async fn sample<Db: Database>(outbox: Outbox<Db>, gauges: Arc<Gauges>) {
    match timeout(SAMPLE_TIMEOUT, outbox.operations().overview()).await {
        Ok(Ok(overview)) => gauges.set_overview(&overview),
        Ok(Err(_)) | Err(_) => database_error(Operation::Sample),
    }
}
