//! [`nearest`]: the known name that a mistyped name probably means.

/// Names longer than this (in characters) are not compared: no known name is as long, and the
/// comparison needs memory for each character.
const LONGEST: usize = 100;

/// The known name that is most similar to `name`, if one is similar enough. Another case style
/// (`maxRetries`, `max_retries`) and the end of a path (`io::Error`) count as equal.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let count = name.chars().count();
    if count > LONGEST {
        return None;
    }
    let (name, path) = (kebab(name), format!("::{name}"));
    known
        .into_iter()
        .filter_map(|candidate| {
            let distance = if candidate.ends_with(&path) {
                0
            } else {
                strsim::osa_distance(&name, &kebab(candidate))
            };
            (distance <= (count / 3).max(1)).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `maxRetries`, `max_retries` and `MAX_RETRIES` as `max-retries`.
pub(crate) fn kebab(name: &str) -> String {
    let mut words = String::with_capacity(name.len());
    let mut inside_word = false;
    for c in name.chars() {
        if c.is_uppercase() && inside_word {
            words.push('-');
        }
        inside_word = c.is_lowercase() || c.is_numeric();
        if c == '_' {
            words.push('-');
        } else {
            words.extend(c.to_lowercase());
        }
    }
    words
}

/// `` `a`, `b`, `c` ``.
pub(crate) fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["max-retries", "max-elapsed", "policy", "std::io::Error"];

    #[test]
    fn a_typo_and_another_case_are_recognised() {
        for written in [
            "max-retrys",
            "maxRetries",
            "max_retries",
            "MAX_RETRIES",
            "max-retires",
        ] {
            assert_eq!(nearest(written, KEYS), Some("max-retries"), "{written}");
        }
        assert_eq!(nearest("io::Error", KEYS), Some("std::io::Error"));
    }

    #[test]
    fn a_different_name_is_not_near() {
        for written in ["", "server", "java.io.IOException", &"p".repeat(1_000_000)] {
            assert_eq!(nearest(written, KEYS), None);
        }
    }
}
