//! The items on which `#[outbox_handler]` is allowed. Bodies are not parsed, so that an incomplete body
//! still expands and editors keep working.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Attribute, Generics, Path, Signature, Token, Type, TypePath, Visibility, WhereClause, braced,
    parse::{ParseStream, Parser as _},
    token,
};

pub(super) enum Item {
    Function(Function),
    Block(Block),
}

/// A function or method. Its body is not parsed.
pub(super) struct Function {
    pub(super) attrs: Vec<Attribute>,
    pub(super) vis: Visibility,
    pub(super) sig: Signature,
    body: TokenStream,
}

/// An `impl` block.
pub(super) struct Block {
    pub(super) attrs: Vec<Attribute>,
    unsafety: Option<Token![unsafe]>,
    impl_token: Token![impl],
    pub(super) generics: Generics,
    /// `Handler<E> for`
    pub(super) of_trait: Option<(Path, Token![for])>,
    pub(super) self_ty: Type,
    brace: token::Brace,
    members: Vec<Member>,
}

enum Member {
    Method(Box<Function>),
    /// Constants, types and macro calls. They are passed on unchanged.
    Other(TokenStream),
}

impl Block {
    pub(super) fn methods(&mut self) -> impl Iterator<Item = &mut Function> {
        self.members.iter_mut().filter_map(|member| match member {
            Member::Method(method) => Some(&mut **method),
            Member::Other(_) => None,
        })
    }
}

/// A type as text, without spaces between its tokens.
pub(super) fn compact(ty: &Type) -> String {
    ty.to_token_stream().to_string().replace(' ', "")
}

pub(super) fn parse(tokens: TokenStream) -> syn::Result<Item> {
    parse_item.parse2(tokens)
}

fn parse_item(input: ParseStream<'_>) -> syn::Result<Item> {
    let attrs = Attribute::parse_outer(input)?;
    if input.peek(Token![impl]) || input.peek(Token![unsafe]) && input.peek2(Token![impl]) {
        return parse_block(attrs, input).map(Item::Block);
    }
    let vis: Visibility = input.parse()?;
    if !starts_function(input) {
        return Err(input.error(
            "`#[outbox_handler]` goes on an `async fn`, on `impl Handler<E> for T`, or on an `impl` block with marked methods",
        ));
    }
    Ok(Item::Function(Function {
        attrs,
        vis,
        sig: input.parse()?,
        body: input.parse()?,
    }))
}

/// Whether a signature follows. `const` may also start a constant.
fn starts_function(input: ParseStream<'_>) -> bool {
    input.peek(Token![fn])
        || input.peek(Token![async])
        || input.peek(Token![unsafe])
        || input.peek(Token![extern])
        || input.peek(Token![const])
            && (input.peek2(Token![fn])
                || input.peek2(Token![async])
                || input.peek2(Token![unsafe])
                || input.peek2(Token![extern]))
}

fn parse_block(attrs: Vec<Attribute>, input: ParseStream<'_>) -> syn::Result<Block> {
    let unsafety = input.parse()?;
    let impl_token = input.parse()?;
    let mut generics: Generics = input.parse()?;
    let first: Type = input.parse()?;
    let (of_trait, self_ty) = if input.peek(Token![for]) {
        let Type::Path(TypePath { path, .. }) = first else {
            return Err(syn::Error::new_spanned(first, "expected a trait"));
        };
        (Some((path, input.parse()?)), input.parse()?)
    } else {
        (None, first)
    };
    generics.where_clause = input.parse::<Option<WhereClause>>()?;
    let content;
    let brace = braced!(content in input);
    let mut members = Vec::new();
    while !content.is_empty() {
        members.push(parse_member(&content)?);
    }
    Ok(Block {
        attrs,
        unsafety,
        impl_token,
        generics,
        of_trait,
        self_ty,
        brace,
        members,
    })
}

fn parse_member(input: ParseStream<'_>) -> syn::Result<Member> {
    let attrs = Attribute::parse_outer(input)?;
    let vis: Visibility = input.parse()?;
    if starts_function(input) {
        let sig = input.parse()?;
        let body = input.parse::<TokenTree>()?.into_token_stream();
        return Ok(Member::Method(Box::new(Function {
            attrs,
            vis,
            sig,
            body,
        })));
    }
    // A constant or type ends with `;`, a macro call may end with its braces.
    let is_macro = !input.peek(Token![const]) && !input.peek(Token![type]);
    let mut tokens = TokenStream::new();
    tokens.extend(attrs.iter().map(ToTokens::to_token_stream));
    vis.to_tokens(&mut tokens);
    while !input.is_empty() {
        let ends = input.peek(Token![;]) || is_macro && input.peek(token::Brace);
        input.parse::<TokenTree>()?.to_tokens(&mut tokens);
        if ends {
            break;
        }
    }
    Ok(Member::Other(tokens))
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.attrs.iter().map(ToTokens::to_token_stream));
        self.vis.to_tokens(tokens);
        self.sig.to_tokens(tokens);
        self.body.to_tokens(tokens);
    }
}

impl ToTokens for Block {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.attrs.iter().map(ToTokens::to_token_stream));
        self.unsafety.to_tokens(tokens);
        self.impl_token.to_tokens(tokens);
        self.generics.to_tokens(tokens);
        if let Some((path, for_token)) = &self.of_trait {
            path.to_tokens(tokens);
            for_token.to_tokens(tokens);
        }
        self.self_ty.to_tokens(tokens);
        self.generics.where_clause.to_tokens(tokens);
        self.brace.surround(tokens, |tokens| {
            for member in &self.members {
                match member {
                    Member::Method(method) => method.to_tokens(tokens),
                    Member::Other(other) => other.to_tokens(tokens),
                }
            }
        });
    }
}
