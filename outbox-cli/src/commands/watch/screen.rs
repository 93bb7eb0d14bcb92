//! [`Screen`]: the whole terminal.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use crossterm::{
    cursor, event,
    event::{Event, KeyCode, KeyEventKind, KeyModifiers},
    execute, queue, style, terminal,
};

use super::{frame::frame, rates::Rates};
use crate::{snapshot::Snapshot, text::shortened};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Quit,
    /// The size of the terminal has changed.
    Redraw,
}

/// The alternate screen in raw mode, without a cursor. Dropping it restores the terminal.
#[derive(Debug)]
pub(crate) struct Screen(());

impl Screen {
    pub(crate) fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        // From here on, `drop` restores the terminal after an error.
        let screen = Self(());
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    /// Columns and lines.
    fn size() -> (usize, usize) {
        match terminal::size() {
            Ok((width, height)) if width > 0 && height > 1 => (width.into(), height.into()),
            // The usual size, for a terminal that does not report one.
            _ => (80, 24),
        }
    }

    /// Draws the snapshot, with `bottom` as the last line. Overwrites the lines in place, because
    /// clearing the screen first would flicker.
    pub(crate) fn draw(&self, snapshot: &Snapshot, rates: &Rates, bottom: &str) -> io::Result<()> {
        let (width, height) = Self::size();
        let mut lines = frame(snapshot, rates, width, height.saturating_sub(1));
        lines.resize(height.saturating_sub(1), String::new());
        lines.push(shortened(bottom, width.saturating_sub(1)));
        let mut out = io::stdout().lock();
        for (row, line) in lines.iter().enumerate() {
            let row = u16::try_from(row).unwrap_or(u16::MAX);
            let end = terminal::Clear(terminal::ClearType::UntilNewLine);
            queue!(out, cursor::MoveTo(0, row), style::Print(line), end)?;
        }
        queue!(out, terminal::Clear(terminal::ClearType::FromCursorDown))?;
        out.flush()
    }

    /// Waits for a key that has a meaning.
    pub(crate) async fn next_key(&self) -> Key {
        loop {
            match pressed_key() {
                Ok(Some(key)) => return key,
                Ok(None) => tokio::time::sleep(Duration::from_millis(50)).await,
                // The terminal is gone.
                Err(_) => return Key::Quit,
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody can handle an error here.
        let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

/// The next key that was pressed and has a meaning. Does not wait for one.
fn pressed_key() -> io::Result<Option<Key>> {
    while event::poll(Duration::ZERO)? {
        if let Some(key) = meaning(&event::read()?) {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

fn meaning(event: &Event) -> Option<Key> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => None,
        Event::Key(key) => match key.code {
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Key::Quit),
            // In raw mode the terminal sends no signal.
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
            _ => None,
        },
        Event::Resize(..) => Some(Key::Redraw),
        _ => None,
    }
}
