//! Figures as a page for a browser: charts and a table, in one self-contained file.

mod chart;

use std::fmt::Write as _;

use crate::{
    database::Kind,
    table::number,
    verdict::{Outcome, Verdict},
};

const STYLE: &str = ":root { color-scheme: light dark; --ground: #fff; --text: #1d2129; --faint: #667; --line: #d5d9e0;
  --ours: #2563b0; --reference: #a9b4c4; --good: #2f8a57; --missed: #c2543d; }
@media (prefers-color-scheme: dark) { :root { --ground: #15181d; --text: #e4e7ec; --faint: #98a1b0; --line: #333a45;
  --ours: #6ba4e8; --reference: #5a6678; --good: #58b583; --missed: #e08068; } }
body { font: 15px/1.5 system-ui, sans-serif; background: var(--ground); color: var(--text); margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h2 { margin-top: 2.5rem; } p, figcaption { color: var(--faint); }
figure { margin: 1rem 0; overflow-x: auto; } svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; } .missed { color: var(--missed); } .good { color: var(--good); }
small { color: var(--faint); }";

/// The whole page.
pub(crate) fn page(verdicts: &[Verdict]) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>outbox benchmarks</title>\n",
    );
    page.push_str(&format!("<style>\n{STYLE}\n</style>\n</head>\n<body>\n"));
    page.push_str(
        "<h1>outbox benchmarks</h1>\n<p>Each figure compares two things that were measured in turns, in the same run; \
         the best of several rounds of each counts. The program checked each run: every record was handled once, and the records of each key in order.</p>\n",
    );
    page.push_str("<h2>Ratio against goal</h2>\n");
    page.push_str(&chart::ratios(verdicts));
    for kind in Kind::ALL {
        if let Some(chart) = chart::rates(verdicts, kind) {
            let name = kind.name();
            page.push_str(&format!("<h2>Records per second, {name}</h2>\n{chart}"));
        }
    }
    page.push_str("<h2>Figures</h2>\n");
    page.push_str(&table(verdicts));
    page.push_str("</body>\n</html>\n");
    page
}

fn table(verdicts: &[Verdict]) -> String {
    let mut table = String::from(
        "<table>\n<thead><tr><th>scenario</th><th>database</th><th class=\"number\">ours</th>\
         <th class=\"number\">reference</th><th>unit</th><th class=\"number\">ratio</th>\
         <th class=\"number\">goal</th></tr></thead>\n<tbody>\n",
    );
    for verdict in verdicts {
        let (scenario, db) = (escape(&verdict.scenario), verdict.db.map_or("", Kind::name));
        let more = more(verdict);
        let cells = match &verdict.outcome {
            Outcome::Skipped(reason) => {
                format!("<td colspan=\"5\">skipped: {}</td>", escape(reason))
            }
            Outcome::Measured {
                ours,
                reference,
                ratio,
                goal,
            } => {
                let class = match (goal, verdict.missed()) {
                    (None, _) => "number",
                    (Some(_), true) => "number missed",
                    (Some(_), false) => "number good",
                };
                format!(
                    "<td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td>\
                     <td class=\"{class}\">{ratio:.2}</td><td class=\"number\">{}</td>",
                    number(*ours),
                    number(*reference),
                    escape(verdict.unit),
                    goal.map_or(String::new(), |goal| format!("{goal:.2}"))
                )
            }
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "<tr><td>{scenario}<br><small>{more}</small></td><td>{db}</td>{cells}</tr>"
        );
    }
    table.push_str("</tbody>\n</table>\n");
    table
}

fn more(verdict: &Verdict) -> String {
    let fields = verdict.more.iter().map(|(name, value)| {
        let value = match value {
            serde_json::Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        escape(&format!("{} {value}", name.replace('_', " ")))
    });
    fields.collect::<Vec<_>>().join(", ")
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts() -> Vec<Verdict> {
        let evil = "<script>alert('&\")</script>";
        vec![
            Verdict::more_is_better(evil, Some(Kind::Postgres), "records/s", (9.0, 10.0), 1.0)
                .with(evil, evil),
            Verdict::more_is_better("drain", Some(Kind::Sqlite), "records/s", (9.0, 3.0), 1.0),
            Verdict::skipped("idle", Kind::Sqlite, evil),
        ]
    }

    #[test]
    fn texts_of_measurements_are_escaped() {
        let page = page(&verdicts());
        assert!(!page.contains("<script"));
        assert!(page.contains("&lt;script&gt;alert(&#39;&amp;&quot;)"));
    }

    #[test]
    fn the_page_loads_no_other_file() {
        let page = page(&verdicts());
        for word in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.contains("<svg") && page.contains("prefers-color-scheme"));
    }
}
