//! `outbox watch`: the status again and again, with rates.

mod frame;
mod rates;
mod screen;

use std::time::{Duration, Instant};

use clap::Args;
use outbox::{Database, operations};
use serde::Serialize;

use crate::{failure::Result, interrupt::Interrupt, session::Session, snapshot::Snapshot};
use frame::frame;
use rates::Rates;
use screen::{Key, Screen};

pub(crate) const JSON: &str = "\
JSON, one object per interval: pending, scheduled, unhandled, waiting, retrying, failed, completed, discarded, exact,
oldest_pending_seconds, errors, lanes and paused (as in `outbox status`); published_per_second and handled_per_second (null in
the first object); instances (as in `outbox instances`).";

/// Width of the text without a terminal, in characters.
const WIDTH: usize = 120;

#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    /// The time between two updates
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration)]
    interval: Duration,
    /// Quit after this many updates
    #[arg(long)]
    count: Option<u64>,
}

#[derive(Serialize)]
struct WatchJson<'a> {
    #[serde(flatten)]
    snapshot: &'a Snapshot,
    published_per_second: Option<f64>,
    handled_per_second: Option<f64>,
    instances: &'a [operations::Instance],
}

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn watch(&self, arguments: &WatchArguments) -> Result {
        let precision = operations::Precision::Estimated;
        // The first error ends the command before it takes the screen.
        let mut snapshot = self.snapshot(precision).await?;
        let mut rates = Rates::default();
        rates.add(&snapshot, Instant::now());
        let mut interrupt = Interrupt::listen(|| {})?;
        let is_interactive = self.output.is_interactive();
        let screen = is_interactive.then(Screen::enter).transpose()?;
        let mut last_line = None;
        let interval = arguments.interval.max(Duration::from_millis(50));
        for shown in 1.. {
            if let Some(screen) = &screen {
                let bottom = last_line.as_deref().unwrap_or("press q to quit");
                screen.draw(&snapshot, &rates, bottom)?;
            } else {
                let lines = frame(&snapshot, &rates, WIDTH, usize::MAX);
                let object = WatchJson {
                    snapshot: &snapshot,
                    published_per_second: rates.published,
                    handled_per_second: rates.handled,
                    instances: &snapshot.instances,
                };
                let text = format_args!("{}\n", lines.join("\n"));
                self.output.print(&object, text)?;
            }
            if arguments.count.is_some_and(|count| shown >= count) {
                break;
            }
            let quits = tokio::select! {
                () = tokio::time::sleep(interval) => false,
                () = interrupt.wait() => true,
                key = next_key(screen.as_ref()) => key == Key::Quit,
            };
            if quits {
                break;
            }
            match self.snapshot(precision).await {
                Ok(next) => {
                    snapshot = next;
                    rates.add(&snapshot, Instant::now());
                    last_line = None;
                }
                // A screen shows the error until the database answers again.
                Err(failure) if screen.is_some() => last_line = Some(failure.line),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }
}

/// Waits forever without a screen.
async fn next_key(screen: Option<&Screen>) -> Key {
    match screen {
        Some(screen) => screen.next_key().await,
        None => std::future::pending().await,
    }
}
