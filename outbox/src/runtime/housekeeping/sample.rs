//! Samples the database for gauges.                                                           (I/O)

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use crate::{
    outbox::{Outbox, error::Operation},
    runtime::meters::{Gauges, database_error},
    store::Database,
};

/// A sample takes milliseconds. After five seconds it is cancelled.
const SAMPLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets the gauges. An error is not logged, and leaves the gauges as they are.
pub(super) async fn sample<Db: Database>(outbox: Outbox<Db>, gauges: Arc<Gauges>) {
    match timeout(SAMPLE_TIMEOUT, outbox.operations().overview()).await {
        Ok(Ok(overview)) => gauges.set_overview(&overview),
        Ok(Err(_)) | Err(_) => database_error(Operation::Sample),
    }
}
