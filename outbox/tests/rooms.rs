//! Which room of `outbox/src` may name which. A room is a folder or file directly below `src`; in
//! `runtime` every folder and file is a room of its own.
//!
//! The test reads every `crate::` and `super::` path outside of comments and tests. A new dependency between two
//! rooms fails here until it is added to a table. So each new dependency is a decision.

#![expect(
    clippy::unwrap_used,
    reason = "a test: a file that cannot be read fails it"
)]

use std::{collections::BTreeMap, fs, path::Path};

/// Each room, and the rooms that it may name.
#[rustfmt::skip]
const MAY_NAME: &[(&str, &str)] = &[
    ("record", "handler outbox"),
    ("outbox", "record store runtime registry transaction operations config telemetry retry testing \
        runtime::signals runtime::fetch runtime::settle"),
    ("store", "record outbox operations transaction"),
    ("registry", "record handler retry telemetry"),
    ("handler", "record retry registry store transaction telemetry outbox"),
    ("retry", "handler"),
    ("operations", "store record outbox registry config runtime::signals"),
    ("transaction", "outbox store telemetry retry"),
    ("telemetry", "record registry handler retry transaction outbox"),
    ("config", "record retry handler"),
    ("testing", "record outbox store registry handler retry operations \
        runtime::engine runtime::fetch runtime::lane runtime::settle runtime::work"),
    ("__private", "record handler registry retry"),

    ("runtime::dispatcher", "outbox store registry operations runtime::event_loop runtime::engine runtime::lane"),
    ("runtime::event_loop", "outbox record store telemetry runtime::backoff runtime::engine runtime::timers \
        runtime::signals runtime::single_task runtime::meters runtime::lane runtime::ownership runtime::fetch runtime::work \
        runtime::settle runtime::housekeeping"),
    ("runtime::shutdown", "outbox store runtime::event_loop runtime::engine runtime::backoff runtime::single_task \
        runtime::fetch runtime::ownership runtime::work runtime::settle"),
    ("runtime::timers", "runtime::engine runtime::fetch runtime::signals"),
    ("runtime::signals", "record store"),
    ("runtime::single_task", "outbox store"),
    ("runtime::backoff", "outbox retry runtime::meters"),
    ("runtime::engine", "store registry record runtime::lane runtime::fetch runtime::ownership runtime::meters"),
    ("runtime::meters", "outbox store telemetry registry record handler retry operations runtime::lane \
        runtime::signals"),
    ("runtime::lane", "record registry store"),
    ("runtime::ownership", "outbox record store registry runtime::engine runtime::backoff runtime::signals runtime::meters"),
    // The reader runs claims too.
    ("runtime::fetch", "outbox store record registry runtime::engine runtime::backoff runtime::lane \
        runtime::single_task runtime::meters runtime::ownership"),
    // A worker checks the start permit.
    ("runtime::work", "outbox store telemetry transaction handler registry record retry runtime::engine runtime::lane \
        runtime::meters runtime::ownership"),
    ("runtime::settle", "outbox store runtime::engine runtime::lane runtime::backoff runtime::single_task \
        runtime::meters"),
    ("runtime::housekeeping", "outbox store config telemetry runtime::engine runtime::backoff runtime::meters \
        runtime::single_task"),
];

/// Dependencies that exist and should not. This list may only shrink.
#[rustfmt::skip]
const TO_REMOVE: &[(&str, &str)] = &[
    ("record", "telemetry"),
    ("registry", "config"),
    ("retry", "config outbox record"),
    ("config", "registry"),
    ("runtime::dispatcher", "runtime::ownership"),
    ("runtime::lane", "retry"),
    ("runtime::housekeeping", "runtime::ownership"),
];

