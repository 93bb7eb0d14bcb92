//! Commands that only read.

use std::collections::HashSet;

use outbox_tests::on_each_database;
use serde_json::{Value, json};

use crate::{
    program::{ProgramOutput, TIMEOUT, command, is_documented, outbox, run},
    rows::{deliver, execute, in_seconds, publish},
};

/// The fields of an object with these names.
fn fields(object: &Value, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| object[name].clone()).collect()
}

fn ids(objects: &[Value]) -> Vec<i64> {
    let ids = objects.iter().map(|object| object["record_id"].as_i64());
    ids.map(Option::unwrap).collect()
}

on_each_database! {
    async fn status_reports_counts_errors_and_blocked_lanes(db) {
        publish(&db, &["a", "a", "b", "c", "d"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id = 2", "charge-card", "waiting", true));
        execute!(db, ["update outbox_record set status = 'completed' where id = 3".to_owned()]);
        database::pause(&db.pool, "send-mail").await;

        let status = outbox(&db.url(), "status --json").await.object();
        let counts = fields(&status, &["pending", "waiting", "retrying", "failed", "completed", "discarded", "exact"]);
        assert_eq!(json!(counts), json!([2, 1, 0, 1, 1, 0, true]));
        assert!(status["oldest_pending_seconds"].as_f64().is_some_and(|age| (0.0..60.0).contains(&age)));
        assert_eq!(status["paused"], json!(["send-mail"]));
        assert_eq!(json!(fields(&status["events"][0], &["event", "pending", "failed"])), json!(["order.created", 2, 1]));
        assert_eq!(json!(fields(&status["errors"][0], &["fingerprint", "handler", "count"])), json!(["declined", "charge-card", 1]));
        assert_eq!(json!(fields(&status["lanes"][0], &["key", "waiting"])), json!(["a", 1]));
        is_documented("status", &status).await;
        is_documented("status", &status["events"][0]).await;
        is_documented("status", &status["errors"][0]).await;
        let exact = outbox(&db.url(), "status --json --exact").await.object();
        assert_eq!(exact["completed"], json!(1));

        let text = outbox(&db.url(), "status").await.succeeds();
        for expected in ["pending        2  the oldest was published ", "completed      1", "declined", "paused: send-mail", "no instance is running"] {
            assert!(text.contains(expected), "{expected} in:\n{text}");
        }
    }

    async fn list_shows_the_records_that_all_filters_select(db) {
        publish(&db, &["a", "a", "b", "c"]).await;
        execute!(db, deliver(&db, "id <= 2", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id = 3", "send-mail", "retrying", true));
        let past = in_seconds(&db, -3600);
        execute!(db, [
            format!("update outbox_record set created_at = {past} where id = 2"),
            "update outbox_record set event = 'order.paid' where id = 3".to_owned(),
            "update outbox_delivery set fingerprint = 'timeout' where record_id = 1".to_owned(),
            format!("update outbox_delivery set failed_at = {past} where record_id = 2"),
            format!("update outbox_delivery set failed_at = {} where record_id = 1", in_seconds(&db, -120)),
            format!("update outbox_delivery set failed_at = {} where record_id = 3", in_seconds(&db, -60)),
        ]);
        for (filter, expected) in [
            ("", &[4, 3, 2, 1][..]),
            (" --oldest", &[1, 2, 3, 4]),
            (" --status pending", &[4]),
            (" --status failed", &[2, 1]),
            (" --status retrying", &[3]),
            (" --event order.paid", &[3]),
            (" --handler charge-card", &[2, 1]),
            (" --status failed --handler send-mail", &[]),
            (" --key a", &[2, 1]),
            (" --error timeout", &[1]),
            (" --older-than 10m", &[2]),
            (" --failed-since 2h", &[3, 2, 1]),
            (" --failed-since 30m", &[3, 1]),
            (" --failed-since 30m --status failed", &[1]),
            (" --order failed", &[1, 2]),
            (" --order failed --oldest --status failed", &[2, 1]),
            (" --order failed --status retrying", &[3]),
            (" --status failed --key a --older-than 10m", &[2]),
        ] {
            let listed = outbox(&db.url(), &format!("list --json{filter}")).await.objects();
            assert_eq!(ids(&listed), expected, "{filter}");
        }
        let delivery = outbox(&db.url(), "list --json --error timeout --status failed").await.object();
        is_documented("list", &delivery).await;
        is_documented("list", &delivery["delivery"]).await;
        let text = outbox(&db.url(), "list --status failed").await.succeeds();
        assert!(text.lines().nth(1).unwrap().contains("charge-card"), "{text}");
        let text = outbox(&db.url(), "list --order failed").await.succeeds();
        assert!(text.lines().nth(1).unwrap().contains(" 2m"), "{text}");
        let line = outbox(&db.url(), "list --order failed --status pending").await.fails_with(2);
        assert!(line.contains("`pending` is the status of a record"), "{line}");
        assert_eq!(outbox(&db.url(), "list --key unknown").await.succeeds(), "nothing matches\n");
    }

    async fn list_continues_after_the_previous_page(db) {
        publish(&db, &["a", "b", "c", "d", "e"]).await;
        execute!(db, deliver(&db, "true", "charge-card", "failed", true));
        for id in 1..=5 {
            let sql = format!("update outbox_delivery set failed_at = {} where record_id = {id}", in_seconds(&db, 10 - 10 * id));
            execute!(db, [sql]);
        }
        for (order, expected) in [("", [5, 4, 3, 2, 1]), (" --order failed", [1, 2, 3, 4, 5])] {
            let (mut seen, mut after) = (Vec::new(), String::new());
            loop {
                let page = outbox(&db.url(), &format!("list --json --limit 2{order}{after}")).await;
                let more = page.err.strip_prefix("more results:").map(|more| more.trim_end().to_owned());
                seen.extend(ids(&page.objects()));
                let Some(more) = more else { break };
                after = more;
            }
            assert_eq!(seen, expected, "{order}");
        }
    }

    async fn show_prints_a_record_with_deliveries_and_failures(db) {
        publish(&db, &["a\u{1b}[2J"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        execute!(db, [format!(
            "insert into outbox_failure (record_id, handler, attempt, failed_at, kind, fingerprint, error) \
            values (1, 'charge-card', 3, {}, 'error', 'declined', 'card declined')", in_seconds(&db, -1)
        )]);
        let record = outbox(&db.url(), "show 1 --json").await.object();
        assert_eq!(record["payload"], json!({ "order_id": "a\u{1b}[2J" }));
        assert_eq!(json!(fields(&record["deliveries"][0], &["handler", "status", "attempt"])), json!(["charge-card", "failed", 4]));
        assert_eq!(json!(fields(&record["failures"][0], &["attempt", "error"])), json!([3, "card declined"]));
        is_documented("show", &record).await;
        is_documented("show", &record["failures"][0]).await;
        let text = outbox(&db.url(), "show 1").await.succeeds();
        assert!(text.contains("event      order.created") && text.contains("card declined"), "{text}");
        assert!(!text.contains('\u{1b}'), "stored control characters do not reach the terminal");

        let line = outbox(&db.url(), "show 2").await.fails_with(4);
        assert!(line.contains("record 2 does not exist"), "{line}");
    }

    async fn lanes_selects_by_the_first_delivery_of_a_lane(db) {
        publish(&db, &["a", "a", "a", "b", "b"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id in (2, 3)", "charge-card", "waiting", true));
        execute!(db, deliver(&db, "id = 4", "send-mail", "retrying", true));
        execute!(db, deliver(&db, "id = 5", "send-mail", "waiting", true));
        execute!(db, ["update outbox_record set event = 'order.paid' where id = 4".to_owned()]);
        for (filter, expected) in [
            ("", &[1, 4][..]),
            (" --limit 1", &[1]),
            (" --status failed", &[1]),
            (" --status retrying", &[4]),
            (" --handler send-mail", &[4]),
            (" --key a", &[1]),
            (" --event order.paid", &[4]),
            (" --error nothing", &[]),
            (" --older-than 1h", &[]),
        ] {
            let lanes = outbox(&db.url(), &format!("lanes --json{filter}")).await.objects();
            assert_eq!(ids(&lanes), expected, "{filter}");
        }
        let first = outbox(&db.url(), "lanes --json --key a").await.object();
        assert_eq!(json!(fields(&first, &["waiting", "attempt", "due_in_seconds"])), json!([2, 4, null]));
        is_documented("lanes", &first).await;
        assert!(outbox(&db.url(), "lanes").await.succeeds().contains("card declined: 7"));
    }

    async fn instances_shows_the_partitions_of_each_instance(db) {
        assert!(outbox(&db.url(), "instances").await.succeeds().contains("no instance is running"));
        let (id, now) = (database::ID, database::NOW);
        let (past, later) = (in_seconds(&db, -60), in_seconds(&db, 30));
        execute!(db, [
            format!("insert into outbox_instance (id, started_at, expires_at) values ({id}, {past}, {later})"),
            "update outbox_lease set owner = (select id from outbox_instance) where part in (1, 2)".to_owned(),
            format!("insert into outbox_instance (id, started_at, expires_at) values ({id}, {now}, {past})"),
        ]);
        let instances = outbox(&db.url(), "instances --json").await.objects();
        assert_eq!(instances.iter().map(|one| &one["partitions"]).collect::<Vec<_>>(), [&json!(2), &json!(0)]);
        assert!(instances[0]["expires_in_seconds"].as_f64().is_some_and(|left| (1.0..=30.0).contains(&left)));
        assert!(instances[1]["expires_in_seconds"].is_null());
        is_documented("instances", &instances[0]).await;
        let text = outbox(&db.url(), "instances").await.succeeds();
        assert!(text.contains("1m") && text.contains("expired"), "{text}");
    }
}

#[tokio::test]
async fn completions_contain_every_command() {
    let mut scripts = HashSet::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = outbox("", &format!("completions {shell}")).await.succeeds();
        for word in ["replay", "discard", "older-than"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        scripts.insert(script);
    }
    assert_eq!(scripts.len(), 3);
}

#[tokio::test]
async fn help_explains_exit_codes_and_hides_the_password() {
    let ran = run(command("postgres://me:hunter2@host/db").arg("--help")).await;
    let text = ran.succeeds();
    for expected in ["Exit codes:", "130  interrupted", "OUTBOX_DATABASE_URL"] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_closed_output_is_no_failure() {
    let db = outbox_tests::database::sqlite::fresh().await;
    let mut child = command(&db.url())
        .args(["watch", "--json", "--interval", "50ms"])
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await;
    let ran = ProgramOutput::from(ended.unwrap().unwrap());
    assert_eq!((ran.code, &*ran.err), (0, ""));
}
