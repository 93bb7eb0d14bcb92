//! `#[retryable]`: [`arguments`] reads and checks it, [`policy`] is the model and its expansion.
//!
//! It never expands on its own. `#[outbox_handler]` reads it and takes it away; if `#[retryable]`
//! comes first, it moves itself directly below `#[outbox_handler]` and leaves the rest to that.

mod arguments;
mod policy;

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{
    Attribute, Path,
    parse::{ParseStream, Parser as _},
    parse_quote,
};

use crate::{arguments::span_of, errors::Errors};
pub(crate) use policy::Policy;

/// On an empty item that `#[outbox_handler]` leaves behind for each `#[retryable]` it took away:
/// it names the user's own import, which would count as unused otherwise.
const CONSUMED: &str = "__consumed";

/// What `#[outbox_handler]` found.
pub(crate) struct Taken {
    pub(crate) policy: Option<Policy>,
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
    let split = |input: ParseStream<'_>| {
        let attrs = Attribute::parse_outer(input)?;
        Ok((attrs, input.parse::<TokenStream>()?))
    };
    let mut errors = Errors::default();
    let moved = split.parse2(item.clone()).map(|(mut attrs, rest)| {
        let place = attrs
            .iter()
            .position(|attr| is_named(attr, "outbox_handler"))?;
        let path = own_path(written_as, &attrs[place]);
        attrs.insert(place + 1, parse_quote!(#[#path(#arguments)]));
        Some(quote!(#(#attrs)* #rest))
    });
    match moved {
        Ok(Some(moved)) => moved,
        Ok(None) => {
            errors.at_span(
                proc_macro2::Span::call_site(),
                "`#[retryable]` has no effect without `#[outbox_handler]` on the same item: add it, under its own name",
            );
            quote!(#item #errors)
        }
        Err(error) => {
            errors.add(error);
            quote!(#item #errors)
        }
    }
}

/// How the user named this macro, so that it can be named again. Where the source text is not to
/// be had, as it is found beside `#[outbox_handler]`.
fn own_path(written_as: Option<&str>, beside: &Attribute) -> Path {
    let written = written_as.and_then(|text| {
        let text = text.trim_start_matches(['#', '[', ' ']);
        let end = text.find(['(', ']', ' ', '\n']).unwrap_or(text.len());
        syn::parse_str::<Path>(&text[..end]).ok()
    });
    written
        .filter(|path| ends_with(path, "retryable"))
        .unwrap_or_else(|| {
            let mut path = beside.path().clone();
            if let Some(last) = path.segments.last_mut() {
                *last = parse_quote!(retryable);
            }
            path
        })
}

/// Takes `#[retryable]` away and reads it.
pub(crate) fn take(attrs: &mut Vec<Attribute>, errors: &mut Errors) -> Taken {
    let taken = take_raw(attrs);
    let consumed = taken.iter().map(|attr| {
        let path = attr.path();
        let mark = quote::format_ident!("{CONSUMED}");
        quote!(#[#path(#mark)] const _: () = ();)
    });
    let consumed = quote!(#(#consumed)*);
    let mut taken = taken.into_iter();
    let policy = taken.next().and_then(|attr| arguments::read(&attr, errors));
    for second in taken {
        errors.at(
            second,
            "`#[retryable]` is given twice: a handler has one policy, remove one",
        );
    }
    Taken { policy, consumed }
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
fn span_of_attribute(attr: &Attribute) -> proc_macro2::Span {
    span_of(&attr.path().to_token_stream())
}
