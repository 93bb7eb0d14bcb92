//! How each fault is injected, and how it ends later.

use std::time::Duration;

use anyhow::Context as _;
use rand::RngExt as _;
use tokio::time::Instant;

use crate::{
    database::Tested,
    faults::{FaultKind, Faults},
    fleet::State,
    history::{self, Fact, Fault, Nanos},
    server::Kind,
    signal::Signal,
};

/// A worker reconnects within 2 seconds after it lost a connection, and may need another second
/// until it works again. Until then it may not have written its results.
const RECONNECT_TIME: Nanos = 3_000_000_000;

/// The second half of a fault: the end of its effect.
#[derive(Debug)]
pub(crate) enum FollowUp {
    Resume {
        pid: u32,
        from: Nanos,
        /// The frozen worker held the only write lock, so no other worker could write.
        holds_lock: bool,
    },
    Spawn {
        name: String,
    },
}

impl Faults<'_> {
    /// Injects a fault of this kind. Returns its description, or `None` if it had no effect.
    pub(crate) async fn inject_kind<Db: Tested>(
        &mut self,
        kind: FaultKind,
        victim: Option<usize>,
    ) -> anyhow::Result<Option<String>> {
        let from = history::now();
        match kind {
            FaultKind::Join => return self.fleet.join(self.server).await.map(Some),
            FaultKind::Restart => return self.restart::<Db>().await.map(Some),
            _ => {}
        }
        let at = victim.context("no running worker")?;
        let worker = self.fleet.workers.get_mut(at).context("a worker")?;
        let (name, pid) = (worker.name.clone(), worker.pid);
        let how = match kind {
            FaultKind::Kill => {
                self.fleet.kill(at).await?;
                let pause = self.millis(0, 3000);
                let spawn = FollowUp::Spawn { name: name.clone() };
                self.follow_ups.push((Instant::now() + pause, spawn));
                self.note(kind, Some(pid), from, history::now());
                format!("back in {pause:?}")
            }
            FaultKind::Freeze => {
                worker.signal(Signal::Stop).await?;
                worker.state = State::Frozen;
                let stopped = Instant::now();
                let pause = self.lease + self.millis(1000, 3000);
                let holds_lock =
                    Db::KIND == Kind::Sqlite && !can_write::<Db>(&self.server.url(None)).await;
                let resume = FollowUp::Resume {
                    pid,
                    from,
                    holds_lock,
                };
                self.follow_ups.push((stopped + pause, resume));
                let lock = if holds_lock {
                    ", with the write lock"
                } else {
                    ""
                };
                format!("for {pause:?}{lock}")
            }
            FaultKind::Terminate => {
                let ports = worker
                    .proxy
                    .as_ref()
                    .map(|proxy| proxy.ports())
                    .unwrap_or_default();
                let only_one = self.random.random_bool(0.5);
                let url = self.server.url(None);
                let terminating = terminate::<Db>(
                    &url,
                    |port| u16::try_from(port).is_ok_and(|port| ports.contains(&port)),
                    only_one,
                );
                let ended = terminating.await;
                self.note(kind, Some(pid), from, history::now() + RECONNECT_TIME);
                match ended? {
                    0 => return Ok(None),
                    count => format!("{count} connections"),
                }
            }
            FaultKind::Cut => {
                let refused = Duration::from_millis(self.random.random_range(0..=2000));
                worker.proxy.as_ref().context("a proxy")?.cut(refused);
                let until = history::now() + nanos(refused) + RECONNECT_TIME;
                self.note(kind, Some(pid), from, until);
                format!("refused for {refused:?}")
            }
            FaultKind::Leave => {
                worker.signal(Signal::Terminate).await?;
                worker.state = State::Leaving;
                String::new()
            }
            FaultKind::Clock => {
                let hours = self.random.random_range(1..=48);
                let seconds = if self.random.random_bool(0.5) {
                    hours
                } else {
                    -hours
                } * 3600;
                let new = worker.offset.with_extension("new");
                std::fs::write(&new, seconds.to_string())?;
                std::fs::rename(&new, &worker.offset)?;
                format!("{seconds:+} s")
            }
            FaultKind::Join | FaultKind::Restart => String::new(),
        };
        Ok(Some(format!("{name} ({pid}) {how}")))
    }

    async fn restart<Db: Tested>(&mut self) -> anyhow::Result<String> {
        let (from, started) = (history::now(), Instant::now());
        self.server.crash().await?;
        self.server.run().await?;
        let url = self.server.url(None);
        // The server accepts TCP connections before it has recovered.
        while Db::connect(&url).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.note(
            FaultKind::Restart,
            None,
            from,
            history::now() + RECONNECT_TIME,
        );
        Ok(format!("took {:?}", started.elapsed()))
    }

    /// Ends the earlier faults that are due.
    pub(crate) async fn follow_up(
        &mut self,
        is_due: impl Fn(Instant) -> bool,
    ) -> anyhow::Result<()> {
        let (due, follow_ups) = std::mem::take(&mut self.follow_ups)
            .into_iter()
            .partition(|(at, _)| is_due(*at));
        self.follow_ups = follow_ups;
        let due: Vec<_> = due;
        for (_, follow_up) in due {
            match follow_up {
                FollowUp::Spawn { name } => self.fleet.spawn(self.server, name).await?,
                FollowUp::Resume {
                    pid,
                    from,
                    holds_lock,
                } => {
                    let worker = self.fleet.find(pid).context("the frozen worker")?;
                    worker.state = State::Running;
                    worker.signal(Signal::Continue).await?;
                    eprintln!("resumed   {} ({pid})", worker.name);
                    let victim = (!holds_lock).then_some(pid);
                    self.note(FaultKind::Freeze, victim, from, history::now());
                }
            }
        }
        Ok(())
    }

    fn note(&self, kind: FaultKind, pid: Option<u32>, from: Nanos, until: Nanos) {
        self.history.write(&Fact::Fault(Fault {
            kind: kind.name().to_owned(),
            pid,
            from,
            until,
        }));
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

/// Whether the only write lock is free within the time that writers wait for it.
async fn can_write<Db: Tested>(url: &str) -> bool {
    let Ok(mut connection) = Db::connect(url).await else {
        return false;
    };
    let begin = Db::execute(&mut connection, "begin immediate".to_owned()).await;
    begin.is_ok()
        && Db::execute(&mut connection, "rollback".to_owned())
            .await
            .is_ok()
}

/// Ends the sessions whose client port `is_theirs` accepts. Returns their number.
async fn terminate<Db: Tested>(
    url: &str,
    is_theirs: impl Fn(i64) -> bool,
    only_one: bool,
) -> anyhow::Result<usize> {
    let mut connection = Db::connect(url).await?;
    let sessions = Db::sessions(&mut connection).await?;
    let mut theirs: Vec<i64> = sessions
        .into_iter()
        .filter(|(_, port)| is_theirs(*port))
        .map(|(id, _)| id)
        .collect();
    if only_one {
        theirs.truncate(1);
    }
    for id in &theirs {
        // The session may have ended already.
        let _ = Db::execute(&mut connection, Db::terminate(*id)).await;
    }
    Ok(theirs.len())
}
