//! Tests of the SQL files that need no database.

use crate::{
    record::{DeliveryStatus, RecordStatus},
    store::{Dialect as _, SchemaSql as _, TableNames, publish::INSERT_PARAMETERS},
};

macro_rules! files {
    ($($feature:literal $Db:ident $folder:literal,)*) => {
        #[test]
        fn every_file_is_rendered() {
            let names = TableNames::new(Some("shop".to_owned()), "box_".to_owned()).unwrap();
            $(#[cfg(feature = $feature)] {
                let sql = sqlx::$Db::statements(&names).unwrap();
                for insert in [&sql.insert, &sql.insert_deduplicated] {
                    assert_eq!(insert.parameters(), INSERT_PARAMETERS);
                }
                for step in sqlx::$Db::migrations(&names, 64) {
                    assert!(!step.statements.is_empty());
                    for statement in step.statements {
                        assert!(!statement.contains(['{', '}']), "{statement}");
                    }
                }
            })*
        }

        /// The names and texts of all SQL files.
        fn files() -> Vec<(String, String)> {
            let mut files = Vec::new();
            $(
                let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/", $folder, "/sql");
                for file in std::fs::read_dir(folder).unwrap() {
                    let path = file.unwrap().path();
                    let text = std::fs::read_to_string(&path).unwrap();
                    files.push((path.display().to_string(), text));
                }
            )*
            files
        }
    };
}

files! {
    "sqlite" Sqlite "sqlite",
    "postgres" Postgres "postgres",
    "mysql" MySql "mysql",
}

/// The words that a text compares with a column `status`, and the alias of its table.
fn statuses(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("status") {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let before = text[..at].trim_end_matches('.');
        let alias: String = before.chars().rev().take_while(|c| word(*c)).collect();
        let alias: String = match text[..at].ends_with('.') {
            true => alias.chars().rev().collect(),
            false => String::new(),
        };
        let after = text[at + "status".len()..].trim_start_matches(['\'', ' ']);
        let words = match after {
            _ if after.starts_with("= '") => &after[..after[3..].find('\'').unwrap() + 4],
            _ if after.starts_with("in (") || after.starts_with("enum(") => {
                &after[..after.find(')').unwrap()]
            }
            _ => continue,
        };
        let quoted = words.split('\'').skip(1).step_by(2);
        found.extend(quoted.map(|quoted| (alias.clone(), quoted.to_owned())));
    }
    found
}

#[test]
fn words_that_are_compared_with_a_status_are_found() {
    let text = "where d.status in ('a', 'b') and status = 'c' and u.status = d.status
        and u.value ->> 'status' = 'd' and +x.status = 'e' or status enum('f', 'g') 'h'";
    let found = statuses(text);
    let found: Vec<_> = found
        .iter()
        .map(|(alias, word)| (&**alias, &**word))
        .collect();
    let expected = [
        ("d", "a"),
        ("d", "b"),
        ("", "c"),
        ("", "d"),
        ("x", "e"),
        ("", "f"),
        ("", "g"),
    ];
    assert_eq!(found, expected);
}

/// No row has a status that is misspelt in a statement, or that was renamed in Rust only.
#[test]
fn every_status_in_a_file_exists() {
    let mut count = 0;
    for (file, text) in files() {
        for (alias, word) in statuses(&text) {
            let (record, delivery) = (RecordStatus::stored(&word), DeliveryStatus::stored(&word));
            let exists = match &*alias {
                "r" => record.is_ok(),
                "d" => delivery.is_ok(),
                _ => record.is_ok() || delivery.is_ok(),
            };
            assert!(exists, "{file}: `{alias}.status` is compared with `{word}`");
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}
