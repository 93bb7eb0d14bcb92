//! The handlers of a worker. They write the start and the end of each invocation to the history.
//! In between they sleep, fail or panic, as the event's [`Behaviour`] says.

use std::sync::Arc;

use outbox::{HandlerError, Metadata, Registry, RegistryBuilder, State, Tx, outbox_handler};
use sqlx::{MySql, Postgres, Sqlite};
use tokio::time::sleep;

use crate::{
    database::Tested,
    events::{Behaviour, Plain, Transactional},
    history::{self, End, Fact, Handler, History, Invocation},
    server::Kind,
};

/// Writes the invocations of this process to the history.
#[derive(Debug, Clone)]
pub(crate) struct Recorder(Arc<(String, History)>);

impl Recorder {
    pub(crate) fn new(worker: String, history: History) -> Self {
        Self(Arc::new((worker, history)))
    }

    fn start(
        &self,
        handler: Handler,
        key: String,
        number: i64,
        event: i64,
        attempt: u32,
    ) -> Recording {
        let invocation = Invocation {
            at: history::now(),
            worker: self.0.0.clone(),
            pid: std::process::id(),
            handler,
            key,
            number,
            event,
            attempt,
        };
        self.0.1.write(&Fact::Start(invocation.clone()));
        Recording {
            recorder: self.clone(),
            invocation: Some(invocation),
        }
    }
}

/// An invocation that has started. If it is dropped before its end, the history says so.
struct Recording {
    recorder: Recorder,
    invocation: Option<Invocation>,
}

impl Recording {
    fn end(&mut self, end: End) {
        if let Some(mut invocation) = self.invocation.take() {
            invocation.at = history::now();
            self.recorder.0.1.write(&Fact::End { invocation, end });
        }
    }

    /// Sleeps, fails and panics as the behaviour says.
    #[expect(clippy::panic, reason = "handlers that panic are part of the chaos")]
    async fn act(&mut self, behaviour: Behaviour) -> Result<(), HandlerError> {
        sleep(behaviour.sleep).await;
        if behaviour.panics {
            std::panic::panic_any("as planned");
        }
        if behaviour.fails {
            self.end(End::Failed);
            return Err("as planned".into());
        }
        Ok(())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.end(End::Dropped);
    }
}

#[outbox_handler(id = "plain")]
async fn plain(
    event: Plain,
    meta: &Metadata,
    State(recorder): State<Recorder>,
) -> Result<(), HandlerError> {
    let attempt = meta.attempt();
    let behaviour = Behaviour::of(event.event, attempt);
    let mut recording = recorder.start(
        Handler::Plain,
        event.key,
        event.number,
        event.event,
        attempt,
    );
    recording.act(behaviour).await?;
    recording.end(End::Ok);
    Ok(())
}

macro_rules! transactional {
    ($($name:ident on $Db:ty, sleeps 1 / $divisor:literal;)*) => {$(
        /// The handler writes its end before its transaction commits. Only the row in the table
                /// shows that the transaction committed.
        #[outbox_handler(id = "tx")]
        async fn $name(
            event: Transactional,
            meta: &Metadata,
            State(recorder): State<Recorder>,
            mut tx: Tx<'_, $Db>,
        ) -> Result<(), HandlerError> {
            let attempt = meta.attempt();
            let mut behaviour = Behaviour::of(event.event, attempt);
            behaviour.sleep /= $divisor;
            let Transactional { key, number, event } = event;
            let sql = format!(
                "insert into chaos_effect (event, name, number) values ({event}, '{key}', {number})"
            );
            let mut recording = recorder.start(Handler::Tx, key, number, event, attempt);
            <$Db as Tested>::execute(&mut tx, sql).await.inspect_err(|_| recording.end(End::Failed))?;
            recording.act(behaviour).await?;
            recording.end(End::Ok);
            Ok(())
        }
    )*};
}

transactional! {
    tx_on_postgres on Postgres, sleeps 1 / 1;
    tx_on_mysql on MySql, sleeps 1 / 1;
    // In SQLite the transaction holds the only write lock, so the handler sleeps less.
    tx_on_sqlite on Sqlite, sleeps 1 / 20;
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

/// Prints no message for panics that are planned.
pub(crate) fn quiet_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&"as planned") {
            print(info);
        }
    }));
}
