//! The log lines of retries: their levels and their fields, which are stable.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use outbox_tests::database;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::{
    limits::unreachable,
    scene::{FastClock, Oops, Scene, policy},
};

type Line = BTreeMap<&'static str, String>;

/// A subscriber that keeps the log lines of transactions.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

struct Reader(Line);

impl Visit for Reader {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("outbox::transaction")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut reader = Reader(Line::new());
        reader
            .0
            .insert("level", event.metadata().level().to_string());
        event.record(&mut reader);
        self.0.lock().unwrap().push(reader.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn retries_and_their_end_are_logged_with_stable_fields() {
    let db = database::sqlite::fresh().await;
    let (scene, lines) = (Scene::of(&db), Lines::default());
    let _guard = tracing::subscriber::set_default(lines.clone());
    scene
        .transactions
        .transaction("ApproveCase")
        .policy(policy().max_attempts(2))
        .correlation_id("r-9")
        .command_id("c-1")
        .run(async |_| Err::<(), _>(Oops::Deadlock))
        .await
        .unwrap_err();
    let line = |fields: &[(&'static str, &str)]| -> Line {
        (fields.iter())
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect()
    };
    let logged = lines.0.lock().unwrap().clone();
    assert_eq!(
        logged,
        [
            line(&[
                ("level", "INFO"),
                ("message", "transaction failed; retrying"),
                ("operation", "ApproveCase"),
                ("attempt", "2"),
                ("reason", "deadlock"),
                ("delay_ms", "50"),
                ("command_id", "c-1"),
                ("correlation_id", "r-9"),
            ]),
            line(&[
                ("level", "WARN"),
                ("message", "transaction failed; retries exhausted"),
                ("operation", "ApproveCase"),
                ("attempts", "2"),
                ("reason", "deadlock"),
                ("command_id", "c-1"),
                ("correlation_id", "r-9"),
            ]),
        ]
    );
}

#[tokio::test]
async fn only_ten_retries_per_second_are_logged_at_info() {
    let db = database::sqlite::fresh().await;
    let (scene, lines) = (Scene::of(&db), Lines::default());
    let _guard = tracing::subscriber::set_default(lines.clone());
    // Each transaction waits for 50 ms before its retry.
    for _ in 0..12 {
        let _ = scene
            .transactions
            .transaction("ApproveCase")
            .policy(policy().max_attempts(2))
            .run(async |_| Err::<(), _>(Oops::Deadlock))
            .await;
    }
    let logged = lines.0.lock().unwrap().clone();
    let retries = logged
        .iter()
        .filter(|line| line["message"] == "transaction failed; retrying");
    let levels: Vec<&str> = retries.map(|line| &*line["level"]).collect();
    assert_eq!(levels, [vec!["INFO"; 10], vec!["DEBUG"; 2]].concat());
}

#[tokio::test]
async fn only_ten_refused_calls_per_second_are_logged_as_warnings() {
    let (transactions, lines) = (unreachable().clock(FastClock::default()), Lines::default());
    let _guard = tracing::subscriber::set_default(lines.clone());
    for _ in 0..17 {
        let run = transactions
            .transaction("ApproveCase")
            .correlation_id("r-9");
        run.run(async |_| Ok::<_, Oops>(())).await.unwrap_err();
    }
    let logged = lines.0.lock().unwrap().clone();
    let messages: Vec<_> = logged
        .iter()
        .map(|line| (&*line["level"], &*line["message"]))
        .collect();
    let opened = "database unreachable; transactions are refused until a probe reaches it";
    let refused = "transaction refused; the database is unreachable";
    let expected = [
        vec![("WARN", opened)],
        vec![("WARN", refused); 10],
        vec![("DEBUG", refused); 2],
    ];
    assert_eq!(messages, expected.concat());
    let line = &logged[1];
    assert_eq!(
        (
            &*line["operation"],
            &*line["attempts"],
            &*line["reason"],
            &*line["correlation_id"]
        ),
        ("ApproveCase", "0", "circuit_open", "r-9")
    );
}
