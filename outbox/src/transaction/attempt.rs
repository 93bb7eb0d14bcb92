//! One attempt: begin, closure, commit.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::sync::Mutex;

use super::{
    Cause, CommandError, Isolation, Reason, TxRetry,
    classify::{has_io, reason_in},
    command::{Codec, Command},
    error::ClosureError,
    session::{Session, Tx},
};
use crate::store::{CommandClaim, Database, Operator, TableNames};

/// How much longer than until the deadline a commit that has begun is waited for.
const COMMIT_GRACE: Duration = Duration::from_secs(5);

/// Ready when the caller gives up.
pub(crate) type Cancel = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What all attempts of a transaction have in common.
pub(crate) struct Plan<'a, Db: Database, T> {
    pub(crate) pool: &'a sqlx::Pool<Db>,
    pub(crate) names: &'a TableNames,
    pub(crate) operation: &'static str,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) read_only: bool,
    pub(crate) command: Option<(&'a Command, Codec<T>)>,
}

/// How far an attempt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// The database has answered.
    pub(crate) begun: bool,
    /// The command was not there: no earlier attempt was committed.
    pub(crate) claimed: bool,
}

/// Why an attempt came to nothing.
pub(crate) struct Failure<E> {
    pub(crate) cause: Cause<E>,
    /// Where it can be said without looking into the cause.
    pub(crate) known: Option<Reason>,
    /// Whether the database was committing.
    pub(crate) committing: bool,
    /// Whether its connection was not there any more when it was to be rolled back.
    pub(crate) lost: bool,
}

impl<E> Failure<E> {
    pub(crate) fn of(known: Reason) -> Self {
        Self {
            cause: Cause::Stopped,
            known: Some(known),
            committing: false,
            lost: false,
        }
    }

    fn command(error: CommandError) -> Self {
        Self {
            cause: Cause::Command(error),
            known: Some(Reason::Command),
            committing: false,
            lost: false,
        }
    }

    fn database(doing: &'static str, source: sqlx::Error) -> Self {
        Self {
            cause: Cause::Database { doing, source },
            known: None,
            committing: false,
            lost: false,
        }
    }

    /// What it means: the caller's word first, then the database's.
    pub(crate) fn reason<Db: Database, Kind>(&self, policy: &TxRetry) -> Reason
    where
        E: ClosureError<Kind>,
    {
        if let Some(known) = self.known {
            return known;
        }
        let error = match &self.cause {
            Cause::Closure(error) => error.as_error(),
            Cause::Database { source, .. } => source,
            _ => return Reason::Other,
        };
        let database = reason_in::<Db>(error).or_else(|| {
            // It may be the error of any connection, so both have to say it.
            (self.lost && has_io(error)).then_some(Reason::ConnectionLost)
        });
        if self.committing {
            let reason = database.unwrap_or(Reason::Other).during_commit();
            if reason == Reason::CommitUnknown {
                return reason;
            }
        }
        policy
            .own_reason(error)
            .or(database)
            .unwrap_or(Reason::Rejected)
    }
}

/// Stops what is running when the time is over or the caller gives up.
pub(crate) struct Limits<'a> {
    pub(crate) left: Option<Duration>,
    pub(crate) cancel: Option<&'a mut Cancel>,
}

