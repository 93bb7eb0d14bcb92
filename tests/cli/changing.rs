//! What is changed, and that `--dry-run` changes nothing.

use outbox_tests::on_each_database;
use serde_json::json;

use crate::{
    program::{is_documented, outbox},
    rows::{deliver, everything, execute, in_seconds, publish},
};

/// The status of each, in order.
macro_rules! deliveries {
    ($db:ident) => {
        database::texts(&$db.pool, "select status from outbox_delivery order by id").await
    };
}

on_each_database! {
    async fn a_dry_run_says_how_many_and_which_and_changes_nothing(db) {
        publish(&db, &["a", "b", "c", "d"]).await;
        execute!(db, deliver(&db, "id <= 3", "charge-card", "failed", true));
        execute!(db, [format!(
            "update outbox_record set status = 'completed', completed_at = {} where id = 4", in_seconds(&db, -7200)
        )]);
        database::pause(&db.pool, "send-mail").await;
        let before = everything!(db);
        for (arguments, says) in [
            ("replay --all", "would replay 3 deliveries; nothing was changed"),
            ("replay --key b", "would replay 1 delivery; nothing was changed"),
            ("replay 2", "would replay record 2 for charge-card; nothing was changed"),
            ("discard --handler charge-card --limit 1", ".. and 2 more"),
            ("discard 3 --handler charge-card", "would discard record 3 for charge-card"),
            ("pause charge-card", "would pause charge-card; nothing was changed"),
            ("resume send-mail", "would resume send-mail; nothing was changed"),
            ("prune --older-than 1h", "would delete 1 record finished more than 1h ago, ids 4 to 4"),
            ("migrate", "the outbox tables are up to date"),
        ] {
            let text = outbox(&db.url(), &format!("{arguments} --dry-run")).await.well();
            assert!(text.contains(says), "{arguments}: {text}");
            let object = outbox(&db.url(), &format!("{arguments} --dry-run --json")).await.object();
            assert_eq!(object["dry_run"], json!(true), "{arguments}");
            is_documented(arguments.split(' ').next().unwrap(), &object).await;
        }
        assert_eq!(everything!(db), before);
        let preview = outbox(&db.url(), "replay --all --dry-run --json --limit 2").await.object();
        let which: Vec<_> = preview["items"].as_array().unwrap().iter().map(|item| &item["record_id"]).collect();
        assert_eq!((&preview["would_change"], which), (&json!(3), vec![&json!(1), &json!(2)]));
    }

    async fn what_a_filter_selects_is_replayed(db) {
        publish(&db, &["a", "b", "c"]).await;
        execute!(db, deliver(&db, "true", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id = 3", "send-mail", "failed", false));
        assert_eq!(outbox(&db.url(), "replay --handler charge-card --key b").await.well(), "replayed 1 delivery\n");
        assert_eq!(deliveries!(db), ["failed", "retrying", "failed", "failed"]);
        let done = outbox(&db.url(), "replay --handler charge-card --json --batch-size 1").await.object();
        assert_eq!(done, json!({ "changed": 2, "interrupted": false }));
        is_documented("replay", &done).await;
        assert_eq!(deliveries!(db), ["retrying", "retrying", "retrying", "failed"]);
        assert_eq!(outbox(&db.url(), "replay --handler charge-card").await.well(), "replayed 0 deliveries\n");
        assert_eq!(outbox(&db.url(), "replay --all").await.well(), "replayed 1 delivery\n");
        assert_eq!(database::number(&db.pool, "select count(*) from outbox_delivery where attempt = 5").await, 4);
    }

    async fn one_record_is_replayed_or_it_says_why_not(db) {
        publish(&db, &["a", "b", "c"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id = 1", "send-mail", "failed", true));
        execute!(db, deliver(&db, "id = 2", "charge-card", "waiting", true));
        assert_eq!(outbox(&db.url(), "replay 1 --handler send-mail").await.well(), "replayed record 1 for send-mail\n");
        assert_eq!(deliveries!(db), ["failed", "retrying", "waiting"]);
        let object = outbox(&db.url(), "replay 1 --json").await.object();
        assert_eq!(object, json!({ "record_id": 1, "handlers": ["charge-card", "send-mail"], "dry_run": false, "changed": true }));
        for dry_run in ["", " --dry-run"] {
            for (arguments, code, says) in [
                ("replay 2", 1, "record 2 is split and cannot be replayed"),
                ("replay 2 --handler charge-card", 1, "is waiting"),
                ("replay 3", 1, "is pending"),
                ("replay 1 --handler nobody", 4, "record 1 has no delivery for nobody"),
                ("replay 77", 4, "record 77 does not exist"),
            ] {
                let line = outbox(&db.url(), &format!("{arguments}{dry_run}")).await.badly(code);
                assert!(line.contains(says), "{arguments}: {line}");
            }
        }
    }

    async fn what_is_discarded_is_given_up_and_its_lane_goes_on(db) {
        publish(&db, &["a", "a", "b", "c"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id = 2", "charge-card", "waiting", true));
        execute!(db, deliver(&db, "id = 3", "charge-card", "failed", true));
        assert_eq!(outbox(&db.url(), "discard 1").await.well(), "discarded record 1 for charge-card\n");
        assert_eq!(deliveries!(db), ["discarded", "retrying", "failed"]);
        assert_eq!(outbox(&db.url(), "discard --error declined").await.well(), "discarded 1 delivery\n");
        assert_eq!(outbox(&db.url(), "discard --status pending --key c").await.well(), "discarded 1 record\n");
        let records = database::texts(&db.pool, "select status from outbox_record order by id").await;
        assert_eq!(records, ["discarded", "split", "discarded", "discarded"]);
        assert!(outbox(&db.url(), "discard 1").await.badly(1).contains("is discarded"));
    }

    async fn a_handler_is_paused_until_it_is_resumed(db) {
        let paused = |object: serde_json::Value| (object["paused"].clone(), object["changed"].clone());
        let paused_now = async || database::texts(&db.pool, "select handler from outbox_pause").await;
        assert_eq!(paused(outbox(&db.url(), "pause charge-card --json").await.object()), (json!(true), json!(true)));
        assert_eq!(paused_now().await, ["charge-card"]);
        assert_eq!(paused(outbox(&db.url(), "pause charge-card --json").await.object()), (json!(true), json!(false)));
        assert_eq!(outbox(&db.url(), "resume charge-card").await.well(), "resumed charge-card\n");
        assert!(paused_now().await.is_empty());
        for dry_run in ["", " --dry-run"] {
            let line = outbox(&db.url(), &format!("resume charge-card{dry_run}")).await.badly(4);
            assert!(line.contains("is not paused; no handler is paused"), "{line}");
        }
    }

    async fn pruning_deletes_what_was_finished_long_ago(db) {
        publish(&db, &["a", "b", "c", "d"]).await;
        execute!(db, [
            format!("update outbox_record set status = 'completed', completed_at = {} where id <= 2", in_seconds(&db, -7200)),
            format!("update outbox_record set status = 'completed', completed_at = {} where id = 3", in_seconds(&db, -60)),
        ]);
        assert_eq!(outbox(&db.url(), "prune --older-than 1h").await.well(), "deleted 2 records\n");
        assert_eq!(database::number(&db.pool, "select min(id) from outbox_record").await, 3);
        let done = outbox(&db.url(), "prune --older-than 1h --json").await.object();
        assert_eq!(done, json!({ "changed": 0, "interrupted": false }));
        assert_eq!(outbox(&db.url(), "prune").await.code, 2, "how old is to be said");
    }

    async fn tables_are_created_where_they_are_wanted(db) {
        let url = db.url();
        let shop = |arguments: &str| format!("{arguments} --table-prefix shop_");
        assert!(outbox(&url, &shop("status")).await.badly(3).contains("`outbox migrate`"));
        let sql = outbox(&url, &shop("migrate --print")).await.well();
        assert!(sql.contains("shop_record") && !sql.contains("outbox_record"), "{sql}");
        let plan = outbox(&url, &shop("migrate --dry-run")).await.well();
        assert!(plan.contains("would migrate the outbox tables from version 0 to 1"), "{plan}");
        assert_eq!(outbox(&url, &shop("status")).await.code, 3);
        let done = outbox(&url, &shop("migrate --json")).await.object();
        assert_eq!(done, json!({ "from": 0, "to": 1, "dry_run": false }));
        assert_eq!(outbox(&url, &shop("status --json")).await.object()["pending"], json!(0));
        assert!(outbox(&url, &shop("migrate")).await.well().contains("are up to date"));
        // Another outbox of the same database is another one.
        publish(&db, &["a"]).await;
        assert_eq!(outbox(&url, &shop("status --json")).await.object()["pending"], json!(0));
    }

    async fn tables_of_a_newer_version_are_left_alone(db) {
        let now = database::NOW;
        execute!(db, [format!("insert into outbox_schema (version, applied_at) values (99, {now})")]);
        for arguments in ["status", "pause x", "migrate", "migrate --dry-run"] {
            let line = outbox(&db.url(), arguments).await.badly(3);
            assert!(line.contains("have version 99, and this program supports version 1: use a newer"), "{line}");
        }
    }
}

#[tokio::test]
async fn a_migration_is_printed_without_a_server() {
    for (url, says) in [
        ("postgres://nobody@127.0.0.1:1/x", "timestamptz"),
        ("mysql://nobody@127.0.0.1:1/x", "engine = innodb"),
        ("sqlite:///nowhere/at/all.db", "autoincrement"),
    ] {
        let sql = outbox(url, "migrate --print").await.well();
        assert!(sql.contains(says), "{sql}");
        assert_eq!(
            outbox(url, "migrate --print --json").await.object()["version"],
            json!(1)
        );
    }
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_before_anything_is_done() {
    let db = outbox_tests::database::sqlite::fresh().await;
    for (arguments, says) in [
        (
            "replay",
            "give the ID of a record, a filter such as --handler, or --all",
        ),
        (
            "discard",
            "give the ID of a record, a filter such as --handler, or --all",
        ),
    ] {
        let line = outbox(&db.url(), arguments).await.badly(2);
        assert!(line.contains(says), "{line}");
    }
    for (arguments, says) in [
        (
            "replay --status completed",
            "[possible values: failed, retrying, scheduled]",
        ),
        (
            "discard --status split",
            "[possible values: failed, retrying, waiting, pending, scheduled, unhandled]",
        ),
    ] {
        let ran = outbox(&db.url(), arguments).await;
        assert_eq!((ran.code, &*ran.out), (2, ""), "{arguments}");
        assert!(ran.err.contains(says), "{}", ran.err);
    }
    for arguments in [
        "replay 1 --key a",
        "list --limit 0",
        "lanes --status pending",
        "prune --older-than soon",
        "nonsense",
    ] {
        assert_eq!(outbox(&db.url(), arguments).await.code, 2, "{arguments}");
    }
}
