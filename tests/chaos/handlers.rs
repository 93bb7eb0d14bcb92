//! What a worker does with an event: writes down when it begins and how it ends, and in between
//! sleeps, fails and panics as the event's mood says.

use std::sync::Arc;

use outbox::{HandlerError, Metadata, Registry, RegistryBuilder, State, Tx, outbox_handler};
use sqlx::{MySql, Postgres, Sqlite};
use tokio::time::sleep;

use crate::{
    database::Tested,
    events::{Mood, Plain, Transactional},
    history::{self, End, Fact, Handler, History, Visit},
    server::Kind,
};

/// Writes down what the handlers of this process do.
#[derive(Debug, Clone)]
pub(crate) struct Witness(Arc<(String, History)>);

impl Witness {
    pub(crate) fn new(worker: String, history: History) -> Self {
        Self(Arc::new((worker, history)))
    }

    fn sees(&self, handler: Handler, key: String, number: i64, event: i64, attempt: u32) -> Seen {
        let visit = Visit {
            at: history::now(),
            worker: self.0.0.clone(),
            pid: std::process::id(),
            handler,
            key,
            number,
            event,
            attempt,
        };
        self.0.1.write(&Fact::Start(visit.clone()));
        Seen {
            witness: self.clone(),
            visit: Some(visit),
        }
    }
}

/// An invocation that has begun. Dropped before its end, that is written too.
struct Seen {
    witness: Witness,
    visit: Option<Visit>,
}

impl Seen {
    fn end(&mut self, end: End) {
        if let Some(mut visit) = self.visit.take() {
            visit.at = history::now();
            self.witness.0.1.write(&Fact::End { visit, end });
        }
    }

    /// Sleeps, and fails or panics if that is the mood.
    #[expect(clippy::panic, reason = "handlers that panic are part of the chaos")]
    async fn act(&mut self, mood: Mood) -> Result<(), HandlerError> {
        sleep(mood.sleep).await;
        if mood.panics {
            std::panic::panic_any("as planned");
        }
        if mood.fails {
            self.end(End::Failed);
            return Err("as planned".into());
        }
        Ok(())
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.end(End::Dropped);
    }
}

#[outbox_handler(id = "plain")]
async fn plain(
    event: Plain,
    meta: &Metadata,
    State(witness): State<Witness>,
) -> Result<(), HandlerError> {
    let attempt = meta.attempt();
    let mood = Mood::of(event.event, attempt);
    let mut seen = witness.sees(
        Handler::Plain,
        event.key,
        event.number,
        event.event,
        attempt,
    );
    seen.act(mood).await?;
    seen.end(End::Ok);
    Ok(())
}

macro_rules! transactional {
    ($($name:ident on $Db:ty, slow by 1 / $slow:literal;)*) => {$(
        /// Its end is written before its transaction commits: only the row tells that it did.
        #[outbox_handler(id = "tx")]
        async fn $name(
            event: Transactional,
            meta: &Metadata,
            State(witness): State<Witness>,
            mut tx: Tx<'_, $Db>,
        ) -> Result<(), HandlerError> {
            let attempt = meta.attempt();
            let mut mood = Mood::of(event.event, attempt);
            mood.sleep /= $slow;
            let Transactional { key, number, event } = event;
            let sql = format!(
                "insert into chaos_effect (event, name, number) values ({event}, '{key}', {number})"
            );
            let mut seen = witness.sees(Handler::Tx, key, number, event, attempt);
            <$Db as Tested>::execute(&mut tx, sql).await.inspect_err(|_| seen.end(End::Failed))?;
            seen.act(mood).await?;
            seen.end(End::Ok);
            Ok(())
        }
    )*};
}

transactional! {
    tx_on_postgres on Postgres, slow by 1 / 1;
    tx_on_mysql on MySql, slow by 1 / 1;
    // Holds the only write lock there is.
    tx_on_sqlite on Sqlite, slow by 1 / 20;
}

/// The handlers of a worker on this database.
pub(crate) fn handlers(kind: Kind) -> RegistryBuilder {
    let plain = Registry::builder().handler::<plain>();
    match kind {
        Kind::Postgres => plain.handler::<tx_on_postgres>(),
        Kind::Mysql => plain.handler::<tx_on_mysql>(),
        Kind::Sqlite => plain.handler::<tx_on_sqlite>(),
    }
}

/// Those that are planned are not worth a line.
pub(crate) fn quiet_panics() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&"as planned") {
            loud(info);
        }
    }));
}
