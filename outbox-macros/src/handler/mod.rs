//! `#[outbox_handler]`: [`item`] parses the item, [`arguments`] the arguments, [`validate`] checks both,
//! and [`expand`] generates the registration.

mod arguments;
mod conditional;
mod expand;
mod function;
mod functions;
mod inherent_impl;
mod item;
mod mark;
mod model;
mod trait_impl;
mod validate;

use proc_macro2::TokenStream;
use quote::quote;

use crate::errors::Errors;
use item::Item;

pub(crate) fn outbox_handler(arguments: &TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let expanded = match item::parse(item.clone()) {
        Ok(Item::Function(function)) => function::expand(arguments, function, &mut errors),
        Ok(Item::Block(block)) => match block.of_trait.clone() {
            Some((path, _)) => trait_impl::expand(arguments, &path, block, &mut errors),
            None => inherent_impl::expand(arguments, block, &mut errors),
        },
        Err(error) => {
            errors.add(error);
            item
        }
    };
    quote!(#expanded #errors)
}
