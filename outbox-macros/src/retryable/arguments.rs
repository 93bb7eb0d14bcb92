//! `#[retryable(..)]`: its arguments, read and checked.

use std::time::Duration;

use proc_macro2::TokenStream;
use syn::{
    Attribute, Expr, ExprLit, ExprPath, Ident, Lit, Meta, Token, Type, parse::Parser as _,
    punctuated::Punctuated,
};

use super::{
    policy::{Backoff, Inline, Jitter, Policy},
    span_of_attribute,
};
use crate::{
    arguments::{self, Argument, Value, list, nearest},
    duration,
    errors::Errors,
    literals,
};

const KNOWN: [&str; 11] = [
    "policy",
    "fixed",
    "linear",
    "exponential",
    "max_retries",
    "max_attempts",
    "max_elapsed",
    "jitter",
    "retry_on",
    "no_retry_on",
    "retry_if",
];

const EXAMPLE: &str = "name a policy, `#[retryable(policy = MyPolicy)]`, or write one: `#[retryable(exponential(initial = \"500ms\", multiplier = 2.0, max = \"10s\"), max_retries = 3)]`";

/// The policy, or mistakes.
pub(super) fn read(attr: &Attribute, errors: &mut Errors) -> Option<Policy> {
    let tokens = match &attr.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    if tokens.is_empty() {
        errors.at_span(
            span_of_attribute(attr),
            format!("`#[retryable]` says nothing: {EXAMPLE}"),
        );
        return None;
    }
    let arguments = arguments::parse(tokens, errors);
    match arguments.iter().find(|argument| argument.key == "policy") {
        Some(policy) => {
            for other in arguments.iter().filter(|argument| argument.key != "policy") {
                let message = format!(
                    "`policy` says everything: remove `{}`, or `policy`",
                    other.key
                );
                errors.at(&other.key, message);
            }
            named_policy(policy, errors)
        }
        None => Some(Policy::Inline(inline(&arguments, errors))),
    }
}

/// `policy = ..`. A name in `UpperCamelCase` is a type, one in another case a constant or static.
fn named_policy(argument: &Argument, errors: &mut Errors) -> Option<Policy> {
    let value = argument.expression("policy = MyPolicy", errors)?.clone();
    Some(match &value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(_), ..
        }) => Policy::Named(literals::name("policy", &value, errors)?.clone()),
        Expr::Path(path) if is_type(path) => Policy::ByDefault(value),
        Expr::Path(_) => Policy::ByClone(value),
        Expr::Lit(_) => {
            errors.at(
                &value,
                "`policy` is a type, a value, or the name of a policy in quotes",
            );
            return None;
        }
        _ => Policy::ByValue(value),
    })
}

fn is_type(path: &ExprPath) -> bool {
    path.path.segments.last().is_some_and(|segment| {
        let name = segment.ident.to_string();
        name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
    })
}

fn inline(arguments: &[Argument], errors: &mut Errors) -> Inline {
    let mut inline = Inline::default();
    let mut backoff_key: Option<&Ident> = None;
    for argument in arguments {
        match argument.key.to_string().as_str() {
            "fixed" | "linear" | "exponential" => {
                if let Some(first) = backoff_key.replace(&argument.key) {
                    let message =
                        format!("`{first}` is the back-off already: remove one of the two");
                    errors.at(&argument.key, message);
                }
                inline.backoff = backoff(argument, errors);
            }
            "max_retries" => {
                inline.max_retries = argument
                    .expression("max_retries = 3", errors)
                    .and_then(|value| literals::whole_number("max_retries", 0, value, errors));
            }
            "max_attempts" => max_attempts(argument, arguments, &mut inline, errors),
            "max_elapsed" => {
                inline.max_elapsed = argument
                    .expression("max_elapsed = \"1h\"", errors)
                    .and_then(|value| duration::read("max_elapsed", value, errors));
            }
            "jitter" => {
                inline.jitter = argument
                    .expression("jitter = \"100ms\"", errors)
                    .and_then(|value| jitter(value, errors));
            }
            "retry_on" => inline.retry_on = error_types(argument, errors),
            "no_retry_on" => inline.no_retry_on = error_types(argument, errors),
            "retry_if" => {
                inline.retry_if = argument
                    .expression("retry_if = path::to::predicate", errors)
                    .cloned();
            }
            _ => arguments::unknown(&argument.key, "`#[retryable]`", &KNOWN, errors),
        }
    }
    inline
}

fn max_attempts(
    argument: &Argument,
    arguments: &[Argument],
    inline: &mut Inline,
    errors: &mut Errors,
) {
    if arguments.iter().any(|other| other.key == "max_retries") {
        errors.at(
            &argument.key,
            "`max_attempts` and `max_retries` say the same thing (`max_attempts = n` is `max_retries = n - 1`): remove one",
        );
        return;
    }
    let attempts = argument
        .expression("max_attempts = 4", errors)
        .and_then(|value| literals::whole_number("max_attempts", 1, value, errors));
    inline.max_retries = attempts.map(|attempts| attempts - 1);
}

