//! The handlers of the tests about the time after the last attempt, on a running dispatcher.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use outbox::{
    Config, Database, HandlerError, Metadata, Outbox, OutboxBuilder, OutboxEvent, Registry, State,
    outbox_handler, retryable,
};
use serde::{Deserialize, Serialize};
use sqlx::Pool;

/// `how` decides how its handler ends.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "ending", key = how)]
pub(crate) struct Ending {
    pub(crate) how: String,
}

/// Like [`Ending`], for the handlers with a fallback.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "caught", key = how, validate = is_valid)]
pub(crate) struct Caught {
    pub(crate) how: String,
}

fn is_valid(event: &Caught) -> Result<(), std::fmt::Error> {
    if event.how == "invalid" {
        return Err(std::fmt::Error);
    }
    Ok(())
}

/// What ran, in order.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn sorted(&self) -> Vec<String> {
        let mut all = self.all();
        all.sort();
        all
    }
}

#[outbox_handler(id = "plain")]
#[retryable(max_retries = 1, fixed("5ms"))]
pub(crate) async fn plain(event: Ending, State(notes): State<Notes>) -> Result<(), HandlerError> {
    match &*event.how {
        "succeeds" => {
            notes.add("handled");
            Ok(())
        }
        "permanent" => Err(HandlerError::permanent("never")),
        how => Err(how.to_owned().into()),
    }
}

/// Two invocations, and then the fallback.
#[outbox_handler(id = "caught", fallback = rescue)]
#[retryable(max_retries = 1, fixed("5ms"))]
async fn caught(
    event: Caught,
    meta: &Metadata,
    State(notes): State<Notes>,
) -> Result<(), HandlerError> {
    notes.add(format!("{} attempt {}", event.how, meta.attempt()));
    if event.how == "slow" {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        return Err(HandlerError::permanent("too slow"));
    }
    Err("no".into())
}

async fn rescue(
    event: Caught,
    State(notes): State<Notes>,
    State(thief): State<Thief>,
) -> Result<(), HandlerError> {
    notes.add(format!("{} fallback", event.how));
    thief.take_leases_once().await;
    if event.how == "lost" {
        return Err("no rescue".into());
    }
    Ok(())
}

/// Takes all leases away, as a crash before the write does: the database refuses the result of the attempt,
/// and the record is delivered again.
#[derive(Clone)]
pub(crate) struct Thief {
    pub(crate) has_stolen: Arc<AtomicBool>,
    pub(crate) steal: Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>,
}

impl Thief {
    /// Never takes anything.
    pub(crate) fn honest() -> Self {
        Self {
            has_stolen: Arc::new(AtomicBool::new(true)),
            steal: Arc::new(|| Box::pin(async {})),
        }
    }

    pub(crate) async fn take_leases_once(&self) {
        if !self.has_stolen.swap(true, Ordering::SeqCst) {
            (self.steal)().await;
        }
    }
}

/// A thief on the database of a test.
macro_rules! thief {
    ($db:ident, $database:ident) => {{
        let pool = $db.pool.clone();
        $crate::scene::Thief {
            has_stolen: std::sync::Arc::default(),
            steal: std::sync::Arc::new(move || {
                let pool = pool.clone();
                Box::pin(async move {
                    $database::execute(&pool, "update outbox_lease set epoch = epoch + 1").await;
                })
            }),
        }
    }};
}

pub(crate) fn builder<Db: Database>(
    pool: &Pool<Db>,
    notes: &Notes,
    thief: Thief,
) -> OutboxBuilder<Db> {
    let mut config = Config::default();
    config.poll_interval = Duration::from_millis(200);
    let registry = Registry::builder().handler::<plain>().handler::<caught>();
    Outbox::builder(pool.clone())
        .registry(registry)
        .state(notes.clone())
        .state(thief)
        .config(config)
}

pub(crate) async fn publish<Db: Database, E: OutboxEvent>(outbox: &Outbox<Db>, events: &[E]) {
    let mut tx = outbox.pool().begin().await.unwrap();
    outbox.publish_all(&mut tx, events).await.unwrap();
    tx.commit().await.unwrap();
}

pub(crate) fn ending(how: &str) -> Ending {
    let how = how.to_owned();
    Ending { how }
}

pub(crate) fn to_catch(how: &str) -> Caught {
    let how = how.to_owned();
    Caught { how }
}

/// Waits until `holds` returns `true`; panics after 30 seconds.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(30), async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited 30 s for {what}");
}

pub(crate) const FAILED: &str = "select count(*) from outbox_delivery where status = 'failed'";
pub(crate) const OPEN: &str = "select count(*) from outbox_record where status = 'pending'";
pub(crate) const COMPLETED: &str = "select count(*) from outbox_record where status = 'completed'";

pub(crate) use thief;