#[test]
fn a_room_names_only_the_rooms_that_it_may() {
    let mut edges = BTreeMap::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    read_folder(&source, &source, &mut edges);
    assert!(edges.len() > 50, "the rooms were not found: {edges:?}");

    let is_in = |table: &[(&str, &str)], from: &str, to: &str| {
        let mut rows = table.iter().filter(|(room, _)| *room == from);
        rows.any(|(_, rooms)| rooms.split_whitespace().any(|room| room == to))
    };
    let mut problems = Vec::new();
    for ((from, to), file) in &edges {
        if !is_in(MAY_NAME, from, to) && !is_in(TO_REMOVE, from, to) {
            problems.push(format!("`{from}` must not name `{to}` ({file})"));
        }
    }
    for (from, rooms) in TO_REMOVE {
        for to in rooms.split_whitespace() {
            if !edges.contains_key(&(from.to_string(), to.to_owned())) {
                problems.push(format!(
                    "`{from}` no longer names `{to}`: remove it from TO_REMOVE"
                ));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn a_tree_of_paths_is_read() {
    let text = "use crate::{a::b, runtime::{c::D as E, F, g::*}};\n// crate::no::path\nlet x = crate::h::I::new();";
    let rooms_in = |module: &[&str], text| -> Vec<String> {
        let paths = paths_in(module, text);
        paths.iter().map(|path| room(path)).collect()
    };
    assert_eq!(
        rooms_in(&[], text),
        ["a", "runtime::c", "runtime", "runtime::g", "h"]
    );
    let text = "use super::{lane::A, super::store::B};\nlet x = super::super::record::C;";
    assert_eq!(
        rooms_in(&["runtime", "work"], text),
        ["runtime::lane", "store", "record"]
    );
}

/// Room that names, room that is named; and one file that does.
type Edges = BTreeMap<(String, String), String>;

fn read_folder(source: &Path, folder: &Path, edges: &mut Edges) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !["tests", "bin"].contains(&name) {
                read_folder(source, &path, edges);
            }
        } else if name.ends_with(".rs") && !["lib.rs", "tests.rs"].contains(&name) {
            let file = path.strip_prefix(source).unwrap().with_extension("");
            let file = file.to_str().unwrap().replace('\\', "/");
            let module: Vec<&str> = file.split('/').filter(|name| *name != "mod").collect();
            let from = room(&module);
            let text = fs::read_to_string(&path).unwrap();
            for path in paths_in(&module, &text) {
                let to = room(&path);
                // `runtime` alone is a visibility, or an item that `runtime/mod.rs` exports.
                let is_own = to == from || to == "runtime" && from.starts_with("runtime");
                let mut rooms = MAY_NAME.iter().chain(TO_REMOVE).map(|(room, _)| *room);
                let is_room = to == "runtime" || rooms.any(|room| room == to);
                if !is_own && is_room {
                    edges
                        .entry((from.clone(), to))
                        .or_insert_with(|| file.clone());
                }
            }
        }
    }
}

fn room(path: &[impl AsRef<str>]) -> String {
    let mut names = path.iter().map(AsRef::as_ref);
    let first = names.next().unwrap_or_default();
    let is_module = |name: &&str| name.starts_with(|c: char| c.is_ascii_lowercase());
    match names.next().filter(is_module) {
        Some(second) if first == "runtime" => format!("runtime::{second}"),
        _ => first.to_owned(),
    }
}

/// Every path from the root of the crate that the text of a module names, without comments and
/// without the tests at the end of the file.
fn paths_in(module: &[&str], text: &str) -> Vec<Vec<String>> {
    let is_end = |at: &usize| {
        let mut lines = text[*at..].lines();
        // Tests may need a feature too.
        let next = lines.find(|line| !line.starts_with("#[cfg("));
        next.is_some_and(|line| line.starts_with("mod "))
    };
    let mut tests = text.match_indices("#[cfg(test)]\n").map(|(at, _)| at);
    let code = &text[..tests.find(is_end).unwrap_or(text.len())];
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code: String = code.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    let mut paths = Vec::new();
    for after in code.split("crate::").skip(1) {
        expand(after, &mut Vec::new(), &mut paths);
    }
    // Each `super` but the first of a path is a name of that path, and removes another one.
    let parent = &module[..module.len().saturating_sub(1)];
    let mut relative = Vec::new();
    let mut rest = code.as_str();
    while let Some(at) = rest.find("super::") {
        rest = expand(
            &rest[at + "super::".len()..],
            &mut Vec::new(),
            &mut relative,
        );
    }
    paths.extend(relative.into_iter().map(|path| {
        let mut absolute: Vec<String> = parent.iter().map(|name| (*name).to_owned()).collect();
        for name in path {
            if name == "super" {
                absolute.pop();
            } else {
                absolute.push(name);
            }
        }
        absolute
    }));
    paths
}

/// Reads one tree of paths, `a::{b, c::d}`, and returns the text behind it.
fn expand<'a>(text: &'a str, prefix: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> &'a str {
    let depth = prefix.len();
    let mut rest = text.trim_start();
    loop {
        if let Some(mut list) = rest.strip_prefix('{') {
            while !list.trim_start().starts_with('}') && !list.trim_start().is_empty() {
                let behind = expand(list, prefix, paths).trim_start();
                // Skips the comma, or a glob.
                list = behind
                    .get(1..)
                    .filter(|_| !behind.starts_with('}'))
                    .unwrap_or(behind);
            }
            rest = list.trim_start().strip_prefix('}').unwrap_or_default();
            break;
        }
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        prefix.push(rest[..end].to_owned());
        rest = &rest[end..];
        if let Some(next) = rest.strip_prefix("::") {
            rest = next;
            continue;
        }
        paths.push(prefix.clone());
        // An alias belongs to the same path.
        if let Some(alias) = rest.trim_start().strip_prefix("as ") {
            rest = alias.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        }
        break;
    }
    prefix.truncate(depth);
    rest
}
