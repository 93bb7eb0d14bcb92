//! `fixed(..)`, `linear(..)` and `exponential(..)`, read and checked.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::ToTokens as _;
use syn::{Expr, ExprLit, Ident};

use super::policy::Backoff;
use crate::{
    arguments::{self, Argument, Value},
    duration,
    errors::Errors,
    literals,
};

/// `fixed("5s")`, `linear(..)`, `exponential(..)`; the defaults are those of the configuration.
pub(super) fn read(argument: &Argument, errors: &mut Errors) -> Option<Backoff> {
    let tokens = match &argument.value {
        Value::List(tokens) => tokens.clone(),
        Value::Absent => TokenStream::new(),
        Value::Is(value) => {
            let (key, delay) = (&argument.key, value.to_token_stream());
            let named = if key == "fixed" { "" } else { "initial = " };
            errors.at(
                value,
                format!("`{key}` takes its delays in parentheses: `{key}({named}{delay})`"),
            );
            return None;
        }
    };
    if argument.key == "fixed" {
        fixed(tokens, errors)
    } else {
        growing(&argument.key, tokens, errors)
    }
}

/// `linear(..)` and `exponential(..)`.
fn growing(kind: &Ident, tokens: TokenStream, errors: &mut Errors) -> Option<Backoff> {
    const SECOND: Duration = Duration::from_secs(1);
    let is_linear = kind == "linear";
    let known = [
        "initial",
        if is_linear { "increment" } else { "multiplier" },
        "max",
    ];
    let parts = arguments::parse(tokens, "initial = \"1s\"", errors);
    for part in &parts {
        if !known.contains(&part.key.to_string().as_str()) {
            arguments::unknown(&part.key, &format!("`{kind}`"), &known, errors);
        }
    }
    let part = |name: &str| parts.iter().find(|part| part.key == name);
    let mut delay = |name: &str, default: Duration| match part(name) {
        Some(part) => part
            .expression(&format!("{name} = \"1s\""), errors)
            .and_then(|value| duration::read(name, value, errors)),
        None => Some(default),
    };
    let initial = delay("initial", if is_linear { 2 * SECOND } else { SECOND });
    let increment = delay("increment", 2 * SECOND);
    let max = delay("max", 60 * SECOND);
    let multiplier = match part("multiplier") {
        Some(part) if !is_linear => multiplier(part, errors),
        _ => Some(2.0),
    };
    let (initial, max) = (initial?, max?);
    if max < initial {
        let guilty = part("max").or(part("initial")).map(Argument::guilty);
        errors.at(
            guilty.unwrap_or_else(|| kind.to_token_stream()),
            format!("the longest delay, {max:?}, is below the initial one, {initial:?}: give a longer `max`"),
        );
    }
    Some(if is_linear {
        Backoff::Linear {
            initial,
            increment: increment?,
            max,
        }
    } else {
        Backoff::Exponential {
            initial,
            multiplier: multiplier?,
            max,
        }
    })
}

/// `fixed("5s")` or `fixed(delay = "5s")`.
fn fixed(tokens: TokenStream, errors: &mut Errors) -> Option<Backoff> {
    let delay = match syn::parse2::<ExprLit>(tokens.clone()) {
        Ok(only) => duration::read("delay", &Expr::Lit(only), errors)?,
        Err(_) if tokens.is_empty() => Duration::from_secs(5),
        Err(_) => {
            let mut delay = None;
            for part in arguments::parse(tokens, "delay = \"5s\"", errors) {
                if part.key == "delay" {
                    delay = part
                        .expression("delay = \"5s\"", errors)
                        .and_then(|value| duration::read("delay", value, errors));
                } else {
                    arguments::unknown(&part.key, "`fixed`", &["delay"], errors);
                }
            }
            delay?
        }
    };
    Some(Backoff::Fixed { delay })
}

fn multiplier(part: &Argument, errors: &mut Errors) -> Option<f64> {
    let value = part.expression("multiplier = 2.0", errors)?;
    let number = literals::number(value).filter(|number| number.is_finite() && *number > 1.0);
    if number.is_none() {
        errors.at(
            value,
            "`multiplier` is a number greater than 1.0, such as 2.0; for a constant delay write `fixed(\"5s\")`",
        );
    }
    number
}
