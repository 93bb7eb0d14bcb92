//! What a `#[retryable]` without faults says, and the expression that makes it.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Expr, LitStr, Type, spanned::Spanned as _};

use crate::{duration, paths::Paths};

/// One policy.
pub(crate) enum Policy {
    /// `policy = "name"`: looked up at start-up.
    Named(LitStr),
    /// `policy = SomeType`: made by its `Default`.
    ByDefault(Expr),
    /// `policy = CONSTANT`: cloned, because a static cannot be moved out of.
    ByClone(Expr),
    /// `policy = expression`.
    ByValue(Expr),
    /// Written inline.
    Inline(Inline),
    /// One of several, by a condition on the build.
    Conditional(Vec<(TokenStream, Self)>),
}

/// A policy written inline; what is not given is left to the builder.
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

impl Policy {
    /// An `Option<AttributePolicy>`.
    pub(crate) fn expand(&self, paths: &Paths) -> TokenStream {
        let Self::Conditional(policies) = self else {
            let policy = self.expand_one(paths);
            return quote!(::core::option::Option::Some(#policy));
        };
        let conditions = policies.iter().map(|(condition, _)| condition);
        let cases = policies.iter().map(|(condition, policy)| {
            let policy = policy.expand(paths);
            quote!(#[cfg(#condition)] { #policy })
        });
        quote!({
            #(#cases)*
            #[cfg(not(any(#(#conditions),*)))]
            { ::core::option::Option::None }
        })
    }

    /// An `AttributePolicy`.
    fn expand_one(&self, paths: &Paths) -> TokenStream {
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
            // Each of them is expanded by itself.
            Self::Conditional(_) => TokenStream::new(),
            Self::Inline(inline) => {
                let builder = inline.expand(paths);
                quote!(#private::policy_by_value(#builder))
            }
        };
        quote!(#private::AttributePolicy::Built(|| #built))
    }
}

impl Inline {
    fn expand(&self, paths: &Paths) -> TokenStream {
        let krate = &paths.krate;
        let backoff = self.backoff.as_ref().map(Backoff::expand);
        let max_retries = self.max_retries.map(|n| quote!(.max_retries(#n)));
        let max_elapsed = self.max_elapsed.map(|limit| {
            let limit = duration::tokens(limit);
            quote!(.max_elapsed(#limit))
        });
        let jitter = self.jitter.as_ref().map(|jitter| {
            let jitter = jitter.expand();
            quote!(.jitter(#krate::Jitter::#jitter))
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
            #krate::Retry::builder()
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
