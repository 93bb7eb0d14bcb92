//! [`Sql`]: a statement of an SQL file, with named parameters.
//!
//! `:owner` is a value that the call binds. `:lanes.key` is a column of rows that the call binds: an
//! array, where the database takes arrays. `[[..]]` is repeated for each row. In it, `:lanes.key` is
//! the value of one row, and `:handlers.each` one element of a list. `[[:handlers.each]]` becomes a
//! list of parameters. Any other text in `[[..]]` becomes a union: MariaDB has no `lateral`, and a
//! scan of all partitions at once cannot stop after a number of rows of each.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use sqlx::SqlStr;

use super::{Dialect, statements::shared};

/// One statement. Without steps it does nothing.
#[derive(Debug, Default)]
pub(crate) struct Sql {
    /// Whether the steps run in a transaction of their own.
    pub(super) is_transaction: bool,
    pub(super) steps: Vec<Step>,
}

impl Sql {
    pub(super) fn new<Db: Dialect>(is_transaction: bool, steps: &[String]) -> Self {
        let steps = steps
            .iter()
            .map(|text| Step::new(text, Db::WORDS.parameter_prefix));
        Self {
            is_transaction,
            steps: steps.collect(),
        }
    }

    /// Whether the SQL files of the database have this statement.
    pub(super) fn exists(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The text of a statement that has one step and no `[[..]]`. A clone copies no text.
    pub(super) fn text(&self) -> SqlStr {
        let first = self.steps.first();
        first.map_or_else(|| shared(""), |step| step.once.text.clone())
    }
}

#[cfg(test)]
impl Sql {
    /// The names of the parameters, in the order in which the driver takes them.
    pub(super) fn parameters(&self) -> Vec<&str> {
        let parameters = self.steps.iter().flat_map(|step| &*step.once.parameters);
        parameters.map(|parameter| &*parameter.name).collect()
    }
}

#[derive(Debug)]
pub(super) struct Step {
    /// The text, split at `[[` and `]]`: every second piece is repeated.
    pieces: Vec<String>,
    prefix: Option<char>,
    /// The step with each `[[..]]` once.
    once: Rendered,
    /// The key is how often each `[[..]]` is repeated. At most [`MAX_TEXTS`] entries: a process owns
    /// at most 64 partitions, and handlers are few.
    repeated: Mutex<HashMap<Vec<usize>, Rendered>>,
}

/// A text for the driver, and its parameters in their order.
#[derive(Debug, Clone)]
pub(super) struct Rendered {
    pub(super) text: SqlStr,
    pub(super) parameters: Arc<[Parameter]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// A column of rows. `each` is one element of a list.
    pub(super) column: Option<String>,
    /// The repetition of `[[..]]` that the parameter is in.
    pub(super) row: Option<usize>,
}

/// How many texts of one statement are cached.
const MAX_TEXTS: usize = 128;

impl Step {
    fn new(text: &str, prefix: Option<char>) -> Self {
        let pieces = text.replace("]]", "[[");
        let pieces: Vec<String> = pieces.split("[[").map(str::to_owned).collect();
        Self {
            once: Rendered::new(&pieces, prefix, &vec![1; pieces.len() / 2]),
            pieces,
            prefix,
            repeated: Mutex::default(),
        }
    }

    /// The step with each `[[..]]` repeated once per element of its first list or rows.
    pub(super) fn rendered(&self, length: impl Fn(&str) -> usize) -> Rendered {
        if self.pieces.len() == 1 {
            return self.once.clone();
        }
        let repeated = self.pieces.iter().skip(1).step_by(2);
        let counts: Vec<usize> = repeated.map(|piece| length(first_rows(piece))).collect();
        // A panic cannot leave the map half changed, so a poisoned lock is safe to use.
        let mut cache = self.repeated.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rendered) = cache.get(&counts) {
            return rendered.clone();
        }
        let rendered = Rendered::new(&self.pieces, self.prefix, &counts);
        if cache.len() < MAX_TEXTS {
            cache.insert(counts, rendered.clone());
        }
        rendered
    }
}

impl Rendered {
    fn new(pieces: &[String], prefix: Option<char>, counts: &[usize]) -> Self {
        let mut text = String::new();
        let mut parameters = Vec::new();
        let mut counts = counts.iter().copied();
        for (index, piece) in pieces.iter().enumerate() {
            if index % 2 == 0 {
                write(&mut text, &mut parameters, piece, prefix, None);
                continue;
            }
            let (is_list, count) = (piece.starts_with(':'), counts.next().unwrap_or(1));
            if is_list && count == 0 {
                // No value is equal to null.
                text.push_str("null");
            }
            let (open, close, between) = match count {
                _ if is_list => ("", "", ", "),
                1 => ("", "", ""),
                _ => ("(", ")", "\nunion all\n"),
            };
            for row in 0..count {
                text.push_str(if row > 0 { between } else { "" });
                text.push_str(open);
                write(&mut text, &mut parameters, piece, prefix, Some(row));
                text.push_str(close);
            }
        }
        Self {
            text: shared(&text),
            parameters: parameters.into(),
        }
    }
}

