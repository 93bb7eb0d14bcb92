//! From models to tokens. Cannot fail: what could be wrong was found before, and what only the
//! compiler can know is written with the span of the user's own type.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, Visibility, spanned::Spanned as _};

use super::model::{Callee, HandlerModel};
use crate::{duration, paths::Paths};

/// The type that stands for a function.
pub(super) fn marker_type(vis: &Visibility, marker: &Ident, paths: &Paths) -> TokenStream {
    let private = &paths.private;
    quote! {
        #[doc(hidden)]
        #vis struct #marker {}

        impl #private::Marker for #marker {
            const MARKER: Self = Self {};
        }
    }
}

/// Makes a type stand for these handlers, and registers them. With no handlers (after a mistake)
/// the type still stands for none, so that code that names it compiles.
pub(super) fn registered(
    ty: &TokenStream,
    of: &TokenStream,
    handlers: &[HandlerModel],
    paths: &Paths,
) -> TokenStream {
    let private = &paths.private;
    let registrations = handlers.iter().map(|handler| registration(handler, paths));
    let submission = (!handlers.is_empty()).then(|| quote!(#private::submit!(#ty, #of);));
    quote! {
        const _: () = {
            use #private::NotRetryAware as _;

            impl #private::Registered<#of> for #ty {
                const REGISTRATIONS: &'static [#private::Registration] = &[#(#registrations),*];
            }

            #submission
        };
    }
}

fn registration(handler: &HandlerModel, paths: &Paths) -> TokenStream {
    let private = &paths.private;
    let given = &handler.given;
    let id = id(handler);
    let aliases = &given.aliases;
    let event = event(handler, paths);
    let requires = requires(handler, paths);
    let invoke = invoke(handler, paths);
    let fallback = option(given.fallback.as_ref().map(|_| fallback(handler, paths)));
    let timeout = option(given.timeout.map(duration::tokens));
    let concurrency = option(given.concurrency.map(|limit| quote!(#limit)));
    let on_permanent_failure = if given.skip_on_permanent_failure {
        quote!(Skip)
    } else {
        quote!(Block)
    };
    let of_trait = match &handler.callee {
        Callee::Function { marker, .. } => quote!(#private::Probe::<#marker>::OF_MARKER),
        Callee::Method { of, .. } | Callee::Trait { of } => {
            quote!(#private::Probe::<#of>::OF_INSTANCE)
        }
    };
    let of_attribute = option(handler.policy.as_ref().map(|policy| policy.expand(paths)));
    quote! {
        #private::Registration {
            id: #id,
            aliases: &[#(#aliases),*],
            location: #private::Location {
                file: ::core::file!(),
                line: ::core::line!(),
                column: ::core::column!(),
            },
            event: #event,
            requires: #requires,
            invoke: #invoke,
            fallback: #fallback,
            timeout: #timeout,
            concurrency: #concurrency,
            on_permanent_failure: #private::PermanentFailure::#on_permanent_failure,
            of_trait: #of_trait,
            of_attribute: #of_attribute,
        }
    }
}

fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn id(handler: &HandlerModel) -> TokenStream {
    let name = &handler.name;
    match &handler.given.id {
        Some(id) => quote!(#id),
        None => quote!(::core::concat!(::core::module_path!(), "::", #name)),
    }
}

fn event(handler: &HandlerModel, paths: &Paths) -> TokenStream {
    let private = &paths.private;
    let ty = &handler.event;
    match &handler.given.events {
        None => quote_spanned!(ty.span()=> <#ty as #private::ReceivedEvent>::MATCH),
        Some(patterns) => {
            let check = quote_spanned!(ty.span()=> #private::chosen_by_name::<#ty>());
            quote!({ #check; #private::EventMatch::Patterns(&[#(#patterns),*]) })
        }
    }
}

/// What the arguments need, and the instance that a method is called on.
fn requires(handler: &HandlerModel, paths: &Paths) -> TokenStream {
    let private = &paths.private;
    let instance = match &handler.callee {
        Callee::Function { .. } => None,
        Callee::Method { of, .. } | Callee::Trait { of } => {
            Some(quote_spanned!(of.span()=> requirements.state::<#of>();))
        }
    };
    let arguments = handler.arguments.iter().map(|ty| {
        quote_spanned!(ty.span()=> <#ty as #private::FromContext<'_>>::requires(requirements);)
    });
    quote! {
        |requirements| {
            let _ = &requirements;
            #instance
            #(#arguments)*
        }
    }
}

/// Event, guard, arguments, handler; the first that fails is the outcome.
fn invoke(handler: &HandlerModel, paths: &Paths) -> TokenStream {
    let private = &paths.private;
    let receive = receive(handler, paths);
    let guard = handler.given.when.as_ref().map(|guard| {
        let asked = quote_spanned!(guard.span()=> #private::guard(#guard, &event, context));
        quote! {
            if !#asked {
                return #private::Outcome::Skipped;
            }
        }
    });
    let names: Vec<Ident> = (0..handler.arguments.len())
        .map(|place| format_ident!("argument{place}"))
        .collect();
    let arguments = handler.arguments.iter().zip(&names).map(|(ty, name)| {
        let make =
            quote_spanned!(ty.span()=> <#ty as #private::FromContext<'_>>::from_context(context));
        quote!(let #name = #private::attempt!(#make);)
    });
    let instance = match &handler.callee {
        Callee::Function { .. } => None,
        Callee::Method { of, .. } | Callee::Trait { of } => Some(quote! {
            let this = #private::attempt!(#private::instance::<#of>(context));
        }),
    };
    let call = match &handler.callee {
        Callee::Function { function, .. } => quote!(#function(event #(, #names)*)),
        Callee::Method { of, method } => quote!(<#of>::#method(this, event #(, #names)*)),
        Callee::Trait { of } => {
            let (krate, event) = (&paths.krate, &handler.event);
            quote!(<#of as #krate::Handler<#event>>::handle(this, event, context.metadata()))
        }
    };
    let outcome = match &handler.callee {
        Callee::Function { .. } | Callee::Method { .. } => {
            let output = &handler.output;
            quote_spanned!(output.span()=> <#output as #private::IntoOutcome>::into_outcome)
        }
        // `Handler` itself holds the output to it.
        Callee::Trait { .. } => quote!(#private::IntoOutcome::into_outcome),
    };
    boxed(
        handler,
        &quote! {
            #receive
            #guard
            #instance
            #(#arguments)*
            #outcome(#call.await)
        },
    )
}

fn fallback(handler: &HandlerModel, paths: &Paths) -> TokenStream {
    let private = &paths.private;
    let (event, path) = (&handler.event, &handler.given.fallback);
    let requires = quote_spanned!(path.span()=> #private::fallback_requires::<#event, _>(&#path, requirements));
    let receive = receive(handler, paths);
    let call = quote_spanned!(path.span()=> #private::fall_back(#path, event, context));
    let invoke = boxed(handler, &quote!(#receive #call.await));
    quote! {
        #private::FallbackFn {
            requires: |requirements| #requires,
            invoke: #invoke,
        }
    }
}

fn receive(handler: &HandlerModel, paths: &Paths) -> TokenStream {
    let private = &paths.private;
    let ty = &handler.event;
    let receive = quote_spanned!(ty.span()=> <#ty as #private::ReceivedEvent>::receive(context));
    quote!(let event = #private::attempt!(#receive);)
}

/// Boxed with the span of the handler's name, because that is where the compiler reports a
/// future that is not `Send`.
fn boxed(handler: &HandlerModel, body: &TokenStream) -> TokenStream {
    let future = quote!(async move { #body });
    quote_spanned!(handler.span=> |context| ::std::boxed::Box::pin(#future))
}
