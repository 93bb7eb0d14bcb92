//! `#[derive(OutboxEvent)]`: [`arguments`] reads `#[outbox_event(..)]`, [`key`] turns the key into
//! an expression.

mod arguments;
mod key;

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{Data, DeriveInput, parse_quote, spanned::Spanned as _};

use crate::{errors::Errors, paths::Paths};
use arguments::EventArguments;

pub(crate) fn derive(item: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.to_compile_error(),
    };
    let mut errors = Errors::default();
    if let Data::Union(union) = &item.data {
        errors.at(
            union.union_token,
            "an outbox event cannot be a union: write a struct or an enum",
        );
        return errors.into_token_stream();
    }
    is_not_generic(&item, &mut errors);
    let given = EventArguments::parse(&item, &mut errors);
    let paths = Paths::new(given.krate.as_ref());
    let key = given
        .key
        .as_ref()
        .and_then(|key| key::expand(key, &item, &paths, &mut errors));
    let expanded = expand(&item, &given, key.as_ref(), &paths);
    quote!(#expanded #errors)
}

fn is_not_generic(item: &DeriveInput, errors: &mut Errors) {
    if let Some(param) = item.generics.params.first() {
        errors.at(
            param,
            "an outbox event cannot be generic: it is stored under one name and read back as one type; make a type of its own for each event",
        );
    }
}

/// Generates the impl even after a mistake, so that code that uses the event still compiles.
fn expand(
    item: &DeriveInput,
    given: &EventArguments,
    key: Option<&TokenStream>,
    paths: &Paths,
) -> TokenStream {
    let (krate, private) = (&paths.krate, &paths.private);
    let name = given
        .name
        .as_ref()
        .map_or_else(|| quote!(""), |name| quote!(#name));
    let aliases = &given.aliases;
    let version = given.version.unwrap_or(1);
    let key_method = key.map(|key| {
        quote! {
            fn key(&self) -> ::core::option::Option<::std::string::String> {
                ::core::option::Option::Some({ #key })
            }
        }
    });
    let validate = given.validate.as_ref().map(|validate| {
        let private = paths.at(validate.span()).private;
        let call = quote_spanned!(validate.span()=> #private::validated(self, #validate));
        quote! {
            fn validate(&self) -> ::core::result::Result<(), #krate::handler::BoxError> {
                #call
            }
        }
    });
    let ident = &item.ident;
    let mut generics = item.generics.clone();
    if !generics.params.is_empty() {
        // The generics were reported as a mistake. This bound prevents a second report about types
        // that cannot be stored.
        let clause = generics.make_where_clause();
        clause
            .predicates
            .push(parse_quote!(Self: #krate::record::EventData));
    }
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    quote! {
        impl #impl_generics #krate::OutboxEvent for #ident #ty_generics #where_clause {
            const NAME: &'static str = #name;
            const ALIASES: &'static [&'static str] = &[#(#aliases),*];
            const VERSION: #private::Version = #version;
                        #key_method
                        #validate
        }
    }
}
