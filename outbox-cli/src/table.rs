//! [`Table`]: text in columns.

use crate::text::printable;

/// One row for each item, under the names of the columns.
#[derive(Debug)]
pub(crate) struct Table<'a, T> {
    items: &'a [T],
    /// The line of the names, then one for each item. They have the same width.
    lines: Vec<String>,
}

impl<'a, T> Table<'a, T> {
    pub(crate) fn of(items: &'a [T]) -> Self {
        let lines = vec![String::new(); items.len() + 1];
        Self { items, lines }
    }

    /// Adds a column with this text for each item. It is right-aligned if its name starts with `>`.
    pub(crate) fn column<C: ToString>(mut self, name: &str, cell: impl Fn(&T) -> C) -> Self {
        let head = name.trim_start_matches('>').to_owned();
        let cells = self
            .items
            .iter()
            .map(|item| printable(&cell(item).to_string()));
        let cells: Vec<String> = [head].into_iter().chain(cells).collect();
        let widths = cells.iter().map(|cell| cell.chars().count());
        let width = widths.max().unwrap_or(0);
        for (line, cell) in self.lines.iter_mut().zip(&cells) {
            let gap = if line.is_empty() { "" } else { "  " };
            *line = if name.starts_with('>') {
                format!("{line}{gap}{cell:>width$}")
            } else {
                format!("{line}{gap}{cell:<width$}")
            };
        }
        self
    }

    /// The lines, unless there are no items.
    pub(crate) fn text(&self) -> Option<String> {
        let lines: Vec<&str> = self.lines.iter().map(|line| line.trim_end()).collect();
        (!self.items.is_empty()).then(|| lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let rows = [["ä", "7", "x"], ["longer", "1,000", ""]];
        let table = Table::of(&rows)
            .column("name", |row| row[0])
            .column(">count", |row| row[1])
            .column("note", |row| row[2]);
        let expected = ["name    count  note", "ä           7  x", "longer  1,000"];
        assert_eq!(table.text(), Some(expected.join("\n")));
        assert_eq!(
            Table::of(&rows[..0]).column("name", |row| row[0]).text(),
            None
        );
    }
}
