//! The arguments of an attribute: `key`, `key = value` and `key(..)`, separated by commas.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens as _;
use syn::{
    Expr, Ident, Token,
    ext::IdentExt as _,
    parenthesized,
    parse::{ParseStream, Parser as _},
    token,
};

use crate::errors::Errors;

/// One argument as written.
pub(crate) struct Argument {
    pub(crate) key: Ident,
    pub(crate) value: Value,
}

pub(crate) enum Value {
    /// `key`
    Absent,
    /// `key = expression`
    Is(Box<Expr>),
    /// `key(..)`
    List(TokenStream),
}

impl Argument {
    /// The expression after `=`. Reports a mistake with an example if there is none.
    pub(crate) fn expression(&self, example: &str, errors: &mut Errors) -> Option<&Expr> {
        match &self.value {
            Value::Is(value) => Some(value),
            Value::Absent | Value::List(_) => {
                errors.at(
                    &self.key,
                    format!("`{}` needs a value: `{example}`", self.key),
                );
                None
            }
        }
    }

    /// The tokens to report a mistake at: the value if there is one, else the key.
    pub(crate) fn guilty(&self) -> TokenStream {
        match &self.value {
            Value::Is(value) => value.to_token_stream(),
            Value::Absent | Value::List(_) => self.key.to_token_stream(),
        }
    }
}

/// Reads all arguments. An argument that cannot be parsed is a mistake and does not hide the others.
pub(crate) fn parse(tokens: TokenStream, example: &str, errors: &mut Errors) -> Vec<Argument> {
    let parse_all = |input: ParseStream<'_>| {
        let mut arguments: Vec<Argument> = Vec::new();
        while !input.is_empty() {
            match parse_one(input, example) {
                Ok(argument) => {
                    if arguments.iter().any(|known| known.key == argument.key) {
                        let message = format!("`{}` is given twice: remove one", argument.key);
                        errors.at(&argument.key, message);
                    } else {
                        arguments.push(argument);
                    }
                }
                Err(error) => errors.add(error),
            }
            if input.is_empty() {
                break;
            }
            if !input.peek(Token![,]) {
                errors.add(input.error("put a comma before this"));
                skip_to_comma(input)?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(arguments)
    };
    parse_all.parse2(tokens).unwrap_or_else(|error| {
        errors.add(error);
        Vec::new()
    })
}

fn parse_one(input: ParseStream<'_>, example: &str) -> syn::Result<Argument> {
    let parsed = (|| {
        if !input.peek(Ident::peek_any) {
            return Err(input.error(format!("expected an argument such as `{example}`")));
        }
        let key = Ident::parse_any(input)?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Value::Is(input.parse()?)
        } else if input.peek(token::Paren) {
            let content;
            parenthesized!(content in input);
            Value::List(content.parse()?)
        } else {
            Value::Absent
        };
        Ok(Argument { key, value })
    })();
    if parsed.is_err() {
        skip_to_comma(input)?;
    }
    parsed
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

/// Reports a key that does not exist, and suggests the most similar one.
pub(crate) fn unknown(key: &Ident, of: &str, known: &[&str], errors: &mut Errors) {
    let hint = hint(&key.to_string(), known);
    errors.at(key, format!("{of} has no argument `{key}`; {hint}"));
}

/// The most similar known word, or all known words if none is similar enough.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    match (nearest(word, known), known) {
        (Some(nearest), _) => format!("did you mean `{nearest}`?"),
        (None, [only]) => format!("there is only `{only}`"),
        (None, _) => format!("there are {}", list(known)),
    }
}

/// The most similar known word, if one is similar enough.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), *candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// "`a`, `b` and `c`"
pub(crate) fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match &*quoted {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// The span of the whole list of arguments.
pub(crate) fn span_of(tokens: &TokenStream) -> Span {
    tokens
        .clone()
        .into_iter()
        .next()
        .map_or_else(Span::call_site, |token| token.span())
}
