//! `#[cfg]` and `#[cfg_attr]` on the methods of a marked `impl` block. The compiler resolves them
//! only after the block was expanded, so the registrations have to repeat them.

use proc_macro2::TokenStream;
use syn::{Attribute, Meta, Token, parse_quote, punctuated::Punctuated};

use crate::retryable::is_named;

/// The parts of a method that depend on the configuration of the build.
#[derive(Default)]
pub(super) struct Conditions {
    /// The handler exists if all of these hold: `#[cfg(..)]`.
    pub(super) handler: Vec<Attribute>,
    /// Each `#[retryable]` that was written as `#[cfg_attr(condition, retryable(..))]`.
    pub(super) retryable: Vec<(TokenStream, Attribute)>,
}

/// Reads the conditions and takes the attributes of this crate out of each `cfg_attr`:
/// `#[outbox_handler]` stays as a plain attribute, so that it is found, and `#[retryable]` is removed.
pub(super) fn take(attrs: &mut Vec<Attribute>) -> Conditions {
    let mut conditions = Conditions::default();
    let mut kept = Vec::new();
    for attr in attrs.drain(..) {
        if attr.path().is_ident("cfg") {
            conditions.handler.push(attr.clone());
        }
        match parts(&attr) {
            Some((condition, parts)) if parts.iter().any(is_ours) => {
                let mut others: Punctuated<Meta, Token![,]> = Punctuated::new();
                for meta in parts {
                    if !is_ours(&meta) {
                        others.push(meta);
                        continue;
                    }
                    let ours: Attribute = parse_quote!(#[#meta]);
                    if is_named(&ours, "retryable") {
                        conditions.retryable.push((condition.clone(), ours));
                    } else {
                        conditions.handler.push(parse_quote!(#[cfg(#condition)]));
                        kept.push(ours);
                    }
                }
                if !others.is_empty() {
                    kept.push(parse_quote!(#[cfg_attr(#condition, #others)]));
                }
            }
            _ => kept.push(attr),
        }
    }
    *attrs = kept;
    conditions
}

/// The condition and the attributes of a `cfg_attr`.
fn parts(attr: &Attribute) -> Option<(TokenStream, Vec<Meta>)> {
    if !attr.path().is_ident("cfg_attr") {
        return None;
    }
    let parse = |input: syn::parse::ParseStream<'_>| {
        let condition: Meta = input.parse()?;
        input.parse::<Token![,]>()?;
        let metas = Punctuated::<Meta, Token![,]>::parse_terminated(input)?;
        Ok((quote::quote!(#condition), metas.into_iter().collect()))
    };
    attr.parse_args_with(parse).ok()
}

fn is_ours(meta: &Meta) -> bool {
    let attr: Attribute = parse_quote!(#[#meta]);
    is_named(&attr, "retryable") || is_named(&attr, "outbox_handler")
}
