//! Every absolute path that generated code uses, so that nothing in the user's scope can stand
//! in its way.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Path, parse_quote};

/// Where the runtime crate is.
#[derive(Clone)]
pub(crate) struct Paths {
    /// The crate itself, `::outbox` unless the user says otherwise.
    pub(crate) krate: Path,
    /// What only generated code uses.
    pub(crate) private: TokenStream,
}

impl Paths {
    pub(crate) fn new(krate: Option<Path>) -> Self {
        let krate = krate.unwrap_or_else(|| parse_quote!(::outbox));
        let private = quote!(#krate::__private);
        Self { krate, private }
    }
}
