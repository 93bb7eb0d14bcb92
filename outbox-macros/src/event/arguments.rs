//! `#[outbox_event(..)]`: its arguments, read and checked one by one.

use proc_macro2::TokenStream;
use syn::{DeriveInput, Expr, LitStr, Meta, Path};

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
        let mut tokens = TokenStream::new();
        for attr in item
            .attrs
            .iter()
            .filter(|attr| attr.path().is_ident("outbox_event"))
        {
            match &attr.meta {
                Meta::List(list) => tokens.extend(list.tokens.clone()),
                meta => errors.at(meta, "write `#[outbox_event(name = \"order.created\")]`"),
            }
        }
        let given = arguments::parse(tokens, errors);
        for argument in &given {
            this.read(argument, errors);
        }
        if !given.iter().any(|argument| argument.key == "name") {
            errors.at(
                &item.ident,
                format!(
                    "the event `{0}` needs the name under which it is stored, which stays when the type is renamed: `#[outbox_event(name = \"{1}\")]`",
                    item.ident,
                    dotted(&item.ident.to_string())
                ),
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
            "validate" => self.validate = literals::path("validate", value, errors).cloned(),
            _ => self.krate = literals::path("crate", value, errors).cloned(),
        }
    }
}

/// `OrderCreated` → `order.created`, as a suggestion.
fn dotted(ident: &str) -> String {
    let mut name = String::new();
    for letter in ident.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('.');
        }
        name.extend(letter.to_lowercase());
    }
    name
}
