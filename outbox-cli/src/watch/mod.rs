//! `outbox watch`: the same as `status`, again and again.

mod frame;
mod reading;
mod screen;

use std::time::Duration;

use outbox::{Database, operations::Operations};

use crate::{arguments::WatchArguments, failure::Failure, interrupt::Ending, output::Output};
use frame::frame;
use reading::{History, Reading};
use screen::{Key, Screen};

/// Where a frame goes that is not on a screen.
const WIDE: usize = 120;

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &WatchArguments,
    output: Output,
) -> Result<(), Failure> {
    // What is wrong from the beginning is no view.
    let first = Reading::take(operations).await?;
    let interval = arguments.interval.max(Duration::from_millis(50));
    if output.is_interactive() {
        return on_screen(operations, first, interval, arguments.count).await;
    }
    let mut stopped = Ending::listen()?;
    let mut history = History::default();
    let mut reading = first;
    for n in 1.. {
        let now = history.add(reading);
        if output.is_json() {
            output.object(&now.shape())?;
        } else {
            let lines = frame(&now, &history, WIDE, usize::MAX);
            output.line(format_args!("{}\n", lines.join("\n")))?;
        }
        if arguments.count.is_some_and(|count| n >= count) {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = stopped.came() => break,
        }
        reading = Reading::take(operations).await?;
    }
    Ok(())
}

async fn on_screen<Db: Database>(
    operations: Operations<'_, Db>,
    first: Reading,
    interval: Duration,
    count: Option<u64>,
) -> Result<(), Failure> {
    let mut stopped = Ending::listen()?;
    let mut history = History::default();
    // Dropped, whatever happens, it leaves the terminal as it was.
    let mut screen = Screen::enter()?;
    let mut now = history.add(first);
    let mut trouble: Option<Failure> = None;
    let mut shown = 0;
    loop {
        let (width, height) = screen.size();
        let mut lines = frame(&now, &history, width, height.saturating_sub(1));
        lines.resize(height.saturating_sub(1), String::new());
        let last = match &trouble {
            Some(failure) => failure.line(),
            None => "q ends it".to_owned(),
        };
        lines.push(crate::words::short(&last, width.saturating_sub(1)));
        screen.draw(&lines)?;
        shown += 1;
        if count.is_some_and(|count| shown >= count) {
            return Ok(());
        }
        let ends = tokio::select! {
            () = tokio::time::sleep(interval) => false,
            () = stopped.came() => true,
            key = screen.key() => key == Key::End,
        };
        if ends {
            return Ok(());
        }
        // A server that is away for a while is part of what is to be seen.
        match Reading::take(operations).await {
            Ok(reading) => {
                now = history.add(reading);
                trouble = None;
            }
            Err(failure) => trouble = Some(failure),
        }
    }
}
