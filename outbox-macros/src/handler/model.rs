//! What [`validate`](super::validate) hands to [`expand`](super::expand): a handler without faults.

use proc_macro2::{Span, TokenStream};
use syn::{Attribute, Ident, Type};

use super::arguments::HandlerArguments;
use crate::retryable::Policies;

/// One handler.
pub(super) struct HandlerModel {
    pub(super) callee: Callee,
    /// Behind `module_path!()::`, where no id is given.
    pub(super) name: String,
    /// The user's name for it; what fails as a whole is reported here.
    pub(super) span: Span,
    pub(super) event: Type,
    /// The types behind the event.
    pub(super) arguments: Vec<Type>,
    /// The type it returns.
    pub(super) output: TokenStream,
    pub(super) given: HandlerArguments,
    pub(super) policies: Policies,
    /// `#[cfg(..)]`: it is registered only where these hold.
    pub(super) conditions: Vec<Attribute>,
}

/// How it is called, and on what.
pub(super) enum Callee {
    /// A free function, and the type that stands for it.
    Function { function: Ident, marker: Ident },
    /// A method of an inherent `impl`; the instance is a state.
    Method { of: Type, method: Ident },
    /// `Handler::handle`; the instance is a state.
    Trait { of: Type },
}
