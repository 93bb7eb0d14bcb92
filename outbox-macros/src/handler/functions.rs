//! The functions of a registration: the requirements of a handler, its invocation, and its fallback.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Ident, Path, spanned::Spanned as _};

use super::model::{Callee, HandlerModel};
use crate::paths::Paths;

/// Generates the functions of one handler.
///
/// Most tokens have a span of the user's code, so that the compiler reports errors there. Such spans may
/// come from different macros, and a variable is only found by tokens of the same hygiene. All variable
/// names therefore share one span.
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

    /// The requirements of the arguments, and of the instance on which a method is called.
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

    /// Decodes the event, checks it, calls the guard, makes the arguments and runs the handler. The first
    /// failure is the outcome.
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
        let validate = handler.given.validate.as_ref();
        let validate = validate.map(|path| self.validate(path));
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
            // The trait `Handler` itself checks the output.
            Callee::Trait { .. } => quote!(#private::IntoOutcome::into_outcome),
        };
        self.boxed(&quote! {
            #receive
            #validate
            #guard
            #instance
            #(#arguments)*
            #outcome(#call.await)
        })
    }

    /// Fails as `Invalid` if the function returns an error.
    fn validate(&self, path: &Path) -> TokenStream {
        let (private, at_path) = (&self.paths.private, self.paths.at(path.span()).private);
        let (event, context) = (&self.event, &self.context);
        let ty = &self.handler.event;
        let check = quote_spanned!(path.span()=> #at_path::Validate::<#ty>::check(#path, &#event, #context));
        quote!(#private::attempt!(#check);)
    }

    /// Returns `Outcome::Skipped` if the guard returns `false`.
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
        // The compiler reports the same error at the same place only once.
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

    /// Boxes the future with the span of the handler's name, because the compiler reports a future that
    /// is not `Send` there.
    fn boxed(&self, body: &TokenStream) -> TokenStream {
        let context = &self.context;
        let future = quote!(async move { #body });
        quote_spanned!(self.handler.span=> |#context| ::std::boxed::Box::pin(#future))
    }
}

fn variable(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}