/// Appends a text with the placeholders of the driver.
fn write(
    text: &mut String,
    parameters: &mut Vec<Parameter>,
    source: &str,
    prefix: Option<char>,
    row: Option<usize>,
) {
    let mut rest = source;
    while let Some((before, name, after)) = next_parameter(rest) {
        let (name, column) = match name.split_once('.') {
            Some((name, column)) => (name, Some(column.to_owned())),
            None => (name, None),
        };
        let parameter = Parameter {
            name: name.to_owned(),
            row: row.filter(|_| column.is_some()),
            column,
        };
        text.push_str(before);
        let known = parameters.iter().position(|known| *known == parameter);
        let number = known.filter(|_| prefix.is_some());
        let number = number.unwrap_or_else(|| {
            parameters.push(parameter);
            parameters.len() - 1
        });
        match prefix {
            Some(prefix) => text.push_str(&format!("{prefix}{}", number + 1)),
            None => text.push('?'),
        }
        rest = after;
    }
    text.push_str(rest);
}

/// The texts before, in and after the first parameter. `::` is PostgreSQL's cast.
fn next_parameter(text: &str) -> Option<(&str, &str, &str)> {
    let mut colons = text.match_indices(':');
    let at = colons.find_map(|(at, _)| {
        let is_name = text[at + 1..].starts_with(|c: char| c.is_ascii_lowercase());
        (is_name && !text[..at].ends_with(':')).then_some(at)
    })?;
    let (before, rest) = (&text[..at], &text[at + 1..]);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    Some((before, &rest[..end], &rest[end..]))
}

/// The name of the rows or of the list that a piece is repeated for.
fn first_rows(piece: &str) -> &str {
    let mut rest = piece;
    while let Some((_, name, after)) = next_parameter(rest) {
        if let Some((rows, _)) = name.split_once('.') {
            return rows;
        }
        rest = after;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, prefix: Option<char>, length: usize) -> (String, Vec<String>) {
        let rendered = Step::new(text, prefix).rendered(|_| length);
        let parameters = rendered.parameters.iter().map(|parameter| {
            let Parameter { name, column, row } = parameter;
            let column = column.as_deref().map_or(String::new(), |c| format!(".{c}"));
            let row = row.map_or(String::new(), |row| format!("#{row}"));
            format!("{name}{column}{row}")
        });
        (
            rendered.text.as_str().to_owned(),
            parameters.collect::<Vec<_>>(),
        )
    }

    #[test]
    fn a_parameter_is_numbered_once_or_repeated() {
        let text = "select :micros::bigint, ':', :owner where a = any(:rows.part) and b = :micros";
        let (sql, parameters) = rendered(text, Some('$'), 0);
        assert_eq!(
            sql,
            "select $1::bigint, ':', $2 where a = any($3) and b = $1"
        );
        assert_eq!(parameters, ["micros", "owner", "rows.part"]);
        let (sql, parameters) = rendered("a = :x and b = :y and c = :x", None, 0);
        assert_eq!(sql, "a = ? and b = ? and c = ?");
        assert_eq!(parameters, ["x", "y", "x"]);
    }

    #[test]
    fn a_list_repeats_parameters_and_other_text_becomes_a_union() {
        let list = "a in ([[:list.each]]) and b = :x";
        assert_eq!(rendered(list, None, 0).0, "a in (null) and b = ?");
        let (sql, parameters) = rendered(list, None, 2);
        assert_eq!(sql, "a in (?, ?) and b = ?");
        assert_eq!(parameters, ["list.each#0", "list.each#1", "x"]);
        let union = "[[select :x, :rows.key]] limit :x";
        assert_eq!(rendered(union, None, 1).0, "select ?, ? limit ?");
        let (sql, parameters) = rendered(union, None, 2);
        assert_eq!(sql, "(select ?, ?)\nunion all\n(select ?, ?) limit ?");
        assert_eq!(parameters, ["x", "rows.key#0", "x", "rows.key#1", "x"]);
    }

    #[test]
    fn a_text_is_rendered_once_and_few_are_cached() {
        let list = Step::new("a in ([[:list.each]])", None);
        let (first, second) = (list.rendered(|_| 2), list.rendered(|_| 2));
        assert!(std::ptr::eq(first.text.as_str(), second.text.as_str()));
        for count in 0..2 * MAX_TEXTS {
            list.rendered(|_| count);
        }
        assert_eq!(list.repeated.lock().unwrap().len(), MAX_TEXTS);
    }
}
