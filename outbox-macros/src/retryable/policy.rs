//! The policy of a `#[retryable]` without mistakes, and the expression that makes it.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Expr, LitStr, Type, spanned::Spanned as _};

use crate::{duration, paths::Paths};

/// One policy.
pub(crate) enum Policy {
    /// `policy = "name"`: the registry looks it up at start-up.
    Named(LitStr),
    /// `policy = SomeType`: made by its `Default`.
    ByDefault(Expr),
    /// `policy = CONSTANT`: cloned, because a static cannot be moved out of.
    ByClone(Expr),
    /// `policy = expression`.
    ByValue(Expr),
    /// Written inline.
    Inline(Inline),
}

/// A policy written inline. Everything that is not given comes from the next weaker place.
#[derive(Default)]
pub(crate) struct Inline {
    pub(super) backoff: Option<Backoff>,
    pub(super) max_retries: Option<u32>,
    pub(super) max_elapsed: Option<Duration>,
    pub(super) jitter: Option<Jitter>,
    pub(super) retry_on: Vec<Type>,
    pub(super) no_retry_on: Vec<Type>,
    pub(super) retry_if: Option<Expr>,
}

pub(super) enum Backoff {
    Fixed {
        delay: Duration,
    },
    Linear {
        initial: Duration,
        increment: Duration,
        max: Duration,
    },
    Exponential {
        initial: Duration,
        multiplier: f64,
        max: Duration,
    },
}

pub(super) enum Jitter {
    None,
    Around(Duration),
    Proportional(f64),
    Full,
    Equal,
    Decorrelated,
}

/// The policy of a handler, or several policies under different build conditions.
pub(crate) struct Policies {
    /// A policy without a condition. There are no others then.
    pub(super) plain: Option<Policy>,
    /// Policies with the conditions of their `cfg_attr`.
    pub(super) conditional: Vec<(TokenStream, Policy)>,
}

impl Policies {
    /// An `Option<AttributePolicy>`.
    pub(crate) fn expand(&self, paths: &Paths) -> TokenStream {
        let some = |policy: &Policy| {
            let expression = policy.expand(paths);
            quote!(::core::option::Option::Some(#expression))
        };
        let none = quote!(::core::option::Option::None);
        if self.conditional.is_empty() {
            return self.plain.as_ref().map_or(none, some);
        }
        let conditions = self.conditional.iter().map(|(condition, _)| condition);
        let cases = self.conditional.iter().map(|(condition, policy)| {
            let policy = some(policy);
            quote!(#[cfg(#condition)] { #policy })
        });
        quote!({
            #(#cases)*
            #[cfg(not(any(#(#conditions),*)))]
            { #none }
        })
    }
}

impl Policy {
    /// An `AttributePolicy`.
    fn expand(&self, paths: &Paths) -> TokenStream {
        let private = &paths.private;
        let built = match self {
            Self::Named(name) => return quote!(#private::AttributePolicy::Named(#name)),
            Self::ByDefault(ty) => {
                let private = paths.at(ty.span()).private;
                quote_spanned!(ty.span()=> #private::policy_by_default::<#ty>())
            }
            Self::ByClone(place) => {
                let private = paths.at(place.span()).private;
                quote_spanned!(place.span()=> #private::policy_by_clone(&#place))
            }
            Self::ByValue(value) => {
                let private = paths.at(value.span()).private;
                quote_spanned!(value.span()=> #private::policy_by_value(#value))
            }
            Self::Inline(inline) => {
                let parts = inline.expand(paths);
                return quote!(#private::AttributePolicy::Inline(|| #parts));
            }
        };
        quote!(#private::AttributePolicy::Built(|| #built))
    }
}

impl Inline {
    fn expand(&self, paths: &Paths) -> TokenStream {
        let (krate, private) = (&paths.krate, &paths.private);
        let backoff = self.backoff.as_ref().map(Backoff::expand);
        let max_retries = self.max_retries.map(|n| quote!(.max_retries(#n)));
        let max_elapsed = self.max_elapsed.map(|limit| {
            let expression = duration::tokens(limit);
            quote!(.max_elapsed(#expression))
        });
        let jitter = self.jitter.as_ref().map(|jitter| {
            let variant = jitter.expand();
            quote!(.jitter(#krate::retry::Jitter::#variant))
        });
        let retry_on = self
            .retry_on
            .iter()
            .map(|ty| quote_spanned!(ty.span()=> .retry_on::<#ty>()));
        let no_retry_on = self
            .no_retry_on
            .iter()
            .map(|ty| quote_spanned!(ty.span()=> .no_retry_on::<#ty>()));
        let retry_if = self
            .retry_if
            .as_ref()
            .map(|predicate| quote_spanned!(predicate.span()=> .retry_if(#predicate)));
        quote! {
            #private::RetryParts::new()
                #backoff #max_retries #max_elapsed #jitter #(#retry_on)* #(#no_retry_on)* #retry_if
        }
    }
}

impl Backoff {
    fn expand(&self) -> TokenStream {
        match *self {
            Self::Fixed { delay } => {
                let delay = duration::tokens(delay);
                quote!(.fixed(#delay))
            }
            Self::Linear {
                initial,
                increment,
                max,
            } => {
                let [initial, increment, max] = [initial, increment, max].map(duration::tokens);
                quote!(.linear(#initial, #increment, #max))
            }
            Self::Exponential {
                initial,
                multiplier,
                max,
            } => {
                let [initial, max] = [initial, max].map(duration::tokens);
                quote!(.exponential(#initial, #multiplier, #max))
            }
        }
    }
}

impl Jitter {
    fn expand(&self) -> TokenStream {
        match *self {
            Self::None => quote!(None),
            Self::Around(spread) => {
                let spread = duration::tokens(spread);
                quote!(Around(#spread))
            }
            Self::Proportional(share) => quote!(Proportional(#share)),
            Self::Full => quote!(Full),
            Self::Equal => quote!(Equal),
            Self::Decorrelated => quote!(Decorrelated),
        }
    }
}
