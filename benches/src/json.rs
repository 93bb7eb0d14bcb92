//! Figures for programs: one JSON object per line.

use crate::verdict::Verdict;

pub(crate) fn line(verdict: &Verdict) -> anyhow::Result<String> {
    Ok(serde_json::to_string(verdict)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Kind;

    #[test]
    fn a_figure_is_one_line_with_documented_names() {
        let pair = (97_000.0, 100_000.0);
        let verdict =
            Verdict::more_is_better("drain", Some(Kind::Postgres), "records/s", pair, 1.0)
                .with("note", "two\nlines");
        let line = line(&verdict).unwrap();
        assert!(
            !line.contains('\n') && line.starts_with(r#"{"scenario":"drain""#),
            "{line}"
        );
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["scenario"], "drain");
        assert_eq!(read["db"], "postgres");
        assert_eq!(read["ours"], 97_000.0);
        assert_eq!(read["reference"], 100_000.0);
        assert_eq!(read["ratio"], 0.97);
        assert_eq!(read["goal"], 1.0);
        assert_eq!(read["ok"], false);
    }

    #[test]
    fn a_skipped_scenario_has_a_reason_and_no_figures() {
        let line = line(&Verdict::skipped("idle", Kind::Sqlite, "no server")).unwrap();
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["skipped"], "no server");
        assert!(read["ok"].is_null() && read["ratio"].is_null());
    }
}
