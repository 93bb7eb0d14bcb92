//! `#[outbox_handler] impl`: of the trait `Handler<E>`, or inherent with marked methods.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{
    Attribute, GenericArgument, Meta, Path, PathArguments, Type, ext::IdentExt as _, parse_quote,
    spanned::Spanned as _,
};

use super::{
    arguments::HandlerArguments,
    expand, function,
    item::{Block, Function, Member},
    model::{Callee, HandlerModel},
    validate,
};
use crate::{errors::Errors, paths::Paths, retryable};

pub(super) fn expand(arguments: &TokenStream, block: Block, errors: &mut Errors) -> TokenStream {
    let given = HandlerArguments::parse(arguments.clone(), errors);
    validate::is_not_generic(&block.generics, errors);
    match block.of_trait.clone() {
        Some((path, _)) => of_trait(given, &path, block, errors),
        None => inherent(&given, block, errors),
    }
}

/// `impl Handler<E> for T`: one handler.
fn of_trait(
    given: HandlerArguments,
    path: &Path,
    mut block: Block,
    errors: &mut Errors,
) -> TokenStream {
    let retryable = retryable::take(&mut block.attrs, errors);
    if let Some(marker) = given.keys.iter().find(|key| *key == "marker") {
        errors.at(
            marker,
            "`marker` has no use here: the type itself stands for the handler",
        );
    }
    check_handle(&mut block, errors);
    let Some(event) = event_of(path, errors) else {
        return block.into_token_stream();
    };

    // A handler's own return type says more than the trait asks for; that is the point of it.
    block
        .attrs
        .push(parse_quote!(#[allow(refining_impl_trait)]));
    let paths = Paths::new(given.krate.clone());
    let (ty, of) = (block.self_ty.clone(), event.to_token_stream());
    let handlers = if errors.is_empty() {
        vec![HandlerModel {
            name: format!("{}<{}>", compact(&ty), compact(&event)),
            span: ty.span(),
            callee: Callee::Trait { of: ty.clone() },
            event,
            arguments: Vec::new(),
            output: TokenStream::new(),
            given,
            policy: retryable.policy,
        }]
    } else {
        Vec::new()
    };
    let registered = expand::registered(&ty.into_token_stream(), &of, &handlers, &paths);
    let consumed = retryable.consumed;
    quote!(#block #registered #consumed)
}

/// The `E` of `Handler<E>`.
fn event_of(path: &Path, errors: &mut Errors) -> Option<Type> {
    let last = path.segments.last()?;
    if last.ident != "Handler" {
        errors.at(
            path,
            "`#[outbox_handler]` on a trait's `impl` needs the trait `Handler<E>`; other handlers are functions, or methods of an inherent `impl`",
        );
        return None;
    }
    if let PathArguments::AngleBracketed(generics) = &last.arguments
        && let Some(GenericArgument::Type(event)) = generics.args.first()
    {
        return Some(event.clone());
    }
    errors.at(path, "say which event it handles: `Handler<YourEvent>`");
    None
}

/// What the compiler would say about `handle` less clearly, or not at all.
fn check_handle(block: &mut Block, errors: &mut Errors) {
    for method in methods(block) {
        if let Some(extra) = method.sig.inputs.iter().nth(3) {
            errors.at(
                extra,
                "`Handler::handle` takes the event and `&Metadata`; to take more, write an `async fn` or a marked method of an inherent `impl`",
            );
        }
        for attr in retryable::take_raw(&mut method.attrs) {
            errors.at(
                attr,
                "put `#[retryable]` on the `impl` block, beside `#[outbox_handler]`",
            );
        }
    }
}

/// An inherent `impl`: one handler per marked method.
fn inherent(given: &HandlerArguments, mut block: Block, errors: &mut Errors) -> TokenStream {
    for key in given
        .keys
        .iter()
        .filter(|key| *key != "crate" && *key != "marker")
    {
        let message = format!(
            "`{key}` belongs to one handler: put it on the method's own `#[outbox_handler({key} ..)]`"
        );
        errors.at(key, message);
    }
    for attr in retryable::take_raw(&mut block.attrs) {
        errors.at(
            attr,
            "`#[retryable]` belongs to one handler: put it on the marked methods",
        );
    }

    let paths = Paths::new(given.krate.clone());
    let self_ty = block.self_ty.clone();
    let mut handlers = Vec::new();
    let mut consumed = TokenStream::new();
    let mut any_marked = false;
    for method in methods(&mut block) {
        if let Some(arguments) = take_mark(method, errors) {
            any_marked = true;
            let retryable = retryable::take(&mut method.attrs, errors);
            consumed.extend(retryable.consumed);
            handlers.extend(marked(
                &self_ty,
                method,
                &arguments,
                retryable.policy,
                errors,
            ));
        }
    }
    if !any_marked {
        errors.at_span(
            self_ty.span(),
            "no method of this `impl` is a handler: mark each with `#[outbox_handler]` too",
        );
    }
    if !errors.is_empty() {
        handlers.clear();
    }

    let (marker_type, ty) = match &given.marker {
        Some(marker) => {
            let vis = parse_quote!(pub(crate));
            let marker_type = expand::marker_type(&vis, marker, &paths);
            (Some(marker_type), marker.to_token_stream())
        }
        None => (None, self_ty.to_token_stream()),
    };
    let registered = expand::registered(&ty, &quote!(()), &handlers, &paths);
    quote!(#block #marker_type #registered #consumed)
}

fn marked(
    self_ty: &Type,
    method: &Function,
    arguments: &TokenStream,
    policy: Option<retryable::Policy>,
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
            format!("`{key}` belongs on the `impl` block's `#[outbox_handler]`"),
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
        policy,
    })
}

/// Removes a method's own mark; its arguments, if it had one.
fn take_mark(method: &mut Function, errors: &mut Errors) -> Option<TokenStream> {
    let place = method.attrs.iter().position(is_mark)?;
    let mark = method.attrs.remove(place);
    if let Some(second) = method.attrs.iter().find(|attr| is_mark(attr)) {
        errors.at(second, "`#[outbox_handler]` is given twice: remove one");
    }
    Some(match mark.meta {
        Meta::List(list) => list.tokens,
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    })
}

fn is_mark(attr: &Attribute) -> bool {
    retryable::is_named(attr, "outbox_handler")
}

fn methods(block: &mut Block) -> impl Iterator<Item = &mut Function> {
    block.members.iter_mut().filter_map(|member| match member {
        Member::Method(method) => Some(&mut **method),
        Member::Other(_) => None,
    })
}

/// A type as it is read, without the spaces between its tokens.
fn compact(ty: &Type) -> String {
    ty.to_token_stream().to_string().replace(' ', "")
}
