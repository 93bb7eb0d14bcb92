//! `#[outbox_handler(..)]`: its arguments, read and checked one by one.

use std::time::Duration;

use proc_macro2::TokenStream;
use syn::{Expr, Ident, LitStr, Path};

use crate::{
    arguments::{self, Argument},
    duration,
    errors::Errors,
    literals,
};

const KNOWN: [&str; 11] = [
    "id",
    "aliases",
    "timeout",
    "concurrency",
    "when",
    "validate",
    "fallback",
    "on_permanent_failure",
    "events",
    "marker",
    "crate",
];

/// The given arguments. Each is valid by itself.
#[derive(Default)]
pub(super) struct HandlerArguments {
    pub(super) id: Option<LitStr>,
    pub(super) aliases: Vec<LitStr>,
    pub(super) timeout: Option<Duration>,
    pub(super) concurrency: Option<u32>,
    pub(super) when: Option<Path>,
    pub(super) validate: Option<Path>,
    pub(super) fallback: Option<Path>,
    pub(super) skip_on_permanent_failure: bool,
    pub(super) events: Option<Vec<LitStr>>,
    pub(super) marker: Option<Ident>,
    pub(super) krate: Option<Path>,
    /// The arguments as written, to report one that is not allowed on this item.
    pub(super) keys: Vec<Ident>,
}

impl HandlerArguments {
    pub(super) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut this = Self::default();
        for argument in arguments::parse(tokens, "id = \"charge-card\"", errors) {
            this.read(&argument, errors);
            this.keys.push(argument.key);
        }
        for (place, alias) in this.aliases.iter().enumerate() {
            let taken = this.aliases[..place].iter().chain(&this.id);
            if taken
                .into_iter()
                .any(|other| other.value() == alias.value())
            {
                errors.at(
                    alias,
                    format!("\"{}\" is given twice: remove one", alias.value()),
                );
            }
        }
        this
    }

    fn read(&mut self, argument: &Argument, errors: &mut Errors) {
        let key = argument.key.to_string();
        let example = match key.as_str() {
            "id" => "id = \"charge-card\"",
            "aliases" => "aliases = [\"charge\"]",
            "timeout" => "timeout = \"30s\"",
            "concurrency" => "concurrency = 8",
            "when" => "when = path::to::guard",
            "validate" => "validate = path::to::check",
            "fallback" => "fallback = path::to::fallback",
            "on_permanent_failure" => "on_permanent_failure = skip",
            "events" => "events = \"order.*\"",
            "marker" => "marker = Name",
            "crate" => "crate = path::to::outbox",
            _ => {
                arguments::unknown(&argument.key, "`#[outbox_handler]`", &KNOWN, errors);
                return;
            }
        };
        let Some(value) = argument.expression(example, errors) else {
            return;
        };
        match key.as_str() {
            "id" => self.id = literals::name("id", value, errors).cloned(),
            "aliases" => self.aliases = literals::names("aliases", value, errors),
            "timeout" => self.timeout = duration::read("timeout", value, errors),
            "concurrency" => {
                self.concurrency = literals::whole_number("concurrency", 1, value, errors);
            }
            "when" => self.when = literals::path("when", "a function", value, errors).cloned(),
            "validate" => self.validate = literals::path("validate", "a function", value, errors).cloned(),
            "fallback" => self.fallback = literals::path("fallback", "a function", value, errors).cloned(),
            "on_permanent_failure" => match literals::word(value).map(ToString::to_string) {
                Some(word) if word == "block" => self.skip_on_permanent_failure = false,
                Some(word) if word == "skip" => self.skip_on_permanent_failure = true,
                _ => errors.at(value, "`on_permanent_failure` is `block` (later records of the key wait) or `skip` (they go on)"),
            },
            "events" => self.events = Some(patterns(value, errors)),
            "marker" => {
                self.marker = literals::word(value).cloned();
                if self.marker.is_none() {
                    errors.at(value, "`marker` is the name of a type to create: `marker = Name`");
                }
            }
            _ => self.krate = literals::path("crate", "the `outbox` crate", value, errors).cloned(),
        }
    }
}

/// One pattern or a list of patterns. A `*` may only be at the end.
fn patterns(value: &Expr, errors: &mut Errors) -> Vec<LitStr> {
    let patterns = match value {
        Expr::Array(array) if array.elems.is_empty() => {
            errors.at(
                value,
                "`events` names at least one event: `events = \"order.*\"`; without it the handler receives every event",
            );
            Vec::new()
        }
        Expr::Array(_) => literals::names("events", value, errors),
        one => literals::name("events", one, errors)
            .into_iter()
            .cloned()
            .collect(),
    };
    for pattern in &patterns {
        let text = pattern.value();
        if text.trim_end_matches('*').contains('*') || text.ends_with("**") {
            errors.at(
                pattern,
                "an event pattern is a name, or the beginning of one with one `*` at its end: \"order.*\"",
            );
        }
    }
    patterns
}
