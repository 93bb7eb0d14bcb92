//! Every absolute path that generated code uses, so that nothing in the user's scope can stand
//! in its way.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::Path;

/// Where the runtime crate is.
#[derive(Clone)]
pub(crate) struct Paths {
    /// The crate itself, `::outbox` unless the user says otherwise.
    pub(crate) krate: TokenStream,
    /// What only generated code uses.
    pub(crate) private: TokenStream,
}

impl Paths {
    pub(crate) fn new(krate: Option<&Path>) -> Self {
        let krate = krate.map_or_else(|| quote!(::outbox), |krate| krate.to_token_stream());
        let private = quote!(#krate::__private);
        Self { krate, private }
    }

    /// The same paths, for code that may fail because of what the user wrote here. Otherwise the
    /// compiler would underline the whole attribute as well.
    pub(crate) fn at(&self, span: Span) -> Self {
        Self {
            krate: moved(&self.krate, span),
            private: moved(&self.private, span),
        }
    }
}

fn moved(tokens: &TokenStream, span: Span) -> TokenStream {
    let moved = tokens.clone().into_iter().map(|mut token| {
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), moved(&group.stream(), span)).into();
        }
        token.set_span(span);
        token
    });
    moved.collect()
}
