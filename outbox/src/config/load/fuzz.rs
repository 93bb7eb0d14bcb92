//! No input makes loading panic, overflow the stack or hang.

use proptest::prelude::*;

use super::*;

fn load(format: Format, text: &str) -> Result<Config, ConfigError> {
    Config::loader()
        .text(format, "any", text)
        .environment([])
        .load()
}

/// Text that gets far into the parsers and past them.
fn likely_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("retry"),
        Just("policy"),
        Just("exponential"),
        Just("multiplier"),
        Just("jitter"),
        Just("outbox"),
        Just("namastack"),
        Just("policies"),
        Just("include-exceptions"),
        Just(": "),
        Just(":\n  "),
        Just("\n"),
        Just("\n  "),
        Just("\n    "),
        Just(" = "),
        Just("- "),
        Just("["),
        Just("]"),
        Just("{"),
        Just("}"),
        Just("\""),
        Just("'"),
        Just(", "),
        Just("."),
        Just("|"),
        Just("? "),
        Just("&a "),
        Just("*a"),
        Just("!!str "),
        Just("---"),
        Just("\t"),
        Just("#"),
        Just("1.0"),
        Just("-1"),
        Just("1e999"),
        Just(".nan"),
        Just("inf"),
        Just("nan"),
        Just("0x"),
        Just("99999999999999999999999999999999999999999999"),
        Just("5s"),
        Just("1979-05-27"),
        Just("\u{feff}"),
        Just("\u{0}"),
        Just("é"),
        Just("\r"),
        Just("<<"),
        Just("~"),
        Just("true"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in prop_oneof![likely_text(), ".*", "(?s).{0,60}"]) {
        for format in [Format::Toml, Format::Yaml] {
            if let Err(error) = load(format, &text) {
                prop_assert!(error.to_string().starts_with("any:"), "{error}");
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        for format in [Format::Toml, Format::Yaml] {
            if let Ok(source) = Source::of_bytes("any".to_owned(), bytes.clone()) {
                let _ = match format {
                    Format::Toml => toml::parse(&source),
                    Format::Yaml => yaml::parse(&source),
                };
            }
        }
    }

    #[test]
    fn no_variable_panics(name in "[A-Za-z_]{0,20}", value in ".*") {
        let variables = [(format!("OUTBOX__{name}"), value)];
        let _ = Config::loader().environment(variables).load();
    }
}

/// The parsers are given the longest text there may be, on a thread with little stack.
#[test]
fn deep_nesting_overflows_no_stack() {
    let check = || {
        for piece in [
            "[", "{", "- ", "? ", "{a: [", "a: {", "[[", "a.", "&a ", "\"", "'", "a={",
        ] {
            let text = format!("a = {piece}").repeat(Source::LONGEST / (piece.len() + 4));
            let nested = piece.repeat(Source::LONGEST / piece.len());
            for text in [&text, &nested] {
                assert!(load(Format::Toml, text).is_err());
                assert!(load(Format::Yaml, text).is_err());
            }
        }
    };
    std::thread::Builder::new()
        .stack_size(512 * 1024)
        .spawn(check)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn many_values_in_one_line_take_no_quadratic_time() {
    let wide = format!("x = [{}]", "1,".repeat(Source::LONGEST / 2 - 10));
    assert!(load(Format::Toml, &wide).is_err());
    let keys: String = (0..60_000).map(|n| format!("k{n}: é\n")).collect();
    assert!(load(Format::Yaml, &keys).is_err());
}
