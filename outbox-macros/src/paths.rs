//! Every path that generated code uses. The paths are absolute, so that no name in the user's scope
//! can shadow them.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::Path;

/// The path of the runtime crate.
#[derive(Clone)]
pub(crate) struct Paths {
    /// The crate: `::outbox`, or the path that the user gave with `crate = path`.
    pub(crate) krate: TokenStream,
    /// The hidden module for generated code.
    pub(crate) private: TokenStream,
}

impl Paths {
    pub(crate) fn new(given: Option<&Path>) -> Self {
        let krate = given.map_or_else(|| quote!(::outbox), |path| path.to_token_stream());
        let private = quote!(#krate::__private);
        Self { krate, private }
    }

    /// The same paths with the span of the user's code, for generated code that may not compile because
    /// of it. With another span, the compiler would underline the whole attribute too.
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
