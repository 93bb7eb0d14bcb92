//! YAML as a tree of [`Node`]s: one document of plain data, without aliases, anchors or tags.

use std::collections::HashSet;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput};

use super::{
    Source,
    node::{DEEPEST, Entry, Node, Spot, TOO_DEEP, Value},
    scalar::{Kind, plain, shown},
};
use crate::config::ConfigError;

pub(super) fn parse(source: &Source) -> Result<Node, ConfigError> {
    let parser = Parser::new_from_str(source.text());
    Events { parser, source }.document()
}

struct Events<'a> {
    parser: Parser<'a, StrInput<'a>>,
    source: &'a Source,
}

impl<'a> Events<'a> {
    /// The next event and its place. Refuses a value or key with an anchor or a tag.
    fn next(&mut self) -> Result<(Event<'a>, Spot), ConfigError> {
        let (event, spot) = match self.parser.next_event() {
            Some(Ok((event, span))) => (event, spot(&span.start)),
            Some(Err(error)) => {
                let marker = error.marker();
                return Err(ConfigError::Syntax {
                    place: self.source.place_at(marker.line(), marker.col() + 1),
                    format: "YAML",
                    source: in_words(error.info()).into(),
                });
            }
            None => return Ok((Event::StreamEnd, Spot::Nowhere)),
        };
        // Anchors are numbered from 1; 0 is none.
        let problem = match &event {
            Event::Scalar(_, _, 1.., _)
            | Event::SequenceStart(1.., _)
            | Event::MappingStart(1.., _) => {
                "anchors (`&name`) are not supported; write the value where it is used"
            }
            Event::Scalar(.., Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                "tags (`!name`) are not supported; write the value without a tag"
            }
            _ => return Ok((event, spot)),
        };
        self.refuse(&spot, problem)
    }

    fn refuse<T>(&self, spot: &Spot, problem: impl Into<String>) -> Result<T, ConfigError> {
        Err(self.source.refuse(spot, problem))
    }

    /// Reads the only document. A file with comments only is an empty section.
    fn document(&mut self) -> Result<Node, ConfigError> {
        let mut root = Node::empty_section(Spot::Nowhere);
        let mut documents = 0;
        loop {
            let (event, spot) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(_) if documents > 0 => {
                    let problem = "a second document starts here; keep one `---` at most";
                    return self.refuse(&spot, problem);
                }
                Event::DocumentStart(_) => documents += 1,
                Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
                event => root = self.node(event, spot, 1)?,
            }
        }
    }

    fn node(&mut self, event: Event<'a>, spot: Spot, depth: usize) -> Result<Node, ConfigError> {
        if depth > DEEPEST {
            return self.refuse(&spot, TOO_DEEP);
        }
        let value = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => {
                let kind = plain(&text);
                Value::Scalar(text.into_owned(), kind)
            }
            Event::Scalar(text, ..) => Value::Scalar(text.into_owned(), Kind::Text),
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.section(depth)?,
            Event::Alias(_) => {
                let problem = "aliases (`*name`) are not supported; write the value";
                return self.refuse(&spot, problem);
            }
            // Not reachable: the parser closes only what it has opened.
            _ => return self.refuse(&spot, "a value was expected here"),
        };
        Ok(Node { value, spot })
    }

    fn list(&mut self, depth: usize) -> Result<Value, ConfigError> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(nodes)),
                (event, spot) => nodes.push(self.node(event, spot, depth + 1)?),
            }
        }
    }

    fn section(&mut self, depth: usize) -> Result<Value, ConfigError> {
        let mut entries = Vec::new();
        let mut keys = HashSet::new();
        loop {
            let (event, spot) = self.next()?;
            let key = match event {
                Event::MappingEnd => return Ok(Value::Section(entries)),
                Event::Scalar(text, ..) => text.into_owned(),
                Event::Alias(_) => {
                    return self.refuse(&spot, "a key cannot be an alias; write the key");
                }
                _ => return self.refuse(&spot, "a key is a word, not a list or a section"),
            };
            if !keys.insert(key.clone()) {
                let problem = format!("`{}` is given twice; remove one", shown(&key));
                return self.refuse(&spot, problem);
            }
            let (event, value_spot) = self.next()?;
            let node = self.node(event, value_spot, depth + 1)?;
            entries.push(Entry { key, spot, node });
        }
    }
}

/// The message of the parser. A tab is invisible, so its message has the correction.
fn in_words(info: &str) -> &str {
    if info.contains("tabs") {
        return "a tab is used for indentation; use spaces";
    }
    info
}

/// The parser counts columns from 0.
fn spot(marker: &Marker) -> Spot {
    let (line, column) = (marker.line(), marker.col() + 1);
    Spot::Mark { line, column }
}
