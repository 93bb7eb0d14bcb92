//! [`Kind`]: the type of a value that is neither a list nor a section.

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    /// If there are too many digits, the nearest `i128`.
    Integer(i128),
    Float(f64),
    Text,
    /// From the environment. The field decides how the text is read.
    Untyped,
}

/// The longest value in a message, in characters.
const SHOWN: usize = 60;

/// The value, as a part of a sentence.
pub(super) fn describe(text: &str, kind: Kind) -> String {
    if kind == Kind::Null || text.is_empty() {
        return "has no value".to_owned();
    }
    // Without this word a reader would overlook quotes that change the type.
    let quoted = kind == Kind::Text && plain(text) != Kind::Text;
    let kind = if quoted { "the text " } else { "" };
    format!("is {kind}`{}`", shown(text))
}

/// The text on one line, cut to [`SHOWN`] characters.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Reads a plain scalar by the core schema of YAML 1.2.
pub(super) fn plain(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" => Kind::Bool(true),
        "false" | "False" | "FALSE" => Kind::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Kind::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Kind::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Kind::Float(f64::NEG_INFINITY),
        _ => integer(text).or_else(|| float(text)).unwrap_or(Kind::Text),
    }
}

fn integer(text: &str) -> Option<Kind> {
    let (digits, radix) = match text.split_at_checked(2) {
        Some(("0o", digits)) => (digits, 8),
        Some(("0x", digits)) => (digits, 16),
        _ => (text, 10),
    };
    let sign = if radix == 10 { &['+', '-'][..] } else { &[] };
    let unsigned = digits.strip_prefix(sign).unwrap_or(digits);
    let all_digits = !unsigned.is_empty() && unsigned.chars().all(|c| c.is_digit(radix));
    all_digits.then(|| of_digits(digits, radix))
}

/// An integer from digits of that radix and an optional sign.
pub(super) fn of_digits(digits: &str, radix: u32) -> Kind {
    let nearest = if digits.starts_with('-') {
        i128::MIN
    } else {
        i128::MAX
    };
    Kind::Integer(i128::from_str_radix(digits, radix).unwrap_or(nearest))
}

fn float(text: &str) -> Option<Kind> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    // Rust reads `inf`, `nan` and `infinity` too, which the schema does not.
    let looks_like_one = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.contains(|c: char| c.is_ascii_digit());
    looks_like_one.then(|| text.parse().ok().map(Kind::Float))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_read_by_the_core_schema() {
        for text in ["", "~", "null", "NULL"] {
            assert_eq!(plain(text), Kind::Null, "{text}");
        }
        assert_eq!(plain("True"), Kind::Bool(true));
        assert_eq!(plain("-12"), Kind::Integer(-12));
        assert_eq!(plain("+12"), Kind::Integer(12));
        assert_eq!(plain("0x1F"), Kind::Integer(31));
        assert_eq!(plain("0o17"), Kind::Integer(15));
        assert_eq!(plain("017"), Kind::Integer(17));
        assert_eq!(plain("2.0"), Kind::Float(2.0));
        assert_eq!(plain("-.5e1"), Kind::Float(-5.0));
        assert_eq!(plain("-.inf"), Kind::Float(f64::NEG_INFINITY));
        assert!(matches!(plain(".nan"), Kind::Float(nan) if nan.is_nan()));
        for text in [
            "yes", "nan", "inf", "1_000", "5s", "0x", "-", ".", "e5", "1.2.3", "0x-1", "--1",
        ] {
            assert_eq!(plain(text), Kind::Text, "{text}");
        }
    }

    #[test]
    fn too_many_digits_are_the_nearest_number() {
        let digits = "9".repeat(100);
        assert_eq!(plain(&digits), Kind::Integer(i128::MAX));
        assert_eq!(plain(&format!("-{digits}")), Kind::Integer(i128::MIN));
    }

    #[test]
    fn a_message_says_when_quotes_make_the_difference() {
        assert_eq!(describe("5", plain("5")), "is `5`");
        assert_eq!(describe("5", Kind::Text), "is the text `5`");
        assert_eq!(describe("", plain("")), "has no value");
    }

    #[test]
    fn a_message_shows_one_short_line() {
        assert_eq!(describe("a\nb", Kind::Text), r"is `a\nb`");
        let long = describe(&"é".repeat(1_000), Kind::Text);
        assert_eq!(long.chars().count(), SHOWN + 6);
    }
}
