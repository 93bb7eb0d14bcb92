//! `#[outbox_handler] async fn`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::{Ident, ReturnType, Signature, ext::IdentExt as _};

use super::{
    arguments::HandlerArguments,
    expand,
    item::Function,
    mark,
    model::{Callee, HandlerModel},
    validate,
};
use crate::{errors::Errors, paths::Paths, retryable};

pub(super) fn expand(
    arguments: &TokenStream,
    mut function: Function,
    errors: &mut Errors,
) -> TokenStream {
    let given = HandlerArguments::parse(arguments.clone(), errors);
    let retryable = retryable::take(&mut function.attrs, errors);
    mark::reject_further(&mut function.attrs, errors);
    validate::free_function(&function.sig, errors);
    let arguments = validate::signature(&function.sig, errors);

    // Inside an `impl` block the macro may only write the method itself.
    if function.sig.receiver().is_some() {
        return function.into_token_stream();
    }

    let paths = Paths::new(given.krate.as_ref());
    let marker = given
        .marker
        .clone()
        .unwrap_or_else(|| namesake(&function.sig.ident));
    let marker_type = expand::marker_type(&function.vis, &marker, &paths);
    let (ty, of) = (marker.to_token_stream(), quote!(()));
    let registered = match arguments.filter(|_| errors.is_empty()) {
        Some(arguments) => {
            let handler = HandlerModel {
                name: function.sig.ident.unraw().to_string(),
                span: function.sig.ident.span(),
                callee: Callee::Function {
                    function: function.sig.ident.clone(),
                    marker,
                },
                event: arguments.event,
                arguments: arguments.others,
                output: output(&function.sig),
                given,
                policies: retryable.policies,
                conditions: Vec::new(),
            };
            expand::registered(&ty, &of, &[handler], &paths)
        }
        None => expand::unregistered(&ty, &of, None, &paths),
    };
    let consumed = retryable.consumed;
    quote!(#function #marker_type #registered #consumed)
}

pub(super) fn output(sig: &Signature) -> TokenStream {
    match &sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    }
}

/// The function's name, for the generated type. It has the location of the function but the hygiene of
/// the macro, so that no lint on type names checks it.
fn namesake(function: &Ident) -> Ident {
    let mut name = function.clone();
    name.set_span(Span::call_site().located_at(function.span()));
    name
}
