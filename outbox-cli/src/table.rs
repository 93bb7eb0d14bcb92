//! [`Table`]: text in columns.

use std::fmt;

use crate::text::printable;

/// Rows under column names. A column whose name starts with `>` is right-aligned.
#[derive(Debug)]
pub(crate) struct Table {
    names: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(
        names: [&'static str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Self {
        let printable = |row: [String; N]| row.iter().map(|cell| printable(cell)).collect();
        Self {
            names: names.to_vec(),
            rows: rows.into_iter().map(printable).collect(),
        }
    }

    /// The table as text, unless it has no rows.
    pub(crate) fn unless_empty(&self) -> Option<String> {
        (!self.rows.is_empty()).then(|| self.to_string())
    }

    /// One line for the names and one for each row.
    pub(crate) fn lines(&self) -> Vec<String> {
        let names = self.names.iter();
        let heads: Vec<String> = names
            .map(|name| name.trim_start_matches('>').to_owned())
            .collect();
        let width = |column: usize| {
            let cells = self.rows.iter().chain([&heads]);
            let widths = cells.filter_map(|row| row.get(column));
            widths.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let columns = row.iter().zip(&widths).zip(&self.names);
            let cells = columns.map(|((cell, &width), name)| {
                if name.starts_with('>') {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            line.trim_end().to_owned()
        };
        [&heads].into_iter().chain(&self.rows).map(line).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let rows = [["ä", "7", "x"], ["longer", "1,000", ""]];
        let rows = rows.map(|row| row.map(str::to_owned));
        let table = Table::new(["name", ">count", "note"], rows);
        let expected = ["name    count  note", "ä           7  x", "longer  1,000"];
        assert_eq!(table.lines(), expected);
    }
}
