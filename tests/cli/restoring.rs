//! `outbox show ID --json` exports a record, and `outbox restore` puts it back.

use std::process::Stdio;

use outbox_tests::on_each_database;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::{
    program::{ProgramOutput, TIMEOUT, command, is_documented, outbox},
    rows::{deliver, everything, execute, in_seconds, publish},
};

/// A file with this text. The folder is below `target`, so `cargo clean` removes it.
fn file(text: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let name = format!("{}.json", uuid::Uuid::now_v7().simple());
    let path = program.parent().unwrap().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

macro_rules! delete_all {
    ($db:ident) => {
        execute!(
            $db,
            ["delivery", "failure", "record"].map(|table| format!("delete from outbox_{table}"))
        )
    };
}

on_each_database! {
    async fn an_exported_record_is_put_back(db) {
        publish(&db, &["a", "b"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        execute!(db, [format!(
            "insert into outbox_failure (record_id, handler, attempt, failed_at, kind, fingerprint, error) \
            values (1, 'charge-card', 3, {}, 'error', 'declined', 'card declined')", in_seconds(&db, -1)
        )]);
        let mut exported = String::new();
        for id in [1, 2] {
            exported.push_str(&outbox(&db.url(), &format!("show {id} --json")).await.succeeds());
        }
        let before = everything!(db);
        let path = file(&exported);
        let line = outbox(&db.url(), &format!("restore {path}")).await.fails_with(1);
        assert!(line.contains("record 1 exists already"), "{line}");

        // If one of them exists, none is restored.
        execute!(db, ["delete from outbox_delivery".to_owned(), "delete from outbox_record where id = 1".to_owned()]);
        let line = outbox(&db.url(), &format!("restore {path}")).await.fails_with(1);
        assert!(line.contains("record 2 exists already"), "{line}");
        assert_eq!(database::number(&db.pool, "select count(*) from outbox_record").await, 1);

        delete_all!(db);
        let text = outbox(&db.url(), &format!("restore {path} --dry-run")).await.succeeds();
        assert_eq!(text, "would restore record 1 of order.created, split, with 1 delivery; nothing was changed\n\
            would restore record 2 of order.created, pending, with 0 deliveries; nothing was changed\n");
        assert!(everything!(db).is_empty());
        let restored = outbox(&db.url(), &format!("restore {path} --json")).await.objects();
        assert_eq!(restored[0], json!({
            "record_id": 1, "event": "order.created", "status": "split", "deliveries": 1, "dry_run": false, "changed": true
        }));
        is_documented("restore", &restored[0]).await;
        assert_eq!(everything!(db), before);
        let mut again = String::new();
        for id in [1, 2] {
            again.push_str(&outbox(&db.url(), &format!("show {id} --json")).await.succeeds());
        }
        assert_eq!(again, exported);
    }

    async fn a_blocking_record_is_restored_unblocked_while_a_dispatcher_runs(db) {
        publish(&db, &["a"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        let exported = outbox(&db.url(), "show 1 --json").await.succeeds();
        delete_all!(db);
        execute!(db, [format!("update outbox_lease set owner = {}, expires_at = {}", database::ID, in_seconds(&db, 60))]);
        let path = file(&exported);
        let line = outbox(&db.url(), &format!("restore {path}")).await.fails_with(1);
        assert!(line.contains("a dispatcher owns that lane") && line.contains("restored 0 records before"), "{line}");
        assert!(everything!(db).is_empty());

        // The file comes from the standard input.
        let mut child = command(&db.url()).args(["restore", "-", "--unblocked"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(exported.as_bytes()).await.unwrap();
        drop(stdin);
        let ended = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await.unwrap().unwrap();
        assert_eq!(ProgramOutput::from(ended).succeeds(), "restored record 1 of order.created, split, with 1 delivery\n");
        let blocking = database::number(&db.pool, "select count(*) from outbox_delivery where blocking").await;
        assert_eq!(blocking, 0);
    }
}

#[tokio::test]
async fn a_file_that_is_no_export_is_refused() {
    let db = outbox_tests::database::sqlite::fresh().await;
    publish(&db, &["a"]).await;
    let exported = outbox(&db.url(), "show 1 --json").await.succeeds();
    for (text, expected) in [
        (String::new(), "has no record"),
        (
            "not JSON".to_owned(),
            "is no output of `outbox show ID --json`",
        ),
        ("{}".to_owned(), "missing field `record_id`"),
        (
            exported.replace("\"version\"", "\"edition\""),
            "unknown field `edition`",
        ),
        (
            exported
                .replace("\"pending\"", "\"split\"")
                .replace("\"record_id\":1", "\"record_id\":7"),
            "record 7 cannot be restored: it is split and has no unfinished delivery",
        ),
    ] {
        let line = outbox(&db.url(), &format!("restore {}", file(&text)))
            .await
            .fails_with(1);
        assert!(line.contains(expected), "{line}");
    }
    let line = outbox(&db.url(), "restore /nowhere/at/all.json")
        .await
        .fails_with(4);
    assert!(
        line.contains("cannot read `/nowhere/at/all.json`"),
        "{line}"
    );
}
