//! Statements with a part that is repeated.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use sqlx::SqlStr;

use crate::store::statements::shared;

/// A statement in which `[[..]]` is repeated as often as a call has rows for it. `[[?]]` becomes a
/// list of parameters, any other text a union: MariaDB has no `lateral`, and a scan of all
/// partitions at once cannot stop after a number of rows of each.
#[derive(Debug)]
pub(super) struct Repeated {
    text: SqlStr,
    /// By how often the first and the second part are repeated. Never more than [`MOST`]: this
    /// process owns at most 64 partitions, and handlers are few.
    made: Mutex<HashMap<[usize; 2], SqlStr>>,
}

/// How many texts of one statement are remembered.
const MOST: usize = 128;

impl From<SqlStr> for Repeated {
    fn from(text: SqlStr) -> Self {
        Self {
            text,
            made: Mutex::default(),
        }
    }
}

impl Repeated {
    /// The statement with its one part repeated.
    pub(super) fn times(&self, count: usize) -> SqlStr {
        self.times_each([count, 0])
    }

    /// The statement with each of its two parts repeated.
    pub(super) fn times_each(&self, counts: [usize; 2]) -> SqlStr {
        // Whoever panicked has left a whole map.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = made.get(&counts) {
            return text.clone();
        }
        let text = repeated(self.text.as_str(), counts);
        if made.len() < MOST {
            made.insert(counts, text.clone());
        }
        text
    }
}

fn repeated(text: &str, counts: [usize; 2]) -> SqlStr {
    let mut whole = String::new();
    let mut rest = text;
    for count in counts {
        let Some((before, (part, after))) = rest
            .split_once("[[")
            .and_then(|(before, rest)| Some((before, rest.split_once("]]")?)))
        else {
            break;
        };
        whole.push_str(before);
        whole.push_str(&match (part, count) {
            // Nothing is equal to null.
            ("?", 0) => "null".to_owned(),
            ("?", _) => vec!["?"; count].join(", "),
            (branch, 1) => branch.to_owned(),
            (branch, _) => vec![format!("({branch})"); count].join("\nunion all\n"),
        });
        rest = after;
    }
    whole.push_str(rest);
    shared(&whole)
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, SqlSafeStr as _};

    use super::*;

    fn of(text: &'static str) -> Repeated {
        AssertSqlSafe(text).into_sql_str().into()
    }

    #[test]
    fn parameters_are_listed_and_branches_united() {
        let list = of("a in ([[?]]) and b in ([[?]])");
        assert_eq!(
            list.times_each([1, 3]).as_str(),
            "a in (?) and b in (?, ?, ?)"
        );
        assert_eq!(list.times_each([0, 1]).as_str(), "a in (null) and b in (?)");
        let union = of("[[select ?]] limit ?");
        assert_eq!(union.times(1).as_str(), "select ? limit ?");
        assert_eq!(
            union.times(2).as_str(),
            "(select ?)\nunion all\n(select ?) limit ?"
        );
    }

    #[test]
    fn a_text_is_made_once_and_few_are_kept() {
        let list = of("a in ([[?]])");
        assert!(std::ptr::eq(list.times(2).as_str(), list.times(2).as_str()));
        for count in 0..2 * MOST {
            list.times(count);
        }
        assert_eq!(list.made.lock().unwrap().len(), MOST);
    }
}
