//! YAML as a tree of [`Node`]s: one document of plain data, without aliases, anchors or tags.

use std::collections::HashSet;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::{
    Source,
    fault::{Fault, Problem},
    node::{DEEPEST, Entry, Node, Spot, Value},
    scalar::Scalar,
};
use crate::config::ConfigError;

pub(super) fn parse(source: &Source) -> Result<Node, ConfigError> {
    let mut events = Events(Parser::new_from_str(source.text()));
    events.document().map_err(|stopped| match stopped {
        Stopped::At(fault) => fault.into_error(source),
        Stopped::Syntax(error) => ConfigError::Syntax {
            place: source.place_at(error.marker().line(), error.marker().col() + 1),
            format: "YAML",
            source: in_words(error.info()).into(),
        },
    })
}

/// The reason why the parser stopped.
enum Stopped {
    Syntax(ScanError),
    At(Fault),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Self::At(fault)
    }
}

struct Events<'a>(Parser<'a, StrInput<'a>>);

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Spot), Stopped> {
        match self.0.next_event() {
            Some(Ok((event, Span { start, .. }))) => Ok((event, spot(&start))),
            Some(Err(error)) => Err(Stopped::Syntax(error)),
            None => Ok((Event::StreamEnd, Spot::Nowhere)),
        }
    }

    /// Reads the only document. A file with comments only is an empty section.
    fn document(&mut self) -> Result<Node, Stopped> {
        let mut root = Node::empty_section(Spot::Nowhere);
        let mut documents = 0;
        loop {
            let (event, spot) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(_) if documents > 0 => {
                    return refuse(
                        spot,
                        "a second document starts here; keep one `---` at most",
                    );
                }
                Event::DocumentStart(_) => documents += 1,
                Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
                event => root = self.node(event, spot, 1)?,
            }
        }
    }

    fn node(&mut self, event: Event<'a>, spot: Spot, depth: usize) -> Result<Node, Stopped> {
        if depth > DEEPEST {
            return Err(Fault::at(spot, Problem::too_deep()).into());
        }
        let value = match event {
            Event::Scalar(text, style, anchor, tag) => {
                plain_data(anchor, tag.as_deref(), &spot)?;
                let text = text.into_owned();
                Value::Scalar(match style {
                    ScalarStyle::Plain => Scalar::plain(text),
                    _ => Scalar::text(text),
                })
            }
            Event::SequenceStart(anchor, tag) => {
                plain_data(anchor, tag.as_deref(), &spot)?;
                self.list(depth)?
            }
            Event::MappingStart(anchor, tag) => {
                plain_data(anchor, tag.as_deref(), &spot)?;
                self.section(depth)?
            }
            Event::Alias(_) => {
                return refuse(spot, "aliases (`*name`) are not supported; write the value");
            }
            // Not reachable: the parser closes only what it has opened.
            _ => return refuse(spot, "a value was expected here"),
        };
        Ok(Node { value, spot })
    }

    fn list(&mut self, depth: usize) -> Result<Value, Stopped> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(nodes)),
                (event, spot) => nodes.push(self.node(event, spot, depth + 1)?),
            }
        }
    }

    fn section(&mut self, depth: usize) -> Result<Value, Stopped> {
        let mut entries = Vec::new();
        let mut keys = HashSet::new();
        loop {
            let (event, spot) = self.next()?;
            let key = match event {
                Event::MappingEnd => return Ok(Value::Section(entries)),
                Event::Scalar(text, _, anchor, tag) => {
                    plain_data(anchor, tag.as_deref(), &spot)?;
                    text.into_owned()
                }
                Event::Alias(_) => return refuse(spot, "a key cannot be an alias; write the key"),
                _ => return refuse(spot, "a key is a word, not a list or a section"),
            };
            if !keys.insert(key.clone()) {
                return Err(Fault::at(spot, Problem::DuplicateKey(key)).into());
            }
            let (event, value_spot) = self.next()?;
            let node = self.node(event, value_spot, depth + 1)?;
            entries.push(Entry { key, spot, node });
        }
    }
}

/// Anchors are numbered from 1; 0 is none.
fn plain_data(anchor: usize, tag: Option<&Tag>, spot: &Spot) -> Result<(), Stopped> {
    if anchor > 0 {
        return refuse(
            spot.clone(),
            "anchors (`&name`) are not supported; write the value where it is used",
        );
    }
    match tag {
        Some(_) => refuse(
            spot.clone(),
            "tags (`!name`) are not supported; write the value without a tag",
        ),
        None => Ok(()),
    }
}

fn refuse<T>(spot: Spot, problem: &str) -> Result<T, Stopped> {
    Err(Fault::at(spot, Problem::Refused(problem.to_owned())).into())
}

/// The message of the parser. A tab is invisible, so its message has the correction.
fn in_words(info: &str) -> String {
    if info.contains("tabs") {
        return "a tab is used for indentation; use spaces".to_owned();
    }
    info.to_owned()
}

/// The place of a marker. The parser counts columns from 0.
fn spot(marker: &Marker) -> Spot {
    Spot::Mark {
        line: marker.line(),
        column: marker.col() + 1,
    }
}
