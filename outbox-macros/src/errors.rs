//! Collects mistakes, so that one compile reports all of them.

use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The mistakes found so far. Each macro call makes one, and its tokens are always part of the output.
#[derive(Default)]
pub(crate) struct Errors {
    list: Vec<syn::Error>,
}

impl Errors {
    /// Adds a mistake, which the compiler reports at these tokens.
    pub(crate) fn at(&mut self, guilty: impl ToTokens, message: impl Display) {
        self.list.push(syn::Error::new_spanned(guilty, message));
    }

    pub(crate) fn at_span(&mut self, span: Span, message: impl Display) {
        self.list.push(syn::Error::new(span, message));
    }

    pub(crate) fn add(&mut self, error: syn::Error) {
        self.list.push(error);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl ToTokens for Errors {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for error in &self.list {
            tokens.extend(error.to_compile_error());
        }
    }
}
