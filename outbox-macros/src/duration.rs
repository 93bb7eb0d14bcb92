//! Durations as they are written in attributes: `"500ms"`, `"1h 30m"`.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, ExprLit, Lit};

use crate::errors::Errors;

const SUCH_AS: &str = "such as \"500ms\", \"30s\" or \"1h 30m\"";

/// Parses a duration. Reports a mistake if it is invalid or zero.
pub(crate) fn read(what: &str, value: &Expr, errors: &mut Errors) -> Option<Duration> {
    let Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    }) = value
    else {
        errors.at(
            value,
            format!("`{what}` is a duration in quotes, {SUCH_AS}"),
        );
        return None;
    };
    match humantime::parse_duration(&text.value()) {
        Ok(Duration::ZERO) => {
            let message = format!("`{what}` must be longer than zero: write a duration {SUCH_AS}");
            errors.at(text, message);
            None
        }
        Ok(duration) => Some(duration),
        Err(_) => {
            let written = text.value();
            let message =
                format!("\"{written}\" is not a duration: write a number and a unit, {SUCH_AS}");
            errors.at(text, message);
            None
        }
    }
}

/// The expression that makes the duration.
pub(crate) fn tokens(duration: Duration) -> TokenStream {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    quote!(::core::time::Duration::new(#seconds, #nanos))
}
