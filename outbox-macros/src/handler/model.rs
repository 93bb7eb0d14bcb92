//! A handler without mistakes. [`validate`](super::validate) makes it for [`expand`](super::expand).

use proc_macro2::{Span, TokenStream};
use syn::{Attribute, Ident, Type};

use super::arguments::HandlerArguments;
use crate::retryable::Policies;

/// One handler.
pub(super) struct HandlerModel {
    pub(super) callee: Callee,
    /// The end of the default id, after `module_path!()::`.
    pub(super) name: String,
    /// The user's name of the handler. Errors that concern the whole handler are reported here.
    pub(super) span: Span,
    pub(super) event: Type,
    /// The types of the arguments after the event.
    pub(super) arguments: Vec<Type>,
    /// The return type.
    pub(super) output: TokenStream,
    pub(super) given: HandlerArguments,
    pub(super) policies: Policies,
    /// `#[cfg(..)]`: the handler is registered only if these hold.
    pub(super) conditions: Vec<Attribute>,
}

/// How the handler is called.
pub(super) enum Callee {
    /// A free function, and the type that stands for it.
    Function { function: Ident, marker: Ident },
    /// A method of an inherent `impl`. Its instance is a state.
    Method { of: Type, method: Ident },
    /// `Handler::handle`. Its instance is a state.
    Trait { of: Type },
}
