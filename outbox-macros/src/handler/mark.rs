//! Finds and removes `#[outbox_handler]` on an item.

use proc_macro2::TokenStream;
use syn::{Attribute, Meta};

use crate::{errors::Errors, retryable::is_named};

/// The arguments of a method's `#[outbox_handler]`, if it has one.
pub(super) fn take(attrs: &mut Vec<Attribute>, errors: &mut Errors) -> Option<TokenStream> {
    let place = attrs.iter().position(is_mark)?;
    let mark = attrs.remove(place);
    reject_further(attrs, errors);
    Some(match mark.meta {
        Meta::List(list) => list.tokens,
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    })
}

/// Removes every `#[outbox_handler]` except the one that is being expanded.
pub(super) fn reject_further(attrs: &mut Vec<Attribute>, errors: &mut Errors) {
    for further in attrs.extract_if(.., |attr| is_mark(attr)) {
        errors.at(further, "`#[outbox_handler]` is given twice: remove one");
    }
}

pub(super) fn is_mark(attr: &Attribute) -> bool {
    is_named(attr, "outbox_handler")
}
