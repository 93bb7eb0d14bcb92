//! The valid word most like a wrong one, for error messages.

/// The candidate most like `word`, if any is like it at all.
pub(crate) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_misspelt_word_is_recognised_and_a_strange_one_is_not() {
        let words = ["max-retries", "max-delay", "jitter"];
        assert_eq!(nearest("max-retrys", words), Some("max-retries"));
        assert_eq!(nearest("jiter", words), Some("jitter"));
        assert_eq!(nearest("colour", words), None);
    }
}
