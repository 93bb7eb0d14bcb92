//! How each fault is done, and what has to be done about it later.

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

/// After a lost connection a worker tries again within two seconds, and may need another to be
/// itself again. Until then what it did may not be written.
const RECONNECTED: Nanos = 3_000_000_000;

/// What is left to do of a fault.
#[derive(Debug)]
pub(crate) enum Later {
    Resume {
        pid: u32,
        from: Nanos,
        /// Nobody else could write meanwhile.
        alone: bool,
    },
    Spawn {
        name: String,
    },
}

impl Faults<'_> {
    /// What was done; none if it could not be.
    pub(crate) async fn make<Db: Tested>(
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
        let at = victim.context("nobody to do it to")?;
        let worker = self.fleet.workers.get_mut(at).context("a worker")?;
        let (name, pid) = (worker.name.clone(), worker.pid);
        let how = match kind {
            FaultKind::Kill => {
                self.fleet.kill(at).await?;
                let pause = self.millis(0, 3000);
                let spawn = Later::Spawn { name: name.clone() };
                self.later.push((Instant::now() + pause, spawn));
                self.note(kind, Some(pid), from, history::now());
                format!("back in {pause:?}")
            }
            FaultKind::Freeze => {
                worker.signal(Signal::Stop).await?;
                worker.state = State::Frozen;
                let stopped = Instant::now();
                let pause = self.lease + self.millis(1000, 3000);
                let alone =
                    Db::KIND == Kind::Sqlite && !can_write::<Db>(&self.server.url(None)).await;
                let resume = Later::Resume { pid, from, alone };
                self.later.push((stopped + pause, resume));
                let lock = if alone { ", with the write lock" } else { "" };
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
                let ended = terminate::<Db>(
                    &url,
                    |port| u16::try_from(port).is_ok_and(|port| ports.contains(&port)),
                    only_one,
                );
                let ended = ended.await;
                self.note(kind, Some(pid), from, history::now() + RECONNECTED);
                match ended? {
                    0 => return Ok(None),
                    ended => format!("{ended} connections"),
                }
            }
            FaultKind::Cut => {
                let refused = self.random.random_range(0..=2000);
                let refused = Duration::from_millis(refused);
                worker.proxy.as_ref().context("a proxy")?.cut(refused);
                let until = history::now() + nanos(refused) + RECONNECTED;
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
        let (from, began) = (history::now(), Instant::now());
        self.server.crash().await?;
        self.server.run().await?;
        let url = self.server.url(None);
        // It listens before it has recovered.
        while Db::connect(&url).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.note(FaultKind::Restart, None, from, history::now() + RECONNECTED);
        Ok(format!("took {:?}", began.elapsed()))
    }

    /// What is left to do of earlier faults.
    pub(crate) async fn follow_up(
        &mut self,
        is_due: impl Fn(Instant) -> bool,
    ) -> anyhow::Result<()> {
        let (due, later) = std::mem::take(&mut self.later)
            .into_iter()
            .partition(|(at, _)| is_due(*at));
        self.later = later;
        let due: Vec<_> = due;
        for (_, later) in due {
            match later {
                Later::Spawn { name } => self.fleet.spawn(self.server, name).await?,
                Later::Resume { pid, from, alone } => {
                    let worker = self.fleet.find(pid).context("the frozen worker")?;
                    worker.state = State::Running;
                    worker.signal(Signal::Continue).await?;
                    eprintln!("resumed   {} ({pid})", worker.name);
                    let victim = (!alone).then_some(pid);
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

/// Whether the only write lock there is can be had, within the time that writers wait for it.
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

/// Ends the sessions that come from these ports. How many there were.
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
        // It may have ended by itself.
        let _ = Db::execute(&mut connection, Db::terminate(*id)).await;
    }
    Ok(theirs.len())
}
