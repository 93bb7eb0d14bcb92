//! `outbox watch`, in a real terminal and without one.

use outbox_tests::{database, on_each_database};

use crate::{
    program::{is_documented, outbox},
    rows::{deliver, execute, in_seconds, publish},
    terminal::Terminal,
};

const WATCH: &str = "watch --interval 100ms";

on_each_database! {
    async fn watch_updates_its_screen_until_q_is_pressed(db) {
        publish(&db, &["a", "a", "b"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id = 2", "charge-card", "waiting", true));
        let (id, now, later) = (database::ID, database::NOW, in_seconds(&db, 30));
        execute!(db, [
            format!("insert into outbox_instance (id, started_at, expires_at) values ({id}, {now}, {later})"),
            "update outbox_lease set owner = (select id from outbox_instance) where part = 7".to_owned(),
        ]);
        let mut terminal = Terminal::start(&db.url(), WATCH);
        for expected in [
            "pending 1 ", "waiting 1 ", "failed 1", "lag ", "press q to quit",
            "partitions", "charge-card", "card declined: 7",
        ] {
            terminal.shows(expected).await;
        }
        // The screen follows changes in the tables.
        publish(&db, &["c", "d", "e"]).await;
        terminal.shows("pending 4 ").await;
        execute!(db, ["update outbox_record set status = 'completed' where status = 'pending'".to_owned()]);
        terminal.shows("pending 0 ").await;
        terminal.shows("lag none").await;
        assert!(terminal.is_alternate_screen());
    terminal.press(b"q").await;
    terminal.ended_with(0).await;
    }
}

#[tokio::test]
async fn ctrl_c_ends_watch() {
    let db = database::sqlite::fresh().await;
    let mut terminal = Terminal::start(&db.url(), WATCH);
    terminal.shows("press q to quit").await;
    assert!(terminal.is_alternate_screen());
    terminal.press(b"\x03").await;
    terminal.ended_with(0).await;
}

#[tokio::test]
async fn watch_shows_a_database_error_and_recovers_from_it() {
    let db = database::sqlite::fresh().await;
    let mut terminal = Terminal::start(&db.url(), WATCH);
    terminal.shows("press q to quit").await;
    database::sqlite::execute(&db.pool, "alter table outbox_record rename to hidden").await;
    terminal.shows("the outbox tables were not found").await;
    database::sqlite::execute(&db.pool, "alter table hidden rename to outbox_record").await;
    terminal.shows("press q to quit").await;
    assert!(terminal.is_alternate_screen());
    terminal.press(b"q").await;
    terminal.ended_with(0).await;
}

#[tokio::test]
async fn watch_prints_one_report_after_another_without_a_terminal() {
    let db = database::sqlite::fresh().await;
    publish(&db, &["a", "b"]).await;
    let text = outbox(&db.url(), "watch --count 3 --interval 60ms")
        .await
        .succeeds();
    assert_eq!(text.matches("pending 2 ").count(), 3, "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(
        text.contains("published -/s") && text.contains("published 0.0/s"),
        "{text}"
    );

    let reports = outbox(&db.url(), "watch --count 2 --interval 60ms --json")
        .await
        .objects();
    assert_eq!(reports.len(), 2);
    is_documented("watch", &reports[0]).await;
    assert!(reports.iter().all(|report| report["pending"] == 2));
    assert!(
        reports[0]["published_per_second"].is_null() && reports[1]["published_per_second"] == 0.0
    );
}
