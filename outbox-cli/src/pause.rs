//! `outbox pause` and `outbox resume`.

use outbox::{
    Database,
    operations::{Change, Operations},
};
use serde::Serialize;

use crate::{arguments::HandlerArguments, failure::Failure, output::Output, words::plain};

/// `{"handler": "charge-card", "paused": true, "dry_run": false, "changed": true}`. `paused` is as it
/// is after the change, or would be.
#[derive(Serialize)]
struct Shape<'a> {
    handler: &'a str,
    paused: bool,
    dry_run: bool,
    changed: bool,
}

pub(crate) async fn pause<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &HandlerArguments,
    output: Output,
) -> Result<(), Failure> {
    let HandlerArguments { handler, dry_run } = arguments;
    let name = plain(handler);
    let already = operations.paused().await?.contains(handler);
    if !*dry_run && operations.pause(handler).await? != Change::Applied {
        return Err(Failure::NotFound(format!(
            "no handler can have the id `{name}`"
        )));
    }
    let text = match (already, dry_run) {
        (true, _) => format!("{name} is paused already"),
        (false, true) => format!("would pause {name}; nothing was changed"),
        (false, false) => format!("{name} is paused: `outbox resume {name}` ends it"),
    };
    let shape = Shape {
        handler,
        paused: true,
        dry_run: *dry_run,
        changed: !already && !dry_run,
    };
    output.either(&shape, text)
}

pub(crate) async fn resume<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &HandlerArguments,
    output: Output,
) -> Result<(), Failure> {
    let HandlerArguments { handler, dry_run } = arguments;
    let name = plain(handler);
    let was_paused = match dry_run {
        true => operations.paused().await?.contains(handler),
        false => operations.resume(handler).await? == Change::Applied,
    };
    if !was_paused {
        let paused = operations.paused().await?;
        let others = match &*paused {
            [] => "no handler is".to_owned(),
            paused => format!("paused are {}", plain(&paused.join(", "))),
        };
        return Err(Failure::NotFound(format!(
            "the handler `{name}` is not paused: {others}"
        )));
    }
    let text = match dry_run {
        true => format!("would resume {name}; nothing was changed"),
        false => format!("{name} is resumed"),
    };
    let shape = Shape {
        handler,
        paused: false,
        dry_run: *dry_run,
        changed: !dry_run,
    };
    output.either(&shape, text)
}
