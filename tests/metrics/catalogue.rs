//! The documentation, the dashboard and the alerts name only metrics that exist.

use std::collections::{BTreeMap, BTreeSet};

use outbox::metrics::{Kind, Metric, names};
use saphyr_parser::{Event, Parser};
use serde_json::Value;

const DOCS: &str = include_str!("../../outbox/docs/metrics.md");
const DASHBOARD: &str = include_str!("../../monitoring/dashboard.json");
const ALERTS: &str = include_str!("../../monitoring/alerts.yaml");

fn metric(name: &str) -> Option<&'static Metric> {
    names::ALL.iter().find(|metric| metric.name == name)
}

/// The metric of a series. A histogram has three series, with suffixes.
fn of_series(name: &str) -> Option<&'static Metric> {
    let base = ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix));
    match base.and_then(metric) {
        Some(histogram) if histogram.kind == Kind::Histogram => Some(histogram),
        _ => metric(name).filter(|metric| metric.kind != Kind::Histogram),
    }
}

/// The series of this library that an expression names, with the labels that it selects.
fn series(expression: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find("outbox_") {
        let name: String = rest[at..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        rest = &rest[at + name.len()..];
        let labels = match rest
            .strip_prefix('{')
            .and_then(|labels| labels.split_once('}'))
        {
            Some((labels, _)) => labels.split(',').map(label).collect(),
            None => Vec::new(),
        };
        found.push((name, labels));
    }
    found
}

fn label(matcher: &str) -> String {
    let end = matcher.find(['=', '!']).expect("a matcher");
    matcher[..end].trim().to_owned()
}

/// Labels that Prometheus or the dashboard adds to every series.
const ADDED: [&str; 4] = ["job", "instance", "le", "$handler"];

/// The labels that an expression groups by.
fn grouped(expression: &str) -> Vec<String> {
    let groups = expression.split(" by (").skip(1);
    let labels = groups.filter_map(|group| group.split_once(')'));
    labels
        .flat_map(|(labels, _)| labels.split(','))
        .map(|label| label.trim().to_owned())
        .collect()
}

fn check(place: &str, expression: &str, used: &mut BTreeSet<&'static str>) {
    let series = series(expression);
    assert!(!series.is_empty(), "{place}: {expression}");
    let mut labels = BTreeSet::from(ADDED);
    for (name, selected) in &series {
        let metric = of_series(name).unwrap_or_else(|| panic!("{place}: {name} does not exist"));
        used.insert(metric.name);
        labels.extend(metric.labels);
        for label in selected {
            let known = metric.labels.contains(&&**label) || ADDED.contains(&&**label);
            assert!(known, "{place}: {name} has no label {label}");
        }
        // A gauge must not have a rate, and every other metric must have one.
        let at = expression.find(name.as_str()).unwrap_or(0);
        let rated = expression[..at].ends_with("rate(") || expression[..at].ends_with("increase(");
        assert_eq!(rated, metric.kind != Kind::Gauge, "{place}: {expression}");
    }
    for label in grouped(expression) {
        assert!(
            labels.contains(&*label),
            "{place}: no metric has a label {label}"
        );
    }
}

/// All texts under a key, at any depth.
fn texts<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if name == key => found.push(text),
                    _ => texts(value, key, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| texts(value, key, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_shows_every_metric_and_no_other() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let (mut expressions, mut queries) = (Vec::new(), Vec::new());
    texts(&dashboard, "expr", &mut expressions);
    texts(&dashboard, "query", &mut queries);
    let mut used = BTreeSet::new();
    for expression in &expressions {
        check("dashboard", expression, &mut used);
    }
    for query in queries.iter().filter(|query| query.contains("outbox_")) {
        for (name, _) in series(query) {
            assert!(of_series(&name).is_some(), "{name} does not exist");
        }
    }
    let all: BTreeSet<&str> = names::ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(used, all);
    // The ids of panels are unique.
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<u64> = panels
        .iter()
        .filter_map(|panel| panel["id"].as_u64())
        .collect();
    assert_eq!(ids.len(), panels.len());
}

/// The expressions of alerts by name. In the YAML each rule has `alert` before `expr`.
fn alerts() -> BTreeMap<String, String> {
    let (mut scalars, mut alerts) = (Vec::new(), BTreeMap::new());
    for event in Parser::new_from_str(ALERTS) {
        let (event, _) = event.expect("YAML");
        if let Event::Scalar(text, ..) = event {
            scalars.push(text.into_owned());
        }
    }
    let mut last_name = None;
    for pair in scalars.windows(2) {
        match &*pair[0] {
            "alert" => last_name = Some(pair[1].clone()),
            "expr" => {
                let name = last_name.take().expect("an alert before its expression");
                assert_eq!(alerts.insert(name, pair[1].clone()), None);
            }
            _ => {}
        }
    }
    alerts
}

#[test]
fn alerts_use_only_metrics_that_exist() {
    let alerts = alerts();
    assert_eq!(alerts.len(), ALERTS.matches("- alert:").count());
    assert!(alerts.len() >= 10, "{alerts:?}");
    let mut used = BTreeSet::new();
    for (name, expression) in &alerts {
        check(name, expression, &mut used);
    }
    for metric in [
        names::OLDEST_PENDING_AGE,
        names::PERMANENT_FAILURES,
        names::PARTITIONS_UNOWNED,
        names::TRANSACTIONS,
        names::TRANSACTION_CIRCUIT_OPEN,
    ] {
        assert!(used.contains(metric.name), "no alert uses {}", metric.name);
    }
}

#[test]
fn the_documentation_lists_every_metric() {
    let rows = DOCS.lines().filter(|line| line.starts_with("| `outbox_"));
    let documented: Vec<Vec<String>> = rows
        .map(|row| {
            row.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect();
    let expected: Vec<Vec<String>> = names::ALL
        .iter()
        .map(|metric| {
            let labels: Vec<String> = metric
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            vec![
                format!("`{}`", metric.name),
                metric.kind.as_str().to_owned(),
                metric.unit.as_str().to_owned(),
                labels.join(", "),
                metric.help.to_owned(),
            ]
        })
        .collect();
    assert_eq!(documented, expected);
    // The text around the table names only metrics that exist.
    for word in DOCS.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        if word.starts_with("outbox_") && word != "outbox_instance" {
            assert!(metric(word).is_some(), "{word} does not exist");
        }
    }
    for label in names::ALL.iter().flat_map(|metric| metric.labels) {
        assert!(
            DOCS.contains(&format!("| `{label}`")),
            "the values of {label} are not documented"
        );
    }
}
