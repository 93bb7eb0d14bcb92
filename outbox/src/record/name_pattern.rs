//! [`NamePattern`]: selects the events of a handler by name.

use std::fmt;

/// An event name, or the beginning of one followed by `*`. Checked by `#[outbox_handler]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamePattern(pub(crate) &'static str);

impl NamePattern {
    pub(crate) fn matches(self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == self.0,
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::NamePattern;

    #[test]
    fn a_star_stands_for_any_ending() {
        assert!(NamePattern("*").matches("anything"));
        assert!(NamePattern("order.*").matches("order.created"));
        assert!(!NamePattern("order.*").matches("orders.created"));
        assert!(NamePattern("order.created").matches("order.created"));
        assert!(!NamePattern("order.created").matches("order.created.twice"));
    }
}
