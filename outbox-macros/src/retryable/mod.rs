//! `#[retryable]`: [`arguments`] reads and checks it, [`policy`] is the model and its expansion.
//!
//! It never expands on its own. `#[outbox_handler]` reads it and takes it away; if `#[retryable]`
//! comes first, it moves itself directly below `#[outbox_handler]` and leaves the rest to that.

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

/// On an empty item that `#[outbox_handler]` leaves behind for each `#[retryable]` it took away:
/// it names the user's own import, which would count as unused otherwise.
const CONSUMED: &str = "__consumed";

/// What `#[outbox_handler]` found.
pub(crate) struct Taken {
    pub(crate) policies: Policies,
    pub(crate) consumed: TokenStream,
}

/// The macro itself, when it is not taken away before. `written_as` is its own source text.
pub(crate) fn retryable(
    arguments: &TokenStream,
    item: &TokenStream,
    written_as: Option<&str>,
) -> TokenStream {
    if arguments.to_string() == CONSUMED {
        return TokenStream::new();
    }
    moved_below(arguments, item, written_as).unwrap_or_else(|error| {
        let error = error.to_compile_error();
        quote!(#item #error)
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
    let path = written.unwrap_or_else(|| beside(&attrs[place]));
    attrs.insert(place + 1, parse_quote!(#[#path(#arguments)]));
    Ok(quote!(#(#attrs)* #rest))
}

/// How the user named this macro, so that it can be named again; nothing if the text is not that
/// of this attribute, because another macro wrote it.
fn path_in(written_as: &str, arguments: &TokenStream) -> Option<Path> {
    let text = written_as.trim();
    let text = text
        .strip_prefix("#[")
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let meta: Meta = syn::parse_str(text).ok()?;
    let written = match &meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    let unspaced = |tokens: &TokenStream| tokens.to_string().replace(char::is_whitespace, "");
    (unspaced(&written) == unspaced(arguments)).then(|| meta.path().clone())
}

/// Where the source text is not to be had: as it is found beside `#[outbox_handler]`.
fn beside(handler: &Attribute) -> Path {
    let mut path = handler.path().clone();
    if let Some(last) = path.segments.last_mut() {
        *last = parse_quote!(retryable);
    }
    path
}

impl Taken {
    /// Adds what was written as `#[cfg_attr(condition, retryable(..))]`.
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

/// Takes `#[retryable]` away and reads it.
pub(crate) fn take(attrs: &mut Vec<Attribute>, errors: &mut Errors) -> Taken {
    let taken = take_raw(attrs);
    let consumed = taken.iter().map(consumed).collect();
    let mut taken = taken.into_iter();
    let policies = Policies {
        plain: taken.next().and_then(|attr| arguments::read(&attr, errors)),
        conditional: Vec::new(),
    };
    for second in taken {
        errors.at(second, TWICE);
    }
    Taken { policies, consumed }
}

/// Takes every `#[retryable]` away, unread.
pub(crate) fn take_raw(attrs: &mut Vec<Attribute>) -> Vec<Attribute> {
    attrs
        .extract_if(.., |attr| is_named(attr, "retryable"))
        .collect()
}

/// Whether an attribute's path ends with this name, however it is qualified.
pub(crate) fn is_named(attr: &Attribute, name: &str) -> bool {
    ends_with(attr.path(), name)
}

fn ends_with(path: &Path, name: &str) -> bool {
    path.segments
        .last()
        .is_some_and(|segment| segment.ident == name)
}

/// Where to point when an attribute as a whole is to blame.
fn span_of_attribute(attr: &Attribute) -> Span {
    span_of(&attr.path().to_token_stream())
}
