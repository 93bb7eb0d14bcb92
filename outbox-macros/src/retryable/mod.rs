//! `#[retryable]`: [`arguments`] reads and checks it, [`policy`] is the model and its expansion.
//!
//! `#[outbox_handler]` reads and removes it. If the compiler expands `#[retryable]` first, it moves itself
//! directly below `#[outbox_handler]`, which then reads it.

mod arguments;
mod backoff;
mod policy;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::{
    Attribute, Meta, Path,
    parse::{ParseStream, Parser as _},
    parse_quote,
};

use crate::{arguments::span_of, errors::Errors};
pub(crate) use policy::Policies;

/// On an empty item that `#[outbox_handler]` generates for each `#[retryable]` that it removed. The item
/// uses the user's import of `retryable`, which would be reported as unused otherwise.
const CONSUMED: &str = "__consumed";

/// Every `#[retryable]` that `#[outbox_handler]` found on an item.
pub(crate) struct Taken {
    pub(crate) policies: Policies,
    pub(crate) consumed: TokenStream,
}

/// The macro itself, if `#[outbox_handler]` did not remove it before. `written_as` is its source text.
pub(crate) fn retryable(
    arguments: &TokenStream,
    item: &TokenStream,
    written_as: Option<&str>,
) -> TokenStream {
    if arguments.to_string() == CONSUMED {
        return TokenStream::new();
    }
    moved_below(arguments, item, written_as).unwrap_or_else(|error| {
        let report = error.to_compile_error();
        quote!(#item #report)
    })
}

/// The item with this attribute directly below `#[outbox_handler]`.
fn moved_below(
    arguments: &TokenStream,
    item: &TokenStream,
    written_as: Option<&str>,
) -> syn::Result<TokenStream> {
    let written = written_as.and_then(|text| path_in(text, arguments));
    if written
        .as_ref()
        .is_some_and(|path| !ends_with(path, "retryable"))
    {
        return Err(syn::Error::new(
            Span::call_site(),
            "`#[retryable]` is found by its own name: import it without `as`, or write `#[outbox::retryable(..)]`",
        ));
    }
    let split = |input: ParseStream<'_>| {
        let attrs = Attribute::parse_outer(input)?;
        Ok((attrs, input.parse::<TokenStream>()?))
    };
    let (mut attrs, rest) = split.parse2(item.clone())?;
    let Some(place) = attrs
        .iter()
        .position(|attr| is_named(attr, "outbox_handler"))
    else {
        return Err(syn::Error::new(
            Span::call_site(),
            "`#[retryable]` has no effect without `#[outbox_handler]`: put that on the same item, above or below, and under its own name",
        ));
    };
    let path = written.unwrap_or_else(|| qualified_like(&attrs[place]));
    attrs.insert(place + 1, parse_quote!(#[#path(#arguments)]));
    Ok(quote!(#(#attrs)* #rest))
}

/// The path by which the user named this macro. `None` if another macro wrote the attribute, because the
/// text is not that of this attribute then.
fn path_in(written_as: &str, arguments: &TokenStream) -> Option<Path> {
    let trimmed = written_as.trim();
    let text = trimmed
        .strip_prefix("#[")
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(trimmed);
    let meta: Meta = syn::parse_str(text).ok()?;
    let written = match &meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    let unspaced = |tokens: &TokenStream| tokens.to_string().replace(char::is_whitespace, "");
    (unspaced(&written) == unspaced(arguments)).then(|| meta.path().clone())
}

/// Used if there is no source text: the path with the qualification of `#[outbox_handler]`.
fn qualified_like(handler: &Attribute) -> Path {
    let mut path = handler.path().clone();
    if let Some(last) = path.segments.last_mut() {
        *last = parse_quote!(retryable);
    }
    path
}

impl Taken {
    /// Adds each `#[cfg_attr(condition, retryable(..))]`.
    pub(crate) fn add_conditional(
        &mut self,
        found: Vec<(TokenStream, Attribute)>,
        errors: &mut Errors,
    ) {
        for (condition, attr) in found {
            if self.policies.plain.is_some() {
                errors.at(&attr.meta, TWICE);
            }
            let consumed = consumed(&attr);
            self.consumed.extend(quote!(#[cfg(#condition)] #consumed));
            let policy = arguments::read(&attr, errors);
            self.policies
                .conditional
                .extend(policy.map(|policy| (condition, policy)));
        }
    }
}

const TWICE: &str = "`#[retryable]` is given twice: a handler has one policy, remove one";

fn consumed(attr: &Attribute) -> TokenStream {
    let path = attr.path();
    let mark = quote::format_ident!("{CONSUMED}");
    quote!(#[#path(#mark)] const _: () = ();)
}

/// Removes and reads `#[retryable]`.
pub(crate) fn take(attrs: &mut Vec<Attribute>, errors: &mut Errors) -> Taken {
    let found = take_raw(attrs);
    let consumed = found.iter().map(consumed).collect();
    let mut remaining = found.into_iter();
    let policies = Policies {
        plain: remaining
            .next()
            .and_then(|attr| arguments::read(&attr, errors)),
        conditional: Vec::new(),
    };
    for second in remaining {
        errors.at(second, TWICE);
    }
    Taken { policies, consumed }
}

/// Removes every `#[retryable]` without reading it.
pub(crate) fn take_raw(attrs: &mut Vec<Attribute>) -> Vec<Attribute> {
    attrs
        .extract_if(.., |attr| is_named(attr, "retryable"))
        .collect()
}

/// Whether the last segment of an attribute's path is this name.
pub(crate) fn is_named(attr: &Attribute, name: &str) -> bool {
    ends_with(attr.path(), name)
}

fn ends_with(path: &Path, name: &str) -> bool {
    path.segments
        .last()
        .is_some_and(|segment| segment.ident == name)
}

/// The span of a whole attribute.
fn span_of_attribute(attr: &Attribute) -> Span {
    span_of(&attr.path().to_token_stream())
}
