//! `#[error_name("..")]`: the name of an error type in a configuration.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Generics, Ident, LitStr, Path, Token, Visibility,
    parse::{ParseStream, Parser as _},
};

use crate::{errors::Errors, paths::Paths};

pub(crate) fn error_name(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let registered = register(arguments, item.clone()).unwrap_or_else(|error| {
        errors.add(error);
        TokenStream::new()
    });
    quote!(#item #registered #errors)
}

fn register(arguments: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let (name, krate) = name_and_crate.parse2(arguments).map_err(|error| {
        let message = "write the name in quotes: `#[error_name(\"billing.declined\")]`";
        syn::Error::new(error.span(), message)
    })?;
    if name.value().trim().is_empty() {
        return Err(syn::Error::new_spanned(
            name,
            "the name must not be empty: write one such as \"billing.declined\"",
        ));
    }
    let (ident, generics) = header.parse2(item)?;
    if let Some(param) = generics.params.first() {
        let message =
            "a generic error type is many types: name each with `.error_name::<E>(\"..\")` instead";
        return Err(syn::Error::new_spanned(param, message));
    }
    let private = Paths::new(krate.as_ref()).private;
    Ok(quote! {
        const _: () = {
            #private::submit_error_name!(#ident, #name);
        };
    })
}

/// `"billing.declined"`, and `, crate = path` if the dependency was renamed.
fn name_and_crate(input: ParseStream<'_>) -> syn::Result<(LitStr, Option<Path>)> {
    let name = input.parse()?;
    if input.parse::<Option<Token![,]>>()?.is_none() || input.is_empty() {
        return Ok((name, None));
    }
    input.parse::<Token![crate]>()?;
    input.parse::<Token![=]>()?;
    Ok((name, Some(input.parse()?)))
}

/// The name and type parameters of a struct or enum. The rest is not parsed.
fn header(input: ParseStream<'_>) -> syn::Result<(Ident, Generics)> {
    Attribute::parse_outer(input)?;
    input.parse::<Visibility>()?;
    if !input.peek(Token![struct]) && !input.peek(Token![enum]) {
        return Err(
            input.error("`#[error_name]` names an error type: put it on a struct or an enum")
        );
    }
    input.parse::<proc_macro2::TokenTree>()?;
    let (ident, generics) = (input.parse()?, input.parse()?);
    input.parse::<TokenStream>()?;
    Ok((ident, generics))
}
