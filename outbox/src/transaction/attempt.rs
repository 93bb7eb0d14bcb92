//! One attempt of a transaction: begin, run the closure, commit.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Mutex, time::Instant};

use super::{
    Cause, CommandError, Reason, Step, Tx, command,
    failure::Failure,
    limits::{self, Limit},
    run::Run,
    session::Session,
};
use crate::store::{CommandClaim, Database, Operator};

/// How long after the limit of the attempt a sent commit is waited for. To stop waiting earlier would leave its
/// outcome unknown.
const COMMIT_GRACE: Duration = Duration::from_secs(5);

/// How much earlier than the timer a database may end its own wait for the limit: databases count whole
/// milliseconds, and the timer rounds up.
const TIMER_SLACK: Duration = Duration::from_millis(2);

/// How far an attempt got. Written by the attempt, read by `Run` afterwards.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) reached: Reached,
    /// What the table of commands says. `None` without a command, and before it was read.
    pub(super) command: Option<Found>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    #[default]
    Nothing,
    /// The pool gave a connection.
    Connection,
    /// The transaction began, so the database was reachable.
    Transaction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The command is new, so no earlier attempt was committed.
    Nothing,
    /// The result of an earlier call; the closure did not run.
    Result,
}

/// The result of the work before the commit.
enum Work<T> {
    /// The closure ran; its transaction is to be committed.
    Done(T),
    /// An earlier run of the command stored this result; the closure did not run.
    DoneBefore(T),
}

impl<Db: Database, T, E> Run<'_, Db, T, E> {
    /// Begins, runs the closure and commits. If anything fails, it has rolled back when it returns.
    pub(super) async fn attempt<Fut>(
        &self,
        number: u32,
        left: Option<Duration>,
        cancel: &mut Option<limits::Cancel>,
        closure: impl FnOnce(Tx<'static, Db>) -> Fut,
        progress: &mut Progress,
    ) -> Result<T, Failure<E>>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        let start = Instant::now();
        let limit = Limit::of_attempt(left, self.settings.policy.attempt_timeout);
        let slot = Arc::new(Mutex::new(Session::none()));
        let work = self.work(number, limit, &slot, closure, progress);
        let ended = limits::within_limits(work, limit, cancel).await;
        // A `Tx` that the closure kept holds the slot. The session rolls back when it is dropped.
        let returned = Arc::into_inner(slot).map(Mutex::into_inner);
        let is_kept = returned.is_none();
        let session = returned.unwrap_or_else(Session::none);
        let result = match ended {
            Ok(Ok(Work::Done(_))) if is_kept => {
                return Err(Failure::new(Cause::Kept, Reason::Other));
            }
            Ok(Ok(Work::Done(result))) => result,
            Ok(Ok(Work::DoneBefore(result))) => {
                session.rollback().await;
                return Ok(result);
            }
            Ok(Err(cause)) => {
                let is_lost = session.rollback().await == Some(Reason::ConnectionLost);
                let failure = self.classify(cause, is_lost);
                let waited = limit.filter(|limit| start.elapsed() + TIMER_SLACK >= limit.after);
                return Err(match waited {
                    // `begin` waited for its lock until the limit, and answered before the timer.
                    Some(limit)
                        if Db::BEGIN_WAITS
                            && progress.reached == Reached::Connection
                            && failure.reason == Reason::Busy =>
                    {
                        Failure::new(Cause::Stopped, limit.reason)
                    }
                    _ => failure,
                });
            }
            Err(Reason::AttemptTimeout) if progress.reached == Reached::Nothing => {
                return Err(Failure::new(Cause::Stopped, Reason::PoolTimeout));
            }
            Err(stopped) => {
                session.stop().await;
                return Err(Failure::new(Cause::Stopped, stopped));
            }
        };
        let commit = session.commit(self.settings.is_read_only);
        let limit = limit.map(|limit| Limit {
            after: (limit.after.saturating_add(COMMIT_GRACE)).saturating_sub(start.elapsed()),
            ..limit
        });
        match limits::within_limits(commit, limit, &mut None).await {
            Ok(Ok(())) => Ok(result),
            Ok(Err(error)) => Err(self.classify_commit(error)),
            Err(_) => Err(Failure::new(Cause::Unanswered, Reason::CommitUnknown)),
        }
    }

    /// Everything before the commit. The session is in `slot`, so that the caller can roll it back
    /// when this future is dropped.
    async fn work<Fut>(
        &self,
        number: u32,
        limit: Option<Limit>,
        slot: &Arc<Mutex<Session<Db>>>,
        closure: impl FnOnce(Tx<'static, Db>) -> Fut,
        progress: &mut Progress,
    ) -> Result<Work<T>, Cause<E>>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        let (pool, settings) = (&self.transactions.pool, self.settings);
        let limit = limit.map(|limit| limit.after);
        let session = Session::begin(pool, settings, limit, &mut progress.reached).await;
        *slot.lock().await = session.map_err(Cause::at(Step::Begin))?;
        progress.reached = Reached::Transaction;
        let mut tx = Session::lend(slot, number).ok_or(Cause::Kept)?;
        if let Some((command, codec)) = &self.command {
            if let Some(result) = self.stored_result(&mut tx, command, codec).await? {
                progress.command = Some(Found::Result);
                return Ok(Work::DoneBefore(result));
            }
            progress.command = Some(Found::Nothing);
        }
        let result = closure(tx).await.map_err(Cause::Closure)?;
        if let Some((command, codec)) = &self.command {
            let text = (codec.encode)(&result).map_err(CommandError::EncodeResult);
            let text = text.map_err(Cause::Command)?;
            // `attempt` reports a closure that kept its `Tx`.
            if let Some(mut tx) = Session::lend(slot, number) {
                let key = command.key(settings.operation);
                Operator::<Db>::new(&mut tx, &self.transactions.names)
                    .complete_command(key, &text)
                    .await
                    .map_err(Cause::at(Step::StoreResult))?;
            }
        }
        Ok(Work::Done(result))
    }

    /// The stored result of the command. `None` if the command is new; then it belongs to this
    /// transaction, and others with the same id wait for its end.
    async fn stored_result(
        &self,
        tx: &mut Tx<'static, Db>,
        command: &command::Command,
        codec: &command::Codec<T>,
    ) -> Result<Option<T>, Cause<E>> {
        let key = command.key(self.settings.operation);
        let fingerprint = command.fingerprint.as_deref();
        let claim = Operator::<Db>::new(tx, &self.transactions.names)
            .claim_command(key, fingerprint)
            .await
            .map_err(Cause::at(Step::ClaimCommand))?;
        match claim {
            CommandClaim::New => Ok(None),
            CommandClaim::Done { fingerprint, .. } if !command.matches(fingerprint.as_deref()) => {
                Err(Cause::Command(CommandError::DifferentRequest))
            }
            CommandClaim::Done { result, .. } => {
                let decoded = (codec.decode)(result.as_deref().unwrap_or("null")).map(Some);
                decoded.map_err(|error| Cause::Command(CommandError::DecodeResult(error)))
            }
        }
    }
}
