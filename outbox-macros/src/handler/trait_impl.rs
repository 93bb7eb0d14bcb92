//! `#[outbox_handler] impl Handler<E> for T`: one handler, whose event the trait names.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{
    FnArg, GenericArgument, Path, PathArguments, ReturnType, Signature, Type, TypePath,
    parse_quote, spanned::Spanned as _,
};

use super::{
    arguments::HandlerArguments,
    expand,
    item::{Block, compact},
    mark,
    model::{Callee, HandlerModel},
    validate,
};
use crate::{errors::Errors, paths::Paths, retryable};

pub(super) fn expand(
    arguments: &TokenStream,
    path: &Path,
    mut block: Block,
    errors: &mut Errors,
) -> TokenStream {
    let given = HandlerArguments::parse(arguments.clone(), errors);
    let retryable = retryable::take(&mut block.attrs, errors);
    mark::reject_further(&mut block.attrs, errors);
    if path
        .segments
        .last()
        .is_none_or(|last| last.ident != "Handler")
    {
        errors.at(
            path,
            "`#[outbox_handler]` on a trait's `impl` needs the trait `Handler<E>`; other handlers are functions, or methods of an inherent `impl`",
        );
        return block.into_token_stream();
    }
    validate::block(&block.generics, errors);
    if let Some(marker) = given.keys.iter().find(|key| *key == "marker") {
        errors.at(
            marker,
            "`marker` has no use here, because the type itself stands for the handler: remove it",
        );
    }
    let fits = check_handle(&mut block, errors);
    let Some(event) = event_of(path, &mut block, errors) else {
        return TokenStream::new();
    };

    // The return type of a handler is more specific than that of the trait, on purpose.
    block
        .attrs
        .push(parse_quote!(#[allow(refining_impl_trait)]));
    let paths = Paths::new(given.krate.as_ref());
    let consumed = retryable.consumed;
    let (ty, of) = (block.self_ty.clone(), event.to_token_stream());
    let generics = block.generics.clone();
    if !errors.is_empty() {
        // The compiler would report a method that does not fit the trait a second time.
        let block = if fits {
            block.to_token_stream()
        } else {
            expand::stub(&block, &event, &paths)
        };
        let unregistered =
            expand::unregistered(&ty.into_token_stream(), &of, Some(&generics), &paths);
        return quote!(#block #unregistered #consumed);
    }
    let handler = HandlerModel {
        name: format!("{}<{}>", compact(&ty), compact(&event)),
        span: ty.span(),
        callee: Callee::Trait { of: ty.clone() },
        event,
        arguments: Vec::new(),
        output: TokenStream::new(),
        given,
        policies: retryable.policies,
        conditions: Vec::new(),
    };
    let registered = expand::registered(&ty.into_token_stream(), &of, &[handler], &paths);
    quote!(#block #registered #consumed)
}

/// The `E` of `Handler<E>`. If it is missing, the event that `handle` takes, which is written into the
/// block so that the compiler does not report it too.
fn event_of(path: &Path, block: &mut Block, errors: &mut Errors) -> Option<Type> {
    if let PathArguments::AngleBracketed(generics) = &path.segments.last()?.arguments
        && let Some(GenericArgument::Type(event)) = generics.args.first()
    {
        return Some(event.clone());
    }
    let taken = block
        .methods()
        .find_map(|method| match method.sig.inputs.iter().nth(1)? {
            FnArg::Typed(event) => Some((*event.ty).clone()),
            FnArg::Receiver(_) => None,
        });
    let name = taken
        .as_ref()
        .map_or_else(|| "YourEvent".to_owned(), compact);
    errors.at(
        path,
        format!("say which event it handles: `Handler<{name}>`"),
    );
    let event = taken?;
    if let Some((path, _)) = &mut block.of_trait
        && let Some(last) = path.segments.last_mut()
    {
        last.arguments = PathArguments::AngleBracketed(parse_quote!(<#event>));
    }
    Some(event)
}

/// Reports mistakes in `handle` that the compiler reports less clearly or not at all. Returns whether
/// `handle` fits the trait.
fn check_handle(block: &mut Block, errors: &mut Errors) -> bool {
    let mut fits = true;
    for method in block.methods() {
        for attr in retryable::take_raw(&mut method.attrs) {
            errors.at(
                attr,
                "put `#[retryable]` on the `impl` block, beside `#[outbox_handler]`",
            );
        }
        for attr in method.attrs.extract_if(.., |attr| mark::is_mark(attr)) {
            errors.at(
                attr,
                "the `impl` block is marked already: remove this, and put its arguments there",
            );
        }
        fits &= is_called_handle(&method.sig, errors)
            && is_asynchronous(&method.sig, errors) & takes_event_and_metadata(&method.sig, errors);
    }
    fits
}

fn is_called_handle(sig: &Signature, errors: &mut Errors) -> bool {
    let is_called_handle = sig.ident == "handle";
    if !is_called_handle {
        errors.at(
            &sig.ident,
            "the only method of `Handler` is `handle`: rename this, or move it to an inherent `impl`",
        );
    }
    is_called_handle
}

/// Whether the function is `async` or returns a future.
fn is_asynchronous(sig: &Signature, errors: &mut Errors) -> bool {
    let returns_a_result = match &sig.output {
        ReturnType::Default => true,
        ReturnType::Type(_, ty) => match &**ty {
            Type::Tuple(tuple) => tuple.elems.is_empty(),
            Type::Path(TypePath { path, .. }) => path
                .segments
                .last()
                .is_some_and(|last| last.ident == "Result"),
            _ => false,
        },
    };
    let is_asynchronous = sig.asyncness.is_some() || !returns_a_result;
    if !is_asynchronous {
        validate::is_async(sig, errors);
    }
    is_asynchronous
}

fn takes_event_and_metadata(sig: &Signature, errors: &mut Errors) -> bool {
    const TAKES: &str = "`Handler::handle` takes `&self`, the event and `&Metadata`";
    match sig.inputs.iter().nth(3) {
        Some(extra) => errors.at(
            extra,
            format!("{TAKES}; to take more, write an `async fn` or a marked method of an inherent `impl`"),
        ),
        None if sig.inputs.len() < 3 => errors.at_span(
            sig.paren_token.span.join(),
            format!("{TAKES}: `async fn handle(&self, event: YourEvent, meta: &Metadata)`"),
        ),
        None => return true,
    }
    false
}
