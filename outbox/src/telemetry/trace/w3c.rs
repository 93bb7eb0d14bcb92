//! Reads the W3C trace context in the headers of a record. Another process or program may have
//! written it, so every part is checked, and an invalid context counts as absent.

use std::collections::BTreeMap;

/// The header that names the span that published the record.
pub(crate) const TRACEPARENT: &str = "traceparent";
/// The header with the additions of tracing systems.
pub(crate) const TRACESTATE: &str = "tracestate";

/// The longest `tracestate` that is read or written, in bytes. W3C asks every system to pass on at
/// least this length.
pub(super) const LONGEST_STATE: usize = 512;

/// Trace id, span id, flags.
pub(crate) type TraceParent = (u128, u64, u8);

/// Reads a `traceparent`: version, trace id, span id, flags. A later version may add fields.
pub(crate) fn trace_parent(text: &str) -> Option<TraceParent> {
    let version = u8::try_from(hex(text, 0, 2)?).ok()?;
    let trace_id = hex(text, 3, 32)?;
    let span_id = u64::try_from(hex(text, 36, 16)?).ok()?;
    let flags = u8::try_from(hex(text, 53, 2)?).ok()?;
    let has_dashes = [2, 35, 52].iter().all(|&at| text.as_bytes()[at] == b'-');
    let has_valid_end = match text.as_bytes().get(55) {
        None => true,
        Some(next) => version > 0 && *next == b'-',
    };
    let has_valid_ids = version != 0xff && trace_id != 0 && span_id != 0;
    (has_dashes && has_valid_end && has_valid_ids).then_some((trace_id, span_id, flags))
}

/// Reads hexadecimal digits, lower case only.
fn hex(text: &str, from: usize, digits: usize) -> Option<u128> {
    let text = text.get(from..from.checked_add(digits)?)?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    let is_hex = text.bytes().all(is_digit);
    is_hex.then(|| u128::from_str_radix(text, 16).ok())?
}

/// The `tracestate` of these headers, if it is valid: members, separated by commas.
pub(crate) fn trace_state(headers: &BTreeMap<String, String>) -> Option<&str> {
    let state = headers.get(TRACESTATE)?;
    let is_short = !state.is_empty() && state.len() <= LONGEST_STATE;
    (is_short && state.split(',').all(is_member)).then_some(state)
}

/// Whether the text is the key of a tracing system, `=`, and a value.
fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.trim_matches([' ', '\t']).split_once('=') else {
        return false;
    };
    let is_key_byte =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let is_value_byte = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'=';
    let has_valid_start =
        key.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    has_valid_start
        && key.bytes().all(is_key_byte)
        && !value.is_empty()
        && value.bytes().all(is_value_byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_trace_parent_is_read() {
        let expected = (
            0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
            0xb7ad_6b71_6920_3331,
            1,
        );
        assert_eq!(trace_parent(ONE), Some(expected));
        let later = format!("{}-more", ONE.replacen("00-", "01-", 1));
        assert_eq!(trace_parent(&later), Some(expected));
    }

    #[test]
    fn an_invalid_trace_parent_is_none() {
        for wrong in [
            "",
            "rubbish",
            &ONE[..54],
            &format!("{ONE}-more"),
            &format!("{ONE} "),
            &ONE.replacen("00-", "ff-", 1),
            &ONE.replacen("00-", "0g-", 1),
            &ONE.replacen("00-", "+1-", 1),
            &ONE.to_uppercase(),
            &ONE.replace('-', "_"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333é-01",
        ] {
            assert_eq!(trace_parent(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_trace_state_is_a_short_list_of_members() {
        let of = |state: &str| {
            let headers = BTreeMap::from([(TRACESTATE.to_owned(), state.to_owned())]);
            trace_state(&headers).map(ToOwned::to_owned)
        };
        for right in ["a=1", "a=1,b=2", "a=1, t61@vendor=x/y:z ~"] {
            assert_eq!(of(right).as_deref(), Some(right));
        }
        for wrong in [
            "", "a", "=", "=,==", "a=", "=1", "A=1", "a=1=2", "a=\n", "ä=1", "a=ä", "a=1,,b=2",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let long = |bytes: usize| format!("a={}", "1".repeat(bytes - 2));
        assert!(of(&long(512)).is_some() && of(&long(513)).is_none());
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "\\PC*", near in "[0-9a-fé-]{50,60}") {
            let _ = trace_parent(&text);
            let _ = trace_parent(&near);
            let _ = trace_state(&BTreeMap::from([(TRACESTATE.to_owned(), text)]));
        }
    }
}
