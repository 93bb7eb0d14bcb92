//! The results page in Markdown: a section with a table for each database, and notes by people.

mod machine;

use std::fmt::Write as _;

pub(crate) use machine::Machine;

use crate::{
    database::Kind,
    results::Results,
    table::{field, number},
    verdict::{Outcome, Verdict},
};

const BEGINNING: &str = "# Benchmark results

`outbox-bench all --report benches/RESULTS.md` writes this page. It replaces the section of each database
that it measured. It keeps the other sections, and everything below \"Notes\".

Each scenario measures two things in turns, in the same run: ours, and a reference, which is the same work
done by hand or what the scenario's name says. The best of several rounds of each counts. A ratio above 1
means that ours is better, also where less is better. A run in which a record was lost, handled twice or
handled out of order is a failure and has no figure.
";

const NOTES: &str = "Notes";

/// The sections in the order of the page. `None` is for scenarios without a database.
const SECTIONS: [(Option<Kind>, &str); 4] = [
    (Some(Kind::Postgres), "PostgreSQL"),
    (Some(Kind::Mysql), "MySQL or MariaDB"),
    (Some(Kind::Sqlite), "SQLite"),
    (None, "Without a database"),
];

/// The whole page. `before` is the page that it replaces, or empty.
pub(crate) fn page(results: &Results, machine: &Machine, before: &str) -> String {
    let mut page = BEGINNING.to_owned();
    for (db, title) in SECTIONS {
        let body = section(results, machine, db).or_else(|| kept(before, title));
        if let Some(body) = body {
            page.push_str(&format!("\n## {title}\n\n{}\n", body.trim()));
        }
    }
    let old_notes = before.split_once(&format!("\n## {NOTES}\n"));
    let notes = old_notes.map_or("", |(_, notes)| notes.trim());
    page.push_str(&format!("\n## {NOTES}\n\n{notes}"));
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// The text below a title of an older page, up to the next title.
fn kept(before: &str, title: &str) -> Option<String> {
    let (_, body) = before.split_once(&format!("\n## {title}\n"))?;
    Some(body.split("\n## ").next().unwrap_or(body).to_owned())
}

/// The section of a database; `None` if the run did not measure it.
fn section(results: &Results, machine: &Machine, db: Option<Kind>) -> Option<String> {
    let verdicts: Vec<&Verdict> = results.verdicts.iter().filter(|v| v.db == db).collect();
    let failures: Vec<_> = results.failures.iter().filter(|f| f.db == db).collect();
    if verdicts.is_empty() && failures.is_empty() {
        return None;
    }
    let measured = results.versions.iter().find(|(kind, _)| Some(*kind) == db);
    let version = measured.map_or("", |(_, version)| version);
    let all_facts = [&machine.date, version, &machine.hardware, &machine.compiler];
    let facts: Vec<&str> = all_facts
        .into_iter()
        .filter(|fact| !fact.is_empty())
        .collect();
    let mut text = format!("{}, outbox at `{}`.\n\n", facts.join(", "), machine.commit);
    text.push_str(
        "| scenario | ours | reference | unit | ratio | goal | | details |\n\
         |---|--:|--:|---|--:|--:|---|---|\n",
    );
    for verdict in verdicts {
        text.push_str(&row(verdict));
    }
    for failure in failures {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | | | | | | failed | {} |",
            failure.scenario,
            cell(&failure.error)
        );
    }
    Some(text)
}

fn row(verdict: &Verdict) -> String {
    let fields: Vec<String> = verdict.more.iter().map(field).collect();
    let details = cell(&fields.join(", "));
    let scenario = cell(&verdict.scenario);
    match &verdict.outcome {
        Outcome::Skipped(reason) => {
            format!("| `{scenario}` | | | | | | skipped | {} |\n", cell(reason))
        }
        Outcome::Measured {
            ours,
            reference,
            ratio,
            goal,
        } => {
            let goal_text = goal.map_or(String::new(), |goal| format!("{goal:.2}"));
            let missed = if verdict.missed() { "missed" } else { "" };
            format!(
                "| `{scenario}` | {} | {} | {} | **{ratio:.2}** | {goal_text} | {missed} | {details} |\n",
                number(*ours),
                number(*reference),
                verdict.unit
            )
        }
    }
}

/// Escapes text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Failure;

    fn results(kind: Kind, ours: f64) -> Results {
        let verdict = Verdict::more_is_better("drain", Some(kind), "records/s", (ours, 10.0), 1.0);
        let mut results = Results::default();
        results.verdicts.push(verdict.with("note", "a|b\nc"));
        results.versions.push((kind, "Version 1".to_owned()));
        results
    }

    #[test]
    fn another_run_keeps_notes_and_the_other_databases() {
        let machine = Machine::default();
        let first = page(&results(Kind::Postgres, 9.0), &machine, "");
        let noted = format!("{first}\nA note.\n\n## Another title\n\nMore.\n");
        let second = page(&results(Kind::Sqlite, 12.0), &machine, &noted);
        assert!(second.contains("| `drain` | 9.0 | 10.0 | records/s | **0.90** | 1.00 | missed |"));
        assert!(second.contains("| `drain` | 12.0 | 10.0 | records/s | **1.20** | 1.00 |  |"));
        assert!(second.ends_with("## Notes\n\nA note.\n\n## Another title\n\nMore.\n"));

        let third = page(&results(Kind::Postgres, 11.0), &machine, &second);
        assert!(third.contains("**1.10**") && third.contains("**1.20**"));
        assert!(!third.contains("**0.90**"));
        assert_eq!(page(&Results::default(), &machine, &third), third);
    }

    #[test]
    fn text_with_a_bar_stays_in_its_cell() {
        let page = page(&results(Kind::Mysql, 1.0), &Machine::default(), "");
        assert!(page.contains("note: a\\|b c |"), "{page}");
    }

    #[test]
    fn a_failed_scenario_is_on_the_page() {
        let failure = Failure {
            scenario: "peers",
            db: Some(Kind::Postgres),
            error: "no server".to_owned(),
        };
        let mut results = Results::default();
        results.failures.push(failure);
        let page = page(&results, &Machine::default(), "");
        assert!(page.contains("| `peers` | | | | | | failed | no server |"));
    }
}
