//! `#[retryable(..)]`: its arguments, read and checked.

use proc_macro2::TokenStream;
use syn::{
    Attribute, Expr, ExprLit, ExprPath, Ident, Lit, Meta, Token, Type, parse::Parser as _,
    punctuated::Punctuated,
};

use super::{
    backoff,
    policy::{Inline, Jitter, Policy},
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

/// Reads the policy, or reports mistakes.
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
    let arguments = arguments::parse(tokens, "max_retries = 3", errors);
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

/// `policy = ..`. A name in `UpperCamelCase` is a type. A name in another case is a constant or static.
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
                "`policy` is a type, a value, or the name of a policy in quotes: `policy = MyPolicy`, `policy = MY_POLICY` or `policy = \"gentle\"`",
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
                inline.backoff = backoff::read(argument, errors);
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
            errors.at_span(
                error.span(),
                format!("`{key}` takes error types, not values: `{key}(std::io::Error)`"),
            );
            Vec::new()
        }
    }
}
