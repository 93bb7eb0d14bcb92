//! [`Failure`]: a failed attempt as it is stored, and the names of the kinds of failures.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::handler::{FailureKind, HandlerError};

/// A failed attempt as it is stored. Never logged: the text may quote the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// The error and everything that caused it.
    pub(crate) text: String,
    /// The same for failures of one handler that differ only in numbers and quoted values. Begins
    /// with the version of the rule by which they are compared; see [`fingerprint`].
    pub(crate) fingerprint: String,
}

/// The longest stored text, in bytes.
const LONGEST_TEXT: usize = 1024;

impl Failure {
    pub(crate) fn of(handler: &str, error: &HandlerError) -> Self {
        let kind = error.kind();
        // `Display` is code of the user and may panic. This runs in a worker.
        let text = catch_unwind(AssertUnwindSafe(|| format!("{error:#}")));
        let text = text.unwrap_or_else(|_| "an error whose text panicked".to_owned());
        // The databases cannot store NUL in text.
        let mut text = text.replace('\0', "\u{fffd}");
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        Self {
            kind,
            fingerprint: fingerprint(handler, kind.name(), &text),
            text,
        }
    }
}

impl FailureKind {
    /// The names of all kinds: stored with each failure, values of the span field `failure`, and
    /// labels of metrics. In the order of [`index`](Self::index). They must not change.
    pub(crate) const NAMES: [&str; 8] = [
        "error",
        "permanent",
        "retry_after",
        "unavailable",
        "timed_out",
        "panicked",
        "undecodable",
        "invalid",
    ];

    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// The position in [`NAMES`](Self::NAMES).
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Error => 0,
            Self::Permanent => 1,
            Self::RetryAfter(_) => 2,
            Self::Unavailable => 3,
            Self::TimedOut => 4,
            Self::Panicked => 5,
            Self::Undecodable => 6,
            Self::Invalid => 7,
        }
    }
}

/// The prefix of every fingerprint. A fingerprint is stored, so neither the hash nor what it leaves
/// out may change within a version. A change of either gets the next version: `v2:`.
const FINGERPRINT_VERSION: &str = "v1:";

/// `v1:` and 16 hexadecimal digits: the FNV-1a hash of the handler, the kind and the text, in which
/// each run of digits counts as one `0` and text between `"` or `` ` `` is left out.
fn fingerprint(handler: &str, kind: &str, text: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |byte: u8| {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    };
    for part in [handler, kind] {
        part.bytes().for_each(&mut add);
        add(0);
    }
    let mut quote = None;
    let mut in_number = false;
    for byte in text.bytes() {
        let is_number = byte.is_ascii_digit();
        match quote {
            Some(end) if byte == end => quote = None,
            Some(_) => continue,
            None if matches!(byte, b'"' | b'`') => quote = Some(byte),
            None => {}
        }
        if !(is_number && in_number) {
            add(if is_number { b'0' } else { byte });
        }
        in_number = is_number;
    }
    format!("{FINGERPRINT_VERSION}{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        Failure::of("charge", &HandlerError::from(text.to_owned())).fingerprint
    }

    #[test]
    fn numbers_and_quoted_values_make_no_difference() {
        assert_eq!(of("timeout after 30 ms"), of("timeout after 1250 ms"));
        assert_eq!(of("no card `a` for \"b\""), of("no card `x y` for \"\""));
        assert_ne!(of("no card"), of("no bank"));
        assert_ne!(of("timeout after ms"), of("timeout after 30 ms"));
    }

    #[test]
    fn a_fingerprint_has_a_version_and_never_changes() {
        assert_eq!(of("no card `a` after 30 ms"), "v1:413a3d3b3c10a096");
        assert_eq!(of(""), "v1:9a68c467a43b0e11");
    }

    #[test]
    fn handler_and_kind_make_a_difference() {
        let permanent = Failure::of("charge", &HandlerError::permanent("no card"));
        assert_ne!(permanent.fingerprint, of("no card"));
        let other = Failure::of("refund", &HandlerError::from("no card"));
        assert_ne!(other.fingerprint, of("no card"));
    }

    #[test]
    fn an_error_whose_text_panics_has_another() {
        #[derive(Debug)]
        struct Wild;
        impl std::fmt::Display for Wild {
            fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                panic!("in Display")
            }
        }
        impl std::error::Error for Wild {}
        let failure = Failure::of("charge", &HandlerError::from(Wild));
        assert_eq!(failure.text, "an error whose text panicked");
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_has_no_nul() {
        let error = HandlerError::from(format!("\0{}", "ä".repeat(5000)));
        let failure = Failure::of("charge", &error);
        assert!(failure.text.len() <= LONGEST_TEXT && failure.text.ends_with('ä'));
        assert!(!failure.text.contains('\0'));
    }
}
