//! [`Table`]: columns under each other.

use std::fmt;

use crate::words::plain;

/// Text in columns. A column whose name begins with `>` is set to the right.
#[derive(Debug)]
pub(crate) struct Table {
    names: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(names: [&'static str; N]) -> Self {
        Self {
            names: names.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        let cells = cells.into_iter().map(|cell| plain(&cell));
        self.rows.push(cells.collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One line for the names, one for each row.
    pub(crate) fn lines(&self) -> Vec<String> {
        let heads: Vec<String> = self
            .names
            .iter()
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
            let cells = columns.map(|((cell, &width), name)| match name.starts_with('>') {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
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
        let mut table = Table::new(["name", ">count", "note"]);
        table.row(["ä".to_owned(), "7".to_owned(), "x".to_owned()]);
        table.row(["longer".to_owned(), "1,000".to_owned(), String::new()]);
        let expected = ["name    count  note", "ä           7  x", "longer  1,000"];
        assert_eq!(table.lines(), expected);
    }
}
