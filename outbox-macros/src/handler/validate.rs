//! The rules for signatures, one function each. Every broken rule is reported at the token that breaks
//! it, with a correction.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{
    FnArg, GenericParam, Generics, Pat, PatType, ReceiverKind, ReturnType, Safety, Signature, Type,
    TypePath,
};

use super::item::compact;
use crate::errors::Errors;

/// The types in a valid signature: the event, and the other arguments.
pub(super) struct Arguments {
    pub(super) event: Type,
    pub(super) others: Vec<Type>,
}

/// The rules for functions and methods. `None` if there is no event.
pub(super) fn signature(sig: &Signature, errors: &mut Errors) -> Option<Arguments> {
    is_async(sig, errors);
    has_plain_qualifiers(sig, errors);
    is_not_generic(&sig.generics, errors);
    returns_a_named_type(sig, errors);
    let typed = typed_arguments(sig, errors);
    let Some((event, others)) = typed.split_first() else {
        let name = &sig.ident;
        let receiver = if sig.receiver().is_some() {
            "&self, "
        } else {
            ""
        };
        errors.at_span(
            sig.paren_token.span.join(),
            format!("an outbox handler takes its event first: `async fn {name}({receiver}event: YourEvent)`"),
        );
        return None;
    };
    is_an_event(event, errors);
    Some(Arguments {
        event: event.clone(),
        others: others.to_vec(),
    })
}

/// A marked function outside an `impl` block has no `self`.
pub(super) fn free_function(sig: &Signature, errors: &mut Errors) {
    if let Some(receiver) = sig.receiver() {
        errors.at(
            receiver,
            "`self` needs a marked `impl` block: put `#[outbox_handler]` on the `impl` block too, and keep it on this method",
        );
    }
}

/// A marked method is shared by concurrent invocations.
pub(super) fn method(sig: &Signature, errors: &mut Errors) {
    let name = &sig.ident;
    let Some(receiver) = sig.receiver() else {
        errors.at(
            name,
            format!("a handler method takes `&self` first: `async fn {name}(&self, event: YourEvent)`; without `self`, move it out of the `impl` block"),
        );
        return;
    };
    match receiver.kind {
        ReceiverKind::Reference(_, None, None) => {}
        ReceiverKind::Reference(_, Some(_), _) => {
            errors.at(receiver, "write `&self` without a lifetime");
        }
        _ => errors.at(
            receiver,
            "a handler method takes `&self`: several invocations share it; keep what changes in a `Mutex` or an atomic",
        ),
    }
}

pub(super) fn is_async(sig: &Signature, errors: &mut Errors) {
    if sig.asyncness.is_none() {
        let name = &sig.ident;
        let (guilty, instead) = match &sig.constness {
            Some(constness) => (constness.to_token_stream(), " instead of `const fn`"),
            None => (sig.fn_token.to_token_stream(), ""),
        };
        errors.at(
            guilty,
            format!("an outbox handler is asynchronous: write `async fn {name}`{instead}"),
        );
    }
}

/// `const` is not checked: without `async` the missing `async` is reported, and with it the compiler
/// reports the `const`.
fn has_plain_qualifiers(sig: &Signature, errors: &mut Errors) {
    if let Safety::Unsafe(unsafety) = sig.safety {
        errors.at(
            unsafety,
            "an outbox handler cannot be `unsafe`: the dispatcher calls it without knowing its conditions; use an `unsafe` block inside",
        );
    }
    if let Some(abi) = &sig.abi {
        errors.at(
            abi,
            "an outbox handler is a plain Rust function: remove the ABI",
        );
    }
    if let Some(variadic) = &sig.variadic {
        errors.at(
            variadic,
            "an outbox handler has a fixed list of arguments: remove this",
        );
    }
}

/// A handler has no type parameters, because a stored record cannot name them.
fn is_not_generic(generics: &Generics, errors: &mut Errors) {
    for param in &generics.params {
        match param {
            GenericParam::Lifetime(lifetime) => errors.at(
                lifetime,
                "an outbox handler cannot name lifetimes: write `&Metadata` without one",
            ),
            GenericParam::Type(_) | GenericParam::Const(_) => errors.at(
                param,
                "an outbox handler cannot be generic, because a stored event says nothing about type parameters: write one handler per event, or take `AnyEvent`",
            ),
        }
    }
    has_no_where_clause(generics, errors);
}

/// The type of an `impl` block has no parameters, because its handlers are registered once.
pub(super) fn block(generics: &Generics, errors: &mut Errors) {
    for param in &generics.params {
        errors.at(
            param,
            "a marked `impl` block cannot be generic, because its handlers are registered once, for one type: write the type out, such as `impl Payments<Bank>`",
        );
    }
    has_no_where_clause(generics, errors);
}

fn has_no_where_clause(generics: &Generics, errors: &mut Errors) {
    if let Some(clause) = &generics.where_clause
        && generics.params.is_empty()
    {
        errors.at(
            clause,
            "an outbox handler cannot have a `where` clause: remove it",
        );
    }
}

fn returns_a_named_type(sig: &Signature, errors: &mut Errors) {
    if let ReturnType::Type(_, ty) = &sig.output
        && let Some(opaque) = impl_trait_in(ty.to_token_stream())
    {
        errors.at(
            opaque,
            "an outbox handler returns `()` or `Result<(), E>`, with the type `E` written out instead of `impl Trait`",
        );
    }
}

/// The `impl` of an `impl Trait` anywhere in a type.
fn impl_trait_in(tokens: TokenStream) -> Option<TokenTree> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Group(group) => impl_trait_in(group.stream()),
        TokenTree::Ident(word) if word == "impl" => Some(word.into()),
        TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    })
}

/// The types of all arguments but `self`.
fn typed_arguments(sig: &Signature, errors: &mut Errors) -> Vec<Type> {
    let mut types = Vec::new();
    for input in &sig.inputs {
        let FnArg::Typed(PatType { attrs, pat, ty, .. }) = input else {
            continue;
        };
        if let Some(attr) = attrs.first() {
            errors.at(
                attr,
                "an argument of an outbox handler cannot have attributes, because it is passed in any case: remove this",
            );
        }
        if let Some(opaque) = impl_trait_in(ty.to_token_stream()) {
            errors.at(
                opaque,
                "an outbox handler needs the type of each argument: write it instead of `impl Trait`",
            );
        }
        if let Pat::Verbatim(pattern) = &**pat {
            errors.at(pattern, "name the argument");
        }
        types.push((**ty).clone());
    }
    types
}

/// The event is the first argument, by value. The compiler checks its type.
fn is_an_event(ty: &Type, errors: &mut Errors) {
    let is = |ty: &Type, name: &str| match ty {
        Type::Path(TypePath { path, .. }) => path
            .segments
            .last()
            .is_some_and(|segment| segment.ident == name),
        _ => false,
    };
    match ty {
        Type::Reference(reference) if is(&reference.elem, "Metadata") => errors.at(
            ty,
            "the first argument is the event: put `&Metadata` behind it, `(event: YourEvent, meta: &Metadata)`",
        ),
        Type::Reference(reference) => {
            let event = compact(&reference.elem);
            errors.at(
                ty,
                format!("an outbox handler takes its event by value: write `{event}` instead of a reference"),
            );
        }
        _ if is(ty, "State") => errors.at(
            ty,
            "the first argument is the event: put `State<..>` behind it",
        ),
        _ => {}
    }
}
