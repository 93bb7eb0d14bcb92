//! The functions of a registration: what a handler needs, how it is run, what runs when it has
//! failed for good.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Ident, Path, spanned::Spanned as _};

use super::model::{Callee, HandlerModel};
use crate::paths::Paths;

/// Writes them for one handler.
///
/// Most of what is written has the span of something of the user's, to be blamed for errors, and
/// each such span may come from another macro. The names of variables therefore have a span of
/// their own, the same everywhere; otherwise one would not find the other.
pub(super) struct Functions<'m> {
    handler: &'m HandlerModel,
    paths: &'m Paths,
    context: Ident,
    requirements: Ident,
    event: Ident,
    this: Ident,
}

impl<'m> Functions<'m> {
    pub(super) fn new(handler: &'m HandlerModel, paths: &'m Paths) -> Self {
        Self {
            handler,
            paths,
            context: variable("context"),
            requirements: variable("requirements"),
            event: variable("event"),
            this: variable("this"),
        }
    }

    /// What the arguments need, and the instance that a method is called on.
    pub(super) fn requires(&self) -> TokenStream {
        let (private, requirements) = (&self.paths.private, &self.requirements);
        let instance = match &self.handler.callee {
            Callee::Function { .. } => None,
            Callee::Method { of, .. } | Callee::Trait { of } => {
                Some(quote_spanned!(of.span()=> #requirements.state::<#of>();))
            }
        };
        let arguments = self.handler.arguments.iter().map(|ty| {
            quote_spanned!(ty.span()=> <#ty as #private::FromContext<'_>>::requires(#requirements);)
        });
        quote! {
            |#requirements| {
                let _ = &#requirements;
                #instance
                #(#arguments)*
            }
        }
    }

    /// Event, guard, arguments, handler; the first that fails is the outcome.
    pub(super) fn invoke(&self) -> TokenStream {
        let Self {
            handler,
            paths: Paths { krate, private },
            context,
            event,
            this,
            ..
        } = self;
        let receive = self.receive();
        let guard = handler.given.when.as_ref().map(|guard| self.guard(guard));
        let names: Vec<Ident> = (0..handler.arguments.len())
            .map(|place| variable(&format!("argument{place}")))
            .collect();
        let arguments = handler.arguments.iter().zip(&names).map(|(ty, name)| {
            let make = quote_spanned!(ty.span()=> <#ty as #private::FromContext<'_>>::from_context(#context));
            quote!(let #name = #private::attempt!(#make);)
        });
        let instance = match &handler.callee {
            Callee::Function { .. } => None,
            Callee::Method { of, .. } | Callee::Trait { of } => Some(quote! {
                let #this = #private::attempt!(#private::instance::<#of>(#context));
            }),
        };
        let call = match &handler.callee {
            Callee::Function { function, .. } => quote!(#function(#event #(, #names)*)),
            Callee::Method { of, method } => quote!(<#of>::#method(#this, #event #(, #names)*)),
            Callee::Trait { of } => {
                let ty = &handler.event;
                quote!(<#of as #krate::Handler<#ty>>::handle(#this, #event, #context.metadata()))
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
        self.boxed(&quote! {
            #receive
            #guard
            #instance
            #(#arguments)*
            #outcome(#call.await)
        })
    }

    /// Leaves with the event unhandled if the guard does not want it.
    fn guard(&self, guard: &Path) -> TokenStream {
        let (private, at_guard) = (&self.paths.private, self.paths.at(guard.span()).private);
        let (event, context) = (&self.event, &self.context);
        let asked = quote_spanned!(guard.span()=> #at_guard::guard(#guard, &#event, #context));
        quote! {
            if !#asked {
                return #private::Outcome::Skipped;
            }
        }
    }

    pub(super) fn fallback(&self, path: &Path) -> TokenStream {
        let private = &self.paths.private;
        let (context, requirements, event) = (&self.context, &self.requirements, &self.event);
        let ty = &self.handler.event;
        // The same words at the same place twice, which the compiler reports once.
        let at_path = self.paths.at(path.span()).private;
        let of = quote_spanned!(path.span()=> #at_path::Fallback::<'_, #ty, _>);
        let requires = quote_spanned!(path.span()=> #of::requires(&#path, #requirements));
        let call = quote_spanned!(path.span()=> #of::call(#path, #event, #context));
        let receive = self.receive();
        let invoke = self.boxed(&quote!(#receive #call.await));
        quote! {
            #private::FallbackFn {
                requires: |#requirements| #requires,
                invoke: #invoke,
            }
        }
    }

    fn receive(&self) -> TokenStream {
        let (private, context, event) = (&self.paths.private, &self.context, &self.event);
        let ty = &self.handler.event;
        let receive =
            quote_spanned!(ty.span()=> <#ty as #private::ReceivedEvent>::receive(#context));
        quote!(let #event = #private::attempt!(#receive);)
    }

    /// Boxed with the span of the handler's name, because that is where the compiler reports a
    /// future that is not `Send`.
    fn boxed(&self, body: &TokenStream) -> TokenStream {
        let context = &self.context;
        let future = quote!(async move { #body });
        quote_spanned!(self.handler.span=> |#context| ::std::boxed::Box::pin(#future))
    }
}

fn variable(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}
