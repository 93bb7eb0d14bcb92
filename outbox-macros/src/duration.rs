//! Durations as they are written in attributes: `"500ms"`, `"1h 30m"`.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, ExprLit, Lit};

use crate::errors::Errors;

/// A duration longer than zero, or a mistake.
pub(crate) fn read(what: &str, value: &Expr, errors: &mut Errors) -> Option<Duration> {
    let Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    }) = value
    else {
        errors.at(
            value,
            format!("`{what}` is a duration in quotes, such as \"500ms\", \"30s\" or \"1h 30m\""),
        );
        return None;
    };
    match humantime::parse_duration(&text.value()) {
        Ok(Duration::ZERO) => {
            errors.at(text, format!("`{what}` must be longer than zero"));
            None
        }
        Ok(duration) => Some(duration),
        Err(error) => {
            let text_value = text.value();
            errors.at(
                text,
                format!("\"{text_value}\" is not a duration ({error}); write one such as \"500ms\", \"30s\" or \"1h 30m\""),
            );
            None
        }
    }
}

/// The expression that makes it.
pub(crate) fn tokens(duration: Duration) -> TokenStream {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    quote!(::core::time::Duration::new(#seconds, #nanos))
}
