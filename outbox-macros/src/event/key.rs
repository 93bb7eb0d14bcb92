//! `key = field`, or an expression over the fields and `self`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Data, DeriveInput, Expr, ExprLit, Fields, Ident, Lit, spanned::Spanned as _};

use crate::{arguments::hint, errors::Errors, literals, paths::Paths};

/// The body of `fn key(&self)`, as a `String`.
pub(super) fn expand(
    key: &Expr,
    item: &DeriveInput,
    paths: &Paths,
    errors: &mut Errors,
) -> Option<TokenStream> {
    let fields = named_fields(item);
    if let Some(word) = literals::word(key).filter(|word| *word != "self")
        && !fields.contains(&word)
    {
        errors.at(word, no_such_field(word, item, &fields));
        return None;
    }
    if let Expr::Lit(ExprLit { lit, .. }) = key {
        errors.at(key, no_constant(lit, &fields));
        return None;
    }
    // Every field is in scope, because `format!("{tenant}")` names one where no macro can see it.
    let scope = (!fields.is_empty()).then(|| {
        quote! {
            let Self { #(#fields,)* .. } = self;
            let _ = (#(&#fields,)*);
        }
    });
    let krate = paths.at(key.span()).krate;
    let text = quote_spanned!(key.span()=> #krate::record::EventKey::to_key(&#key));
    Some(quote!(#scope #text))
}

fn named_fields(item: &DeriveInput) -> Vec<&Ident> {
    match &item.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => fields
                .named
                .iter()
                .filter_map(|f| f.ident.as_ref())
                .collect(),
            Fields::Unnamed(_) | Fields::Unit => Vec::new(),
        },
        Data::Enum(_) | Data::Union(_) => Vec::new(),
    }
}

fn no_such_field(word: &Ident, item: &DeriveInput, fields: &[&Ident]) -> String {
    let ident = &item.ident;
    match &item.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(_) if !fields.is_empty() => {
                let names: Vec<String> = fields.iter().map(ToString::to_string).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let hint = hint(&word.to_string(), &names);
                format!("`{ident}` has no field `{word}`; {hint}")
            }
            Fields::Unnamed(_) => {
                format!("the fields of `{ident}` have no names: write `key = self.0`")
            }
            Fields::Named(_) | Fields::Unit => {
                format!(
                    "`{ident}` has no fields: remove `key`, or write an expression such as `key = self.{word}()`"
                )
            }
        },
        Data::Enum(_) | Data::Union(_) => format!(
            "the enum `{ident}` has no field of its own: write an expression such as `key = self.{word}()`"
        ),
    }
}

fn no_constant(literal: &Lit, fields: &[&Ident]) -> String {
    let quoted = match literal {
        Lit::Str(text) => text.value(),
        _ => String::new(),
    };
    match fields.iter().find(|field| ***field == quoted) {
        Some(field) => format!("`key` names a field without quotes: `key = {field}`"),
        None => "`key` is a field or an expression over fields, such as `key = order_id`: a constant would put all events of this type into one order".to_owned(),
    }
}
