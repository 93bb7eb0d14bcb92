//! The tables of states in the documentation are those in the code.

use std::fmt::{Display, Write as _};

use crate::{
    record::{DeliveryStatus, RecordStatus},
    runtime::lane,
};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ARCHITECTURE.md");
const END: &str = "<!-- /transitions -->";

/// A table between its markers.
fn table<From: Display, To: Display>(
    name: &str,
    rows: impl Iterator<Item = (From, &'static str, To)>,
) -> String {
    let mut text = format!("<!-- transitions:{name} -->\n| from | event | to |\n|---|---|---|\n");
    for (from, event, to) in rows {
        writeln!(text, "| {from} | {event} | {to} |").unwrap();
    }
    text + END
}

/// The transitions of statuses, with the stored names.
fn stored<Status: Display + Copy>(
    rows: &'static [(Option<Status>, &'static str, Status)],
) -> impl Iterator<Item = (String, &'static str, Status)> {
    rows.iter().map(|(from, event, to)| {
        let from = from.map_or_else(|| "—".to_owned(), |from| from.to_string());
        (from, *event, *to)
    })
}

fn is_up_to_date(name: &str, expected: &str) {
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let from = document.find(&format!("<!-- transitions:{name} -->"));
    let found = from.map(|from| {
        let rest = &document[from..];
        let end = rest.find(END).map_or(rest.len(), |end| end + END.len());
        rest[..end].to_owned()
    });
    let is_same = found.as_deref() == Some(expected);
    assert!(
        is_same,
        "ARCHITECTURE.md must contain this text:\n\n{expected}\n"
    );
}

#[test]
fn the_statuses_of_records_are_documented() {
    is_up_to_date(
        "record",
        &table("record", stored(RecordStatus::TRANSITIONS)),
    );
}

#[test]
fn the_statuses_of_deliveries_are_documented() {
    let rows = stored(DeliveryStatus::TRANSITIONS);
    is_up_to_date("delivery", &table("delivery", rows));
}

#[test]
fn the_states_of_lanes_are_documented() {
    for (name, rows) in lane::TABLES {
        let rows = rows.lines().map(|row| {
            let (from, rest) = row.split_once(" | ").unwrap();
            let (event, to) = rest.rsplit_once(" | ").unwrap();
            (from, event, to)
        });
        is_up_to_date(name, &table(name, rows));
    }
}

/// The final statuses are `completed` and `discarded`.
#[test]
fn only_open_statuses_change() {
    for &from in RecordStatus::ALL {
        let is_open = RecordStatus::ALL.iter().any(|to| from.may_become(*to));
        let is_finished = matches!(from, RecordStatus::Completed | RecordStatus::Discarded);
        assert_ne!(is_open, is_finished, "{from}");
    }
    for &from in DeliveryStatus::ALL {
        let is_open = DeliveryStatus::ALL.iter().any(|to| from.may_become(*to));
        let is_finished = matches!(from, DeliveryStatus::Completed | DeliveryStatus::Discarded);
        assert_ne!(is_open, is_finished, "{from}");
    }
}
