//! `outbox prune`.

use outbox::{Database, operations::Operations};
use serde::Serialize;

use crate::{
    arguments::PruneArguments,
    failure::Failure,
    interrupt::Interrupt,
    many::Changed,
    output::Output,
    progress::Progress,
    words::{counted, span},
};

/// `{"dry_run": true, "would_delete": 7, "oldest_record_id": 1, "newest_record_id": 9}`.
#[derive(Serialize)]
struct Preview {
    dry_run: bool,
    would_delete: u64,
    oldest_record_id: Option<i64>,
    newest_record_id: Option<i64>,
}

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &PruneArguments,
    output: Output,
) -> Result<(), Failure> {
    let age = arguments.older_than;
    let mut pruning = operations.pruning(age);
    let interrupt = Interrupt::listen();
    if arguments.dry_run {
        let (mut all, mut oldest, mut newest) = (0, None, None);
        while let Some(ids) = pruning.skip().await? {
            if interrupt.came() {
                return Err(Failure::Interrupted("interrupted".to_owned()));
            }
            all += u64::try_from(ids.len()).unwrap_or(u64::MAX);
            oldest = oldest.or(ids.first().copied());
            newest = ids.last().copied().or(newest);
        }
        let which = oldest.zip(newest);
        let which = which.map(|(oldest, newest)| format!(", ids {oldest} to {newest}"));
        let text = format!(
            "would delete {} finished more than {} ago{}; nothing was changed",
            counted(all, "record"),
            span(age),
            which.unwrap_or_default()
        );
        let preview = Preview {
            dry_run: true,
            would_delete: all,
            oldest_record_id: oldest,
            newest_record_id: newest,
        };
        return output.either(&preview, text);
    }

    let mut progress = Progress::new("deleted", None);
    let mut changed = 0;
    let interrupted = loop {
        if interrupt.came() {
            break true;
        }
        match pruning.next().await {
            Ok(Some(more)) => changed += more,
            Ok(None) => break false,
            Err(error) => {
                progress.end();
                let done = format!(
                    "deleted {} before that; the same command goes on with the rest",
                    counted(changed, "record")
                );
                return Err(Failure::After(done, Box::new(error.into())));
            }
        }
        progress.show(changed);
    };
    progress.end();
    let text = format!("deleted {}", counted(changed, "record"));
    output.either(
        &Changed {
            changed,
            interrupted,
        },
        &text,
    )?;
    match interrupted {
        false => Ok(()),
        true => Err(Failure::Interrupted(format!(
            "interrupted: {text}; the same command goes on with the rest"
        ))),
    }
}
