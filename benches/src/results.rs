//! [`Results`]: all figures of a run, and the scenarios that failed.

use std::{fmt, panic::AssertUnwindSafe};

use futures_util::FutureExt as _;

use crate::{database::Kind, verdict::Verdict};

#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) failures: Vec<Failure>,
    /// The version of each database that was measured.
    pub(crate) versions: Vec<(Kind, String)>,
    /// The index in `verdicts` at which the figures of the last scenario start.
    last: usize,
}

/// A scenario that ended with an error or a panic.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) scenario: &'static str,
    pub(crate) db: Option<Kind>,
    pub(crate) error: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.db {
            Some(kind) => write!(f, "{} on {}: {}", self.scenario, kind.name(), self.error),
            None => write!(f, "{}: {}", self.scenario, self.error),
        }
    }
}

impl Results {
    /// Runs a scenario. Its error or panic is kept and printed, so that the next scenario can run.
    pub(crate) async fn add(
        &mut self,
        scenario: &'static str,
        db: Option<Kind>,
        measured: impl Future<Output = anyhow::Result<(Vec<Verdict>, String)>>,
    ) {
        self.last = self.verdicts.len();
        let error = match AssertUnwindSafe(measured).catch_unwind().await {
            Ok(Ok((verdicts, version))) => {
                self.verdicts.extend(verdicts);
                if let Some(kind) = db
                    && self.versions.iter().all(|(known, _)| *known != kind)
                {
                    self.versions.push((kind, version));
                }
                return;
            }
            Ok(Err(error)) => format!("{error:#}"),
            // The panic's own message was printed when it happened.
            Err(_) => "the scenario panicked".to_owned(),
        };
        let failure = Failure {
            scenario,
            db,
            error,
        };
        eprintln!("failed: {failure}");
        self.failures.push(failure);
    }

    /// The figures of the last scenario; none if it failed.
    pub(crate) fn last_added(&mut self) -> &mut [Verdict] {
        self.verdicts.get_mut(self.last..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(scenario: &str) -> anyhow::Result<(Vec<Verdict>, String)> {
        let pair = (1.0, 1.0);
        let verdict = Verdict::more_is_better(scenario, Some(Kind::Sqlite), "x", pair, None);
        Ok((vec![verdict], "SQLite 3".to_owned()))
    }

    #[tokio::test]
    async fn a_scenario_that_fails_or_panics_does_not_stop_the_others() {
        let mut results = Results::default();
        let db = Some(Kind::Sqlite);
        results.add("drain", db, async { figure("drain") }).await;
        let error = async { Err(anyhow::anyhow!("no disk").context("cannot write")) };
        results.add("growth", db, error).await;
        assert!(results.last_added().is_empty());
        results
            .add("peers", db, async { panic!("on purpose") })
            .await;
        results.add("idle", db, async { figure("idle") }).await;
        assert_eq!(results.last_added()[0].scenario, "idle");

        let names = results.verdicts.iter().map(|verdict| &verdict.scenario);
        assert_eq!(names.collect::<Vec<_>>(), ["drain", "idle"]);
        let failures: Vec<String> = results.failures.iter().map(Failure::to_string).collect();
        assert_eq!(
            failures,
            [
                "growth on sqlite: cannot write: no disk",
                "peers on sqlite: the scenario panicked"
            ]
        );
        assert_eq!(results.versions, [(Kind::Sqlite, "SQLite 3".to_owned())]);
    }
}
