//! Commands that change rows. With `--dry-run` they change nothing.

use outbox_tests::on_each_database;
use serde_json::json;

use crate::{
    program::{is_documented, outbox},
    rows::{deliver, everything, execute, in_seconds, publish},
};

/// The status of each delivery, in the order of ids.
macro_rules! deliveries {
    ($db:ident) => {
        database::texts(&$db.pool, "select status from outbox_delivery order by id").await
    };
}

on_each_database! {
    async fn a_dry_run_reports_number_and_rows_and_changes_nothing(db) {
        publish(&db, &["a", "b", "c", "d"]).await;
        execute!(db, deliver(&db, "id <= 3", "charge-card", "failed", true));
        execute!(db, [format!(
            "update outbox_record set status = 'completed', completed_at = {} where id = 4", in_seconds(&db, -7200)
        )]);
        database::pause(&db.pool, "send-mail").await;
        let before = everything!(db);
        for (arguments, expected) in [
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
            let text = outbox(&db.url(), &format!("{arguments} --dry-run")).await.succeeds();
            assert!(text.contains(expected), "{arguments}: {text}");
            let object = outbox(&db.url(), &format!("{arguments} --dry-run --json")).await.object();
            assert_eq!(object["dry_run"], json!(true), "{arguments}");
            is_documented(arguments.split(' ').next().unwrap(), &object).await;
        }
        assert_eq!(everything!(db), before);
        let preview = outbox(&db.url(), "replay --all --dry-run --json --limit 2").await.object();
        let record_ids: Vec<_> = preview["items"].as_array().unwrap().iter().map(|item| &item["record_id"]).collect();
        assert_eq!((&preview["would_change"], record_ids), (&json!(3), vec![&json!(1), &json!(2)]));
    }

    async fn replay_applies_to_the_deliveries_that_its_filter_selects(db) {
        publish(&db, &["a", "b", "c"]).await;
        execute!(db, deliver(&db, "true", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id = 3", "send-mail", "failed", false));
        assert_eq!(outbox(&db.url(), "replay --handler charge-card --key b").await.succeeds(), "replayed 1 delivery\n");
        assert_eq!(deliveries!(db), ["failed", "retrying", "failed", "failed"]);
        let done = outbox(&db.url(), "replay --handler charge-card --json --batch-size 1").await.object();
        assert_eq!(done, json!({ "changed": 2, "interrupted": false }));
        is_documented("replay", &done).await;
        assert_eq!(deliveries!(db), ["retrying", "retrying", "retrying", "failed"]);
        assert_eq!(outbox(&db.url(), "replay --handler charge-card").await.succeeds(), "replayed 0 deliveries\n");
        assert_eq!(outbox(&db.url(), "replay --all").await.succeeds(), "replayed 1 delivery\n");
        assert_eq!(database::number(&db.pool, "select count(*) from outbox_delivery where attempt = 5").await, 4);
    }

    async fn replay_by_event_applies_to_the_records_of_that_event_only(db) {
        publish(&db, &["a", "a", "a", "a"]).await;
        execute!(db, deliver(&db, "true", "charge-card", "failed", true));
        execute!(db, ["update outbox_record set event = 'order.paid' where id in (2, 4)".to_owned()]);
        assert_eq!(outbox(&db.url(), "replay --event order.refunded").await.succeeds(), "replayed 0 deliveries\n");
        assert_eq!(outbox(&db.url(), "replay --event order.paid").await.succeeds(), "replayed 2 deliveries\n");
        assert_eq!(deliveries!(db), ["failed", "retrying", "failed", "retrying"]);
        assert_eq!(outbox(&db.url(), "discard --event order.created").await.succeeds(), "discarded 2 deliveries\n");
        assert_eq!(deliveries!(db), ["discarded", "retrying", "discarded", "retrying"]);
    }

    async fn replay_of_one_record_succeeds_or_gives_the_reason(db) {
        publish(&db, &["a", "b", "c"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id = 1", "send-mail", "failed", true));
        execute!(db, deliver(&db, "id = 2", "charge-card", "waiting", true));
        assert_eq!(outbox(&db.url(), "replay 1 --handler send-mail").await.succeeds(), "replayed record 1 for send-mail\n");
        assert_eq!(deliveries!(db), ["failed", "retrying", "waiting"]);
        let object = outbox(&db.url(), "replay 1 --json").await.object();
        assert_eq!(object, json!({ "record_id": 1, "handlers": ["charge-card", "send-mail"], "dry_run": false, "changed": true }));
        for dry_run in ["", " --dry-run"] {
            for (arguments, code, expected) in [
                ("replay 2", 1, "record 2 is split and cannot be replayed"),
                ("replay 2 --handler charge-card", 1, "is waiting"),
                ("replay 3", 1, "is pending"),
                ("replay 1 --handler unknown", 4, "record 1 has no delivery for unknown"),
                ("replay 77", 4, "record 77 does not exist"),
            ] {
                let line = outbox(&db.url(), &format!("{arguments}{dry_run}")).await.fails_with(code);
                assert!(line.contains(expected), "{arguments}: {line}");
            }
        }
    }

    async fn a_lane_continues_after_its_failed_delivery_is_discarded(db) {
        publish(&db, &["a", "a", "b", "c"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id = 2", "charge-card", "waiting", true));
        execute!(db, deliver(&db, "id = 3", "charge-card", "failed", true));
        assert_eq!(outbox(&db.url(), "discard 1").await.succeeds(), "discarded record 1 for charge-card\n");
        assert_eq!(deliveries!(db), ["discarded", "retrying", "failed"]);
        assert_eq!(outbox(&db.url(), "discard --error declined").await.succeeds(), "discarded 1 delivery\n");
        assert_eq!(outbox(&db.url(), "discard --status pending --key c").await.succeeds(), "discarded 1 record\n");
        let records = database::texts(&db.pool, "select status from outbox_record order by id").await;
        assert_eq!(records, ["discarded", "split", "discarded", "discarded"]);
        assert!(outbox(&db.url(), "discard 1").await.fails_with(1).contains("is discarded"));
    }

    async fn pause_stops_a_handler_until_resume(db) {
        let paused = |object: serde_json::Value| (object["paused"].clone(), object["changed"].clone());
        let paused_now = async || database::texts(&db.pool, "select handler from outbox_pause").await;
        assert_eq!(paused(outbox(&db.url(), "pause charge-card --json").await.object()), (json!(true), json!(true)));
        assert_eq!(paused_now().await, ["charge-card"]);
        assert_eq!(paused(outbox(&db.url(), "pause charge-card --json").await.object()), (json!(true), json!(false)));
        assert_eq!(outbox(&db.url(), "resume charge-card").await.succeeds(), "resumed charge-card\n");
        assert!(paused_now().await.is_empty());
        for dry_run in ["", " --dry-run"] {
            let line = outbox(&db.url(), &format!("resume charge-card{dry_run}")).await.fails_with(4);
            assert!(line.contains("is not paused; no handler is paused"), "{line}");
        }
    }

    async fn prune_deletes_records_that_finished_before_the_given_age(db) {
        publish(&db, &["a", "b", "c", "d"]).await;
        execute!(db, [
            format!("update outbox_record set status = 'completed', completed_at = {} where id <= 2", in_seconds(&db, -7200)),
            format!("update outbox_record set status = 'completed', completed_at = {} where id = 3", in_seconds(&db, -60)),
        ]);
        assert_eq!(outbox(&db.url(), "prune --older-than 1h").await.succeeds(), "deleted 2 records\n");
        assert_eq!(database::number(&db.pool, "select min(id) from outbox_record").await, 3);
        let done = outbox(&db.url(), "prune --older-than 1h --json").await.object();
        assert_eq!(done, json!({ "changed": 0, "interrupted": false }));
        assert_eq!(outbox(&db.url(), "prune").await.code, 2, "the age is required");
    }

    async fn migrate_creates_tables_with_the_given_prefix(db) {
        let url = db.url();
        let shop = |arguments: &str| format!("{arguments} --table-prefix shop_");
        assert!(outbox(&url, &shop("status")).await.fails_with(3).contains("`outbox migrate`"));
        let sql = outbox(&url, &shop("migrate --print")).await.succeeds();
        assert!(sql.contains("shop_record") && !sql.contains("outbox_record"), "{sql}");
        let plan = outbox(&url, &shop("migrate --dry-run")).await.succeeds();
        assert!(plan.contains("would migrate the outbox tables from version 0 to 1"), "{plan}");
        assert_eq!(outbox(&url, &shop("status")).await.code, 3);
        let done = outbox(&url, &shop("migrate --json")).await.object();
        assert_eq!(done, json!({ "from": 0, "to": 1, "dry_run": false }));
        assert_eq!(outbox(&url, &shop("status --json")).await.object()["pending"], json!(0));
        assert!(outbox(&url, &shop("migrate")).await.succeeds().contains("are up to date"));
        // Records of one outbox do not appear in another outbox of the same database.
        publish(&db, &["a"]).await;
        assert_eq!(outbox(&url, &shop("status --json")).await.object()["pending"], json!(0));
    }

    async fn commands_refuse_tables_of_a_newer_version(db) {
        let now = database::NOW;
        execute!(db, [format!("insert into outbox_schema (version, applied_at) values (99, {now})")]);
        for arguments in ["status", "pause x", "migrate", "migrate --dry-run"] {
            let line = outbox(&db.url(), arguments).await.fails_with(3);
            assert!(line.contains("have version 99, and this program supports version 1: use a newer"), "{line}");
        }
    }
}

#[tokio::test]
async fn migrate_prints_its_statements_without_a_server() {
    for (url, expected) in [
        ("postgres://unknown@127.0.0.1:1/x", "timestamptz"),
        ("mysql://unknown@127.0.0.1:1/x", "engine = innodb"),
        ("sqlite:///nowhere/at/all.db", "autoincrement"),
    ] {
        let sql = outbox(url, "migrate --print").await.succeeds();
        assert!(sql.contains(expected), "{sql}");
        assert_eq!(
            outbox(url, "migrate --print --json").await.object()["version"],
            json!(1)
        );
    }
}

#[tokio::test]
async fn wrong_arguments_are_refused_before_any_change() {
    let db = outbox_tests::database::sqlite::fresh().await;
    for (arguments, expected) in [
        (
            "replay",
            "give the ID of a record, a filter such as --handler, or --all",
        ),
        (
            "discard",
            "give the ID of a record, a filter such as --handler, or --all",
        ),
    ] {
        let line = outbox(&db.url(), arguments).await.fails_with(2);
        assert!(line.contains(expected), "{line}");
    }
    for (arguments, expected) in [
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
        assert!(ran.err.contains(expected), "{}", ran.err);
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
