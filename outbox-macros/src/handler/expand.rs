//! Generates tokens from models. It cannot fail: validation has found every mistake before. Code that only
//! the compiler can check has the span of the user's own type.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Generics, Ident, Type, Visibility, spanned::Spanned as _};

use super::{
    functions::Functions,
    item::Block,
    model::{Callee, HandlerModel},
};
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

/// Makes a type stand for these handlers, and registers them.
pub(super) fn registered(
    ty: &TokenStream,
    of: &TokenStream,
    handlers: &[HandlerModel],
    paths: &Paths,
) -> TokenStream {
    let private = &paths.private;
    let registrations = handlers.iter().map(|handler| registration(handler, paths));
    quote! {
        const _: () = {
            use #private::NotRetryAware as _;

            impl #private::Registered<#of> for #ty {
                const REGISTRATIONS: &'static [#private::Registration] = &[#(#registrations),*];
            }

            #private::submit!(#ty, #of);
        };
    }
}

/// After a mistake: the type stands for no handler, so that code that names it compiles.
pub(super) fn unregistered(
    ty: &TokenStream,
    of: &TokenStream,
    generics: Option<&Generics>,
    paths: &Paths,
) -> TokenStream {
    let private = &paths.private;
    let split = generics.map(Generics::split_for_impl);
    let (impl_generics, where_clause) = match &split {
        Some((impl_generics, _, where_clause)) => (Some(impl_generics), *where_clause),
        None => (None, None),
    };
    quote! {
        impl #impl_generics #private::Registered<#of> for #ty #where_clause {
            const REGISTRATIONS: &'static [#private::Registration] = &[];
        }
    }
}

/// Replaces an `impl Handler<E>` that the compiler would reject.
pub(super) fn stub(block: &Block, event: &Type, paths: &Paths) -> TokenStream {
    let krate = &paths.krate;
    let ty = &block.self_ty;
    let (impl_generics, _, where_clause) = block.generics.split_for_impl();
    quote! {
        #[allow(refining_impl_trait)]
        impl #impl_generics #krate::Handler<#event> for #ty #where_clause {
            async fn handle(&self, _: #event, _: &#krate::Metadata) {}
        }
    }
}

fn registration(handler: &HandlerModel, paths: &Paths) -> TokenStream {
    let private = &paths.private;
    let given = &handler.given;
    let id = id(handler);
    let aliases = &given.aliases;
    let event = event(handler, paths);
    let functions = Functions::new(handler, paths);
    let requires = functions.requires();
    let invoke = functions.invoke();
    let fallback = given.fallback.as_ref();
    let fallback = option(fallback.map(|path| functions.fallback(path)));
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
    let of_attribute = handler.policies.expand(paths);
    let conditions = &handler.conditions;
    quote! {
        #(#conditions)*
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
