//! `#[outbox_handler] impl T`: one handler per marked method.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{Type, ext::IdentExt as _, parse_quote, spanned::Spanned as _};

use super::{
    arguments::HandlerArguments,
    conditional, expand, function,
    item::{Block, Function, compact},
    mark,
    model::{Callee, HandlerModel},
    validate,
};
use crate::{errors::Errors, paths::Paths, retryable};

pub(super) fn expand(
    arguments: &TokenStream,
    mut block: Block,
    errors: &mut Errors,
) -> TokenStream {
    let given = HandlerArguments::parse(arguments.clone(), errors);
    mark::reject_further(&mut block.attrs, errors);
    validate::block(&block.generics, errors);
    for key in given
        .keys
        .iter()
        .filter(|key| *key != "crate" && *key != "marker")
    {
        let message = format!(
            "`{key}` belongs to one handler: put it on the method's own `#[outbox_handler({key} = ..)]`"
        );
        errors.at(key, message);
    }
    for attr in retryable::take_raw(&mut block.attrs) {
        errors.at(
            attr,
            "`#[retryable]` belongs to one handler: put it on the marked methods",
        );
    }

    let paths = Paths::new(given.krate.as_ref());
    let self_ty = block.self_ty.clone();
    let mut handlers = Vec::new();
    let mut consumed = TokenStream::new();
    let mut any_marked = false;
    for method in block.methods() {
        let conditions = conditional::take(&mut method.attrs);
        if let Some(arguments) = mark::take(&mut method.attrs, errors) {
            any_marked = true;
            let mut retryable = retryable::take(&mut method.attrs, errors);
            retryable.add_conditional(conditions.retryable, errors);
            consumed.extend(retryable.consumed);
            let handler = marked(&self_ty, method, &arguments, retryable.policies, errors);
            handlers.extend(handler.map(|handler| HandlerModel {
                conditions: conditions.handler,
                ..handler
            }));
        } else {
            // The method is no handler: its `cfg_attr` is restored, and `#[retryable]` reports the mistake.
            for (condition, attr) in conditions.retryable {
                let meta = attr.meta;
                method
                    .attrs
                    .push(parse_quote!(#[cfg_attr(#condition, #meta)]));
            }
        }
    }
    if !any_marked {
        errors.at_span(
            self_ty.span(),
            "no method of this `impl` is a handler: mark each with `#[outbox_handler]` too",
        );
    }

    let (marker_type, ty) = match &given.marker {
        Some(marker) => {
            let vis = parse_quote!(pub(crate));
            let marker_type = expand::marker_type(&vis, marker, &paths);
            (Some(marker_type), marker.to_token_stream())
        }
        None => (None, self_ty.to_token_stream()),
    };
    let registered = if errors.is_empty() {
        expand::registered(&ty, &quote!(()), &handlers, &paths)
    } else {
        let generics = given.marker.is_none().then_some(&block.generics);
        expand::unregistered(&ty, &quote!(()), generics, &paths)
    };
    quote!(#block #marker_type #registered #consumed)
}

fn marked(
    self_ty: &Type,
    method: &Function,
    arguments: &TokenStream,
    policies: retryable::Policies,
    errors: &mut Errors,
) -> Option<HandlerModel> {
    let given = HandlerArguments::parse(arguments.clone(), errors);
    for key in given
        .keys
        .iter()
        .filter(|key| *key == "crate" || *key == "marker")
    {
        errors.at(
            key,
            format!("`{key}` belongs to the whole block: put it on the `impl`'s own `#[outbox_handler({key} = ..)]`"),
        );
    }
    validate::method(&method.sig, errors);
    let arguments = validate::signature(&method.sig, errors)?;
    let name = &method.sig.ident;
    Some(HandlerModel {
        name: format!("{}::{}", compact(self_ty), name.unraw()),
        span: name.span(),
        callee: Callee::Method {
            of: self_ty.clone(),
            method: name.clone(),
        },
        event: arguments.event,
        arguments: arguments.others,
        output: function::output(&method.sig),
        given,
        policies,
        conditions: Vec::new(),
    })
}
