//! The macros as plain functions on tokens. `ui-tests` compiles their output.

mod half_typed;
mod orders;
mod snapshots;

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{
    Attribute, Meta,
    parse::{ParseStream, Parser as _},
};

use crate::{handler, retryable};

/// Expands the attributes of this crate as the compiler does, the outermost first, until none is left.
fn expand(source: &str) -> TokenStream {
    expand_tokens(source.parse().expect("tokens"))
}

fn expand_tokens(item: TokenStream) -> TokenStream {
    let (attrs, rest) = split(item.clone());
    let Some((outermost, others)) = attrs.split_first() else {
        return item;
    };
    let rest = quote!(#(#others)* #rest);
    let arguments = arguments(outermost);
    if retryable::is_named(outermost, "outbox_handler") {
        handler::outbox_handler(&arguments, rest)
    } else if retryable::is_named(outermost, "retryable") {
        expand_tokens(retryable_alone(outermost, &rest))
    } else {
        item
    }
}

/// Expands `#[retryable]` alone, on an item that may still have `#[outbox_handler]`.
fn retryable_alone(attr: &Attribute, item: &TokenStream) -> TokenStream {
    let written_as = attr.to_token_stream().to_string().replacen("# [", "#[", 1);
    retryable::retryable(&arguments(attr), item, Some(&written_as))
}

fn split(item: TokenStream) -> (Vec<Attribute>, TokenStream) {
    let split = |input: ParseStream<'_>| {
        let attrs = Attribute::parse_outer(input)?;
        Ok((attrs, input.parse()?))
    };
    split.parse2(item).expect("an item")
}

fn arguments(attr: &Attribute) -> TokenStream {
    match &attr.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    }
}
