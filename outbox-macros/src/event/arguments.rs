//! `#[outbox_event(..)]`: its arguments, read and checked one by one.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Expr, LitStr, Meta, Path, Token};

use crate::{
    arguments::{self, Argument},
    errors::Errors,
    literals,
};

const KNOWN: [&str; 6] = ["name", "key", "aliases", "version", "validate", "crate"];

#[derive(Default)]
pub(super) struct EventArguments {
    pub(super) name: Option<LitStr>,
    pub(super) key: Option<Expr>,
    pub(super) aliases: Vec<LitStr>,
    pub(super) version: Option<u32>,
    pub(super) validate: Option<Path>,
    pub(super) krate: Option<Path>,
}

impl EventArguments {
    pub(super) fn parse(item: &DeriveInput, errors: &mut Errors) -> Self {
        let mut this = Self::default();
        let ident = &item.ident;
        let suggested = format!("#[outbox_event(name = \"{}\")]", dotted(&ident.to_string()));
        let (mut tokens, mut is_readable) = (TokenStream::new(), true);
        for attr in item
            .attrs
            .iter()
            .filter(|attr| attr.path().is_ident("outbox_event"))
        {
            match &attr.meta {
                Meta::List(list) => {
                    let list = &list.tokens;
                    let comma = (!tokens.is_empty()).then(<Token![,]>::default);
                    tokens.extend(quote!(#comma #list));
                }
                meta => {
                    is_readable = false;
                    let message = format!("the arguments go in parentheses: `{suggested}`");
                    errors.at(meta, message);
                }
            }
        }
        let given = arguments::parse(tokens, "name = \"order.created\"", errors);
        for argument in &given {
            this.read(argument, errors);
        }
        if is_readable && !given.iter().any(|argument| argument.key == "name") {
            errors.at(
                ident,
                format!("the event `{ident}` needs the name under which it is stored, which stays when the type is renamed: `{suggested}`"),
            );
        }
        this
    }

    fn read(&mut self, argument: &Argument, errors: &mut Errors) {
        let key = argument.key.to_string();
        let example = match key.as_str() {
            "name" => "name = \"order.created\"",
            "key" => "key = order_id",
            "aliases" => "aliases = [\"order.new\"]",
            "version" => "version = 2",
            "validate" => "validate = path::to::check",
            "crate" => "crate = path::to::outbox",
            _ => {
                arguments::unknown(&argument.key, "`#[outbox_event]`", &KNOWN, errors);
                return;
            }
        };
        let Some(value) = argument.expression(example, errors) else {
            return;
        };
        match key.as_str() {
            "name" => self.name = literals::name("name", value, errors).cloned(),
            "key" => self.key = Some(value.clone()),
            "aliases" => self.aliases = literals::names("aliases", value, errors),
            "version" => self.version = literals::whole_number("version", 1, value, errors),
            "validate" => {
                self.validate = literals::path("validate", "a function", value, errors).cloned();
            }
            _ => self.krate = literals::path("crate", "the `outbox` crate", value, errors).cloned(),
        }
    }
}

/// `OrderCreated` → `order.created`, `HTTPError` → `http.error`, as a suggestion.
fn dotted(ident: &str) -> String {
    let mut name = String::new();
    let mut letters = ident.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(letter) = letters.next() {
        let in_capitals = before.is_some_and(char::is_uppercase)
            && !letters.peek().is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && before.is_some() && !in_capitals {
            name.push('.');
        }
        name.extend(letter.to_lowercase());
        before = Some(letter);
    }
    name
}
