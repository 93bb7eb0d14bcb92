//! Values that have to be literals, because the macro checks them.

use syn::{Expr, ExprArray, ExprLit, ExprPath, ExprUnary, Ident, Lit, LitStr, Path, UnOp};

use crate::errors::Errors;

/// The longest name that is stored, in bytes.
const LONGEST_NAME: usize = 255;

/// Reads a string literal, or reports a mistake.
pub(crate) fn string<'e>(what: &str, value: &'e Expr, errors: &mut Errors) -> Option<&'e LitStr> {
    if let Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    }) = value
    {
        return Some(text);
    }
    let content = word(value).map_or_else(|| "..".to_owned(), ToString::to_string);
    errors.at(
        value,
        format!("`{what}` is a string in quotes: `{what} = \"{content}\"`"),
    );
    None
}

/// Reads a name that is stored: not empty, not too long, and without invisible characters.
pub(crate) fn name<'e>(what: &str, value: &'e Expr, errors: &mut Errors) -> Option<&'e LitStr> {
    let text = string(what, value, errors)?;
    let content = text.value();
    let fault = if content.trim() != content || content.is_empty() {
        "must not be empty, nor begin or end with a space"
    } else if content.len() > LONGEST_NAME {
        "must not be longer than 255 bytes"
    } else if content.chars().any(char::is_control) {
        "must not contain control characters"
    } else {
        return Some(text);
    };
    errors.at(text, format!("`{what}` is stored as a name and {fault}"));
    None
}

/// Reads a list of names, such as `["a", "b"]`.
pub(crate) fn names(what: &str, value: &Expr, errors: &mut Errors) -> Vec<LitStr> {
    let Expr::Array(ExprArray { elems, .. }) = value else {
        let only = match value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => text.value(),
            _ => "..".to_owned(),
        };
        errors.at(
            value,
            format!("`{what}` is a list of strings: `{what} = [\"{only}\"]`"),
        );
        return Vec::new();
    };
    elems
        .iter()
        .filter_map(|element| name(what, element, errors).cloned())
        .collect()
}

/// Reads a whole number from `least` to `u32::MAX`, or reports a mistake.
pub(crate) fn whole_number(
    what: &str,
    least: u32,
    value: &Expr,
    errors: &mut Errors,
) -> Option<u32> {
    let parsed = match value {
        Expr::Lit(ExprLit {
            lit: Lit::Int(number),
            ..
        }) => number.base10_parse::<u32>().ok(),
        _ => None,
    };
    let number = parsed.filter(|number| *number >= least);
    if number.is_none() {
        errors.at(
            value,
            format!(
                "`{what}` is a whole number from {least} to {}, written as digits",
                u32::MAX
            ),
        );
    }
    number
}

/// Reads a number. It may be negative and may have a fraction.
pub(crate) fn number(value: &Expr) -> Option<f64> {
    match value {
        Expr::Lit(ExprLit { lit, .. }) => match lit {
            Lit::Float(number) => number.base10_parse().ok(),
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        Expr::Unary(ExprUnary {
            op: UnOp::Neg(_),
            expr,
            ..
        }) => number(expr).map(|number| -number),
        _ => None,
    }
}

/// Reads the path of a function or crate, or reports a mistake.
pub(crate) fn path<'e>(
    what: &str,
    of: &str,
    value: &'e Expr,
    errors: &mut Errors,
) -> Option<&'e Path> {
    if let Expr::Path(ExprPath {
        qself: None, path, ..
    }) = value
    {
        return Some(path);
    }
    errors.at(
        value,
        format!("`{what}` is the path of {of}: `{what} = path::to::it`"),
    );
    None
}

/// Reads one word. `None` for anything else.
pub(crate) fn word(value: &Expr) -> Option<&Ident> {
    match value {
        Expr::Path(ExprPath {
            qself: None, path, ..
        }) => path.get_ident(),
        _ => None,
    }
}
