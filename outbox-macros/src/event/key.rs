//! `key = field`, or an expression over the fields and `self`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Data, DeriveInput, Expr, Fields, Ident, spanned::Spanned as _};

use crate::{
    arguments::{list, nearest},
    errors::Errors,
    literals,
    paths::Paths,
};

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
    if matches!(key, Expr::Lit(_)) {
        errors.at(
            key,
            "`key` is a field or an expression over fields; a constant would put all events of this type into one order",
        );
        return None;
    }
    // Every field is in scope, because `format!("{tenant}")` names one where no macro can see it.
    let scope = (!fields.is_empty()).then(|| {
        quote! {
            let Self { #(#fields,)* .. } = self;
            let _ = (#(&#fields,)*);
        }
    });
    let krate = &paths.krate;
    let text = quote_spanned!(key.span()=> #krate::EventKey::to_key(&#key));
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
    if fields.is_empty() {
        return format!(
            "`{ident}` has no named field `{word}`: write an expression instead, such as `key = self.0` or `key = self.key()`"
        );
    }
    let names: Vec<String> = fields.iter().map(ToString::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hint = match nearest(&word.to_string(), &names) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("there are {}", list(&names)),
    };
    format!("`{ident}` has no field `{word}`; {hint}")
}