impl Limits<'_> {
    pub(crate) async fn keep<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Reason> {
        let over = async {
            match self.left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        let cancelled = async {
            match self.cancel.as_mut() {
                Some(cancel) => cancel.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancelled => Err(Reason::Cancelled),
            done = future => Ok(done),
            () = over => Err(Reason::Deadline),
        }
    }
}

impl<Db: Database, T> Plan<'_, Db, T> {
    /// Begins, runs, commits. Whatever fails, it is rolled back before this returns.
    pub(crate) async fn attempt<E, Fut>(
        &self,
        attempt: u32,
        limits: Limits<'_>,
        closure: impl FnOnce(Tx<Db>) -> Fut,
        progress: &mut Progress,
    ) -> Result<T, Failure<E>>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        let mut limits = limits;
        let until = limits
            .left
            .map(|left| tokio::time::Instant::now() + left.min(crate::outbox::clock::YEAR));
        let slot = Arc::new(Mutex::new(Session::none()));
        let worked = {
            let work = self.work(attempt, &slot, closure, progress);
            match limits.keep(work).await {
                Ok(worked) => worked,
                Err(stopped) => Err(Failure::of(stopped)),
            }
        };
        // Somebody who still has it keeps it open: it is rolled back when it is dropped there.
        let Some(session) = Arc::into_inner(slot).map(Mutex::into_inner) else {
            return Err(match worked {
                Ok(_) => Failure {
                    cause: Cause::Kept,
                    known: Some(Reason::Other),
                    committing: false,
                    lost: false,
                },
                Err(failure) => failure,
            });
        };
        let result = match worked {
            Ok(Worked::Done(result)) => result,
            Ok(Worked::Before(result)) => {
                let _ = session.rollback().await;
                return Ok(result);
            }
            Err(mut failure) => {
                failure.lost = session.rollback().await == Some(Reason::ConnectionLost);
                return Err(failure);
            }
        };
        let commit = session.commit(self.read_only);
        let committed = match until {
            Some(until) => tokio::time::timeout_at(until + COMMIT_GRACE, commit).await,
            None => Ok(commit.await),
        };
        match committed {
            Ok(Ok(())) => Ok(result),
            Ok(Err(error)) => Err(Failure {
                committing: error.asked,
                ..Failure::database("committing", error.source)
            }),
            Err(_) => Err(Failure {
                cause: Cause::Unanswered,
                known: Some(Reason::CommitUnknown),
                committing: true,
                lost: true,
            }),
        }
    }

    async fn work<E, Fut>(
        &self,
        attempt: u32,
        slot: &Arc<Mutex<Session<Db>>>,
        closure: impl FnOnce(Tx<Db>) -> Fut,
        progress: &mut Progress,
    ) -> Result<Worked<T>, Failure<E>>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        let begun = Session::begin(self.pool, self.isolation, self.read_only).await;
        let session = begun.map_err(|source| Failure::database("beginning", source))?;
        progress.begun = true;
        // From here on whoever asked for the attempt rolls it back.
        *slot.lock().await = session;
        if let Some((command, codec)) = &self.command {
            let mut session = slot.lock().await;
            match self.claim(&mut session, command, codec).await? {
                Some(result) => return Ok(Worked::Before(result)),
                None => progress.claimed = true,
            }
        }
        let Some(tx) = Session::lend(slot, attempt) else {
            return Err(Failure::of(Reason::Other));
        };
        let result = closure(tx).await.map_err(|error| Failure {
            cause: Cause::Closure(error),
            known: None,
            committing: false,
            lost: false,
        })?;
        if let Some((command, codec)) = &self.command {
            let text = (codec.encode)(&result).map_err(|source| {
                let what = "the result";
                Failure::command(CommandError::Encode { what, source })
            })?;
            // Whoever has kept the transaction is found out afterwards.
            if let Ok(mut session) = slot.try_lock()
                && let Some(connection) = session.connection()
            {
                let key = command.key(self.operation);
                Operator::<Db>::new(connection, self.names)
                    .complete_command(key, &text)
                    .await
                    .map_err(|source| Failure::database("keeping the command's result", source))?;
            }
        }
        Ok(Worked::Done(result))
    }

    /// The result of the command if it was done before.
    async fn claim<E>(
        &self,
        session: &mut Session<Db>,
        command: &Command,
        codec: &Codec<T>,
    ) -> Result<Option<T>, Failure<E>> {
        let Some(connection) = session.connection() else {
            return Ok(None);
        };
        let key = command.key(self.operation);
        let print = command.fingerprint.as_deref();
        let claim = Operator::<Db>::new(connection, self.names)
            .claim_command(key, print)
            .await;
        match claim.map_err(|source| Failure::database("looking for the command", source))? {
            CommandClaim::New => Ok(None),
            CommandClaim::Done {
                fingerprint,
                result,
            } => {
                if !command.is(fingerprint.as_deref()) {
                    return Err(Failure::command(CommandError::DifferentRequest));
                }
                let text = result.as_deref().unwrap_or("null");
                (codec.decode)(text)
                    .map(Some)
                    .map_err(|error| Failure::command(CommandError::Decode(error)))
            }
        }
    }
}

/// What the part before the commit came to.
enum Worked<T> {
    Done(T),
    /// An earlier run of the command has done it.
    Before(T),
}