/// `fixed("5s")`, `linear(..)`, `exponential(..)`; the defaults are those of the configuration.
fn backoff(argument: &Argument, errors: &mut Errors) -> Option<Backoff> {
    const SECOND: Duration = Duration::from_secs(1);
    let tokens = match &argument.value {
        Value::List(tokens) => tokens.clone(),
        Value::Absent => TokenStream::new(),
        Value::Is(value) => {
            let message = format!(
                "write `{}(..)`, with the delays in the parentheses",
                argument.key
            );
            errors.at(value, message);
            return None;
        }
    };
    if argument.key == "fixed" {
        return fixed(tokens, errors);
    }
    let is_linear = argument.key == "linear";
    let known: &[&str] = if is_linear {
        &["initial", "increment", "max"]
    } else {
        &["initial", "multiplier", "max"]
    };
    let parts = arguments::parse(tokens, errors);
    let mut sound = true;
    for part in &parts {
        if !known.contains(&part.key.to_string().as_str()) {
            arguments::unknown(&part.key, &format!("`{}`", argument.key), known, errors);
            sound = false;
        }
    }
    let mut delay = |name: &str, default: Duration| {
        let Some(part) = parts.iter().find(|part| part.key == name) else {
            return default;
        };
        let read = part
            .expression(&format!("{name} = \"1s\""), errors)
            .and_then(|value| duration::read(name, value, errors));
        sound &= read.is_some();
        read.unwrap_or(default)
    };
    let initial = delay("initial", if is_linear { 2 * SECOND } else { SECOND });
    let increment = delay("increment", 2 * SECOND);
    let max = delay("max", 60 * SECOND);
    let multiplier = match parts.iter().find(|part| part.key == "multiplier") {
        Some(part) if !is_linear => multiplier(part, errors),
        _ => Some(2.0),
    };
    if sound && max < initial {
        let shown = parts.iter().find(|part| part.key == "max");
        let guilty = shown.map_or(&argument.key, |part| &part.key);
        errors.at(
            guilty,
            format!("the longest delay, {max:?}, is below the initial one, {initial:?}: give a longer `max`"),
        );
    }
    Some(if is_linear {
        Backoff::Linear {
            initial,
            increment,
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
            for part in arguments::parse(tokens, errors) {
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

fn jitter(value: &Expr, errors: &mut Errors) -> Option<Jitter> {
    const MODES: [&str; 4] = ["full", "equal", "decorrelated", "none"];
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(_), ..
        }) => duration::read("jitter", value, errors).map(Jitter::Around),
        Expr::Path(_) => {
            let word = literals::word(value)
                .map(ToString::to_string)
                .unwrap_or_default();
            match word.as_str() {
                "full" => Some(Jitter::Full),
                "equal" => Some(Jitter::Equal),
                "decorrelated" => Some(Jitter::Decorrelated),
                "none" => Some(Jitter::None),
                _ => {
                    let hint = match nearest(&word, &MODES) {
                        Some(mode) => format!("did you mean `{mode}`?"),
                        None => format!(
                            "there are {}, a duration in quotes and a share such as 0.5",
                            list(&MODES)
                        ),
                    };
                    errors.at(value, format!("there is no jitter `{word}`; {hint}"));
                    None
                }
            }
        }
        _ => {
            let is_whole = matches!(
                value,
                Expr::Lit(ExprLit {
                    lit: Lit::Int(_),
                    ..
                })
            );
            let share =
                literals::number(value).filter(|share| !is_whole && (0.0..=1.0).contains(share));
            if share.is_none() {
                errors.at(
                    value,
                    "`jitter` is a duration in quotes (\"100ms\"), a share from 0.0 to 1.0, or one of `full`, `equal` and `decorrelated`",
                );
            }
            share.map(Jitter::Proportional)
        }
    }
}

/// `retry_on(io::Error, BankError)`
fn error_types(argument: &Argument, errors: &mut Errors) -> Vec<Type> {
    let key = &argument.key;
    let Value::List(tokens) = &argument.value else {
        errors.at(
            key,
            format!("`{key}` takes error types in parentheses: `{key}(std::io::Error)`"),
        );
        return Vec::new();
    };
    match Punctuated::<Type, Token![,]>::parse_terminated.parse2(tokens.clone()) {
        Ok(types) if !types.is_empty() => types.into_iter().collect(),
        Ok(_) => {
            errors.at(
                key,
                format!("`{key}` names at least one error type: `{key}(std::io::Error)`"),
            );
            Vec::new()
        }
        Err(error) => {
            errors.add(error);
            Vec::new()
        }
    }
}
