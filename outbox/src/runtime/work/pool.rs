//! The tasks that run invocations. Each takes one turn of a lane after the other from a queue; one
//! that has to wait in its handler is replaced, so that nothing waits behind it.
//!
//! A task per invocation would cost more than most handlers do.

use std::{
    collections::VecDeque,
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use hashbrown::HashMap;
use tokio::{
    runtime::Handle,
    sync::mpsc::UnboundedSender,
    task::{AbortHandle, yield_now},
    time::Instant,
};

use crate::runtime::{ownership::permit::StartPermit, work::attempt::HandlerAttempt};
use crate::{
    handler::Panicked,
    outbox,
    retry::{Decision, FailedBecause},
    runtime::{
        lane::{Turn, Work},
        meters::Durations,
    },
    store::{Database, Fence},
};

/// What came of an invocation.
pub(in crate::runtime) struct Finished {
    pub(in crate::runtime) work: Work,
    /// [`StartContext::number`].
    pub(in crate::runtime) number: u64,
    /// None if it was not begun.
    pub(in crate::runtime) decision: Option<Decision>,
}

/// Nobody has taken anything from the queue for this long: all are held up by handlers that do not
/// give their thread back.
const HELD_UP: Duration = Duration::from_millis(2);

/// No turn goes on for longer than this: others wait for its place.
const A_TURN: Duration = Duration::from_millis(1);

/// So many invocations in a row, then somebody else gets the thread.
const IN_A_ROW: u32 = 32;

/// What work was started under.
#[derive(Debug)]
pub(in crate::runtime) struct StartContext {
    /// Of each start another one.
    pub(in crate::runtime) number: u64,
    pub(in crate::runtime) fence: Arc<Fence>,
    pub(in crate::runtime) permit: StartPermit,
}

/// Dropped, everything is stopped.
pub(in crate::runtime) struct WorkerPool<Db: Database> {
    shared: Arc<Shared<Db>>,
    /// How many had been taken from the queue when it was last looked at, and since when.
    seen: (u64, Instant),
}

struct Shared<Db: Database> {
    inner: Arc<outbox::Shared<Db>>,
    finished: UnboundedSender<Finished>,
    /// As many can run at the same moment.
    enough: usize,
    durations: Durations,
    state: Mutex<State>,
}

/// Written by the dispatcher's loop and by members.
#[derive(Default)]
struct State {
    queue: VecDeque<(Turn, Arc<StartContext>)>,
    /// How many were taken from it.
    taken: u64,
    members: HashMap<u64, Member>,
    /// How many of them do not wait in a handler.
    ready: usize,
    next_id: u64,
}

/// One that was stopped is not among the members any more, and takes nothing.
struct Member {
    /// The partition of what it runs, or ran last.
    part: u16,
    /// In a handler that waits for something.
    waits: bool,
    task: AbortHandle,
}

impl<Db: Database> WorkerPool<Db> {
    pub(in crate::runtime) fn new(
        inner: Arc<outbox::Shared<Db>>,
        finished: UnboundedSender<Finished>,
    ) -> Self {
        let enough = Handle::try_current().map_or(1, |handle| handle.metrics().num_workers());
        Self {
            shared: Arc::new(Shared {
                durations: Durations::new(&inner.registry),
                inner,
                finished,
                enough: enough.max(1),
                state: Mutex::default(),
            }),
            seen: (0, Instant::now()),
        }
    }

    /// These are to be run.
    pub(in crate::runtime) fn start(&self, turns: Vec<Turn>, terms: &Arc<StartContext>) {
        let mut state = self.shared.state();
        let turns = turns.into_iter().map(|turn| (turn, Arc::clone(terms)));
        state.queue.extend(turns);
        self.shared.man(&mut state);
    }

    /// Nothing of these partitions is begun any more, and what runs is stopped where it waits next.
    pub(in crate::runtime) fn stop(&self, of: impl Fn(u16) -> bool) {
        let mut state = self.shared.state();
        state.queue.retain(|(turn, _)| !of(turn.first.part));
        let stopped = state.members.extract_if(|_, member| of(member.part));
        let stopped: Vec<Member> = stopped.map(|(_, member)| member).collect();
        for member in stopped {
            member.task.abort();
            state.ready -= usize::from(!member.waits);
        }
        self.shared.man(&mut state);
    }

    /// Adds members if all of them are held up. When to look again, if something is queued.
    pub(in crate::runtime) fn help(&mut self, now: Instant) -> Option<Instant> {
        let mut state = self.shared.state();
        if state.queue.is_empty() {
            return None;
        }
        if state.taken != self.seen.0 {
            self.seen = (state.taken, now);
        }
        if now.duration_since(self.seen.1) >= HELD_UP {
            self.seen.1 = now;
            let more = state.ready.max(1).min(state.queue.len());
            (0..more).for_each(|_| self.shared.hire(&mut state));
        }
        Some(self.seen.1 + HELD_UP)
    }
}

impl<Db: Database> Drop for WorkerPool<Db> {
    fn drop(&mut self) {
        self.stop(|_| true);
    }
}

impl<Db: Database> Shared<Db> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As many members as can run at once, if there is that much to do.
    fn man(self: &Arc<Self>, state: &mut State) {
        let wanted = self.enough.min(state.queue.len());
        while state.ready < wanted {
            self.hire(state);
        }
    }

    fn hire(self: &Arc<Self>, state: &mut State) {
        let id = state.next_id;
        state.next_id += 1;
        let task = tokio::spawn(Arc::clone(self).serve(id)).abort_handle();
        // It takes nothing before the state is let go.
        let member = Member {
            part: u16::MAX,
            waits: false,
            task,
        };
        state.members.insert(id, member);
        state.ready += 1;
    }

    /// Dropped where it waits in a handler, that invocation ends there.
    async fn serve(self: Arc<Self>, id: u64) {
        let (mut waited, mut in_a_row) = (false, 0);
        while let Some((Turn { first, then }, terms)) = self.next(id, waited) {
            let begun = Instant::now();
            let (mut next, mut then) = (Some(first), then.into_iter());
            waited = false;
            while let Some(work) = next {
                let decision = {
                    let mut invocation = pin!(self.invoke(&work, &terms));
                    poll_fn(|context| {
                        let polled = invocation.as_mut().poll(context);
                        if polled.is_pending() && !waited {
                            waited = true;
                            self.waits(id);
                        }
                        polled
                    })
                    .await
                };
                let is_done = decision.as_ref().is_some_and(Decision::is_completed);
                self.answer(work, &terms, decision);
                in_a_row += 1;
                if in_a_row == IN_A_ROW {
                    in_a_row = 0;
                    // Stopped here, what is left of the turn was not begun.
                    yield_now().await;
                }
                // Of one that is not done, the lane knows that nothing was begun behind it.
                next = then.next().filter(|_| is_done);
                let ends = |_: &mut Work| waited || begun.elapsed() > A_TURN || !self.goes_on(id);
                if let Some(work) = next.take_if(ends) {
                    self.answer(work, &terms, None);
                }
            }
        }
    }

    fn answer(&self, work: Work, terms: &StartContext, decision: Option<Decision>) {
        let number = terms.number;
        // The loop has ended if nobody takes it; the record is delivered again.
        let _ = self.finished.send(Finished {
            work,
            number,
            decision,
        });
    }

    /// Whether a member that has not waited may begin the next of its turn.
    fn goes_on(&self, id: u64) -> bool {
        let mut state = self.state();
        state.taken += 1;
        state.members.contains_key(&id)
    }

    /// What a member is to run next. None: it is not needed any more, or was stopped.
    fn next(&self, id: u64, waited: bool) -> Option<(Turn, Arc<StartContext>)> {
        let mut state = self.state();
        let state = &mut *state;
        let member = state.members.get_mut(&id)?;
        if waited {
            member.waits = false;
            state.ready += 1;
        }
        let needed = !waited || state.ready <= self.enough;
        match needed.then(|| state.queue.pop_front()).flatten() {
            Some(next) => {
                member.part = next.0.first.part;
                state.taken += 1;
                Some(next)
            }
            None => {
                state.members.remove(&id);
                state.ready -= 1;
                None
            }
        }
    }

    /// A member waits in its handler: another takes what is queued.
    fn waits(self: &Arc<Self>, id: u64) {
        let mut state = self.state();
        // It may have been stopped.
        if let Some(member) = state.members.get_mut(&id) {
            member.waits = true;
            state.ready -= 1;
            self.man(&mut state);
        }
    }

    async fn invoke(&self, work: &Work, terms: &StartContext) -> Option<Decision> {
        let handler = self
            .inner
            .registry
            .entries()
            .get(usize::from(work.handler))?;
        let attempt = HandlerAttempt {
            inner: &self.inner,
            handler,
            fence: &terms.fence,
            work,
            permit: Some(&terms.permit),
        };
        let begun = self.durations.begin();
        // What the handler does is caught inside; this is for what stands around it.
        let decision = AssertUnwindSafe(attempt.dispatch()).catch_unwind().await;
        if !matches!(decision, Ok(None)) {
            self.durations.took(work.handler, begun);
        }
        decision.unwrap_or_else(|panic| {
            let decision = Decision::Failed {
                error: Panicked::with(&*panic),
                because: FailedBecause::PolicyPanicked,
            };
            handler.decided(&work.record, work.attempt, &decision, &*self.inner.clock);
            Some(decision)
        })
    }
}
