//! The page of statements names a test for each of them, and each of these tests exists.

use std::{collections::HashSet, fs, path::Path};

const PAGE: &str = include_str!("statements.md");

/// The names of all functions in the Rust files below a folder.
fn functions(folder: &Path, found: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            functions(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1);
            let end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
            found.extend(names.filter_map(|rest| Some(rest.split(end).next()?.to_owned())));
        }
    }
}

#[test]
fn each_statement_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut known = HashSet::new();
    for folder in ["tests", "outbox/src", "outbox-macros/src"] {
        functions(&root.join(folder), &mut known);
    }
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| statement"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() > 70, "{}", rows.len());
    for row in rows {
        let [statement, here, test] = row[..] else {
            panic!("{row:?} has three columns");
        };
        assert!(!statement.is_empty() && !here.is_empty(), "{row:?}");
        assert!(known.contains(test), "`{test}` does not exist: {statement}");
    }
}
