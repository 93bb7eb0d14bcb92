//! [`Screen`]: the whole terminal, given back as it was.

use std::{
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crossterm::{
    cursor, event,
    event::{Event, KeyCode, KeyEventKind, KeyModifiers},
    execute, queue, style, terminal,
};
use tokio::sync::mpsc;

/// What a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    End,
    /// The terminal has another size.
    Redraw,
}

/// A screen of our own, without a cursor. Dropped, it gives back the one that was there before.
#[derive(Debug)]
pub(crate) struct Screen {
    keys: mpsc::UnboundedReceiver<Key>,
    over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Screen {
    pub(crate) fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let (sender, keys) = mpsc::unbounded_channel();
        let over = Arc::<AtomicBool>::default();
        let seen = Arc::clone(&over);
        let reader = thread::spawn(move || read(&sender, &seen));
        // From here on everything is undone by dropping it.
        let screen = Self {
            keys,
            over,
            reader: Some(reader),
        };
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    /// Columns and lines.
    pub(crate) fn size(&self) -> (usize, usize) {
        match terminal::size() {
            Ok((width, height)) if width > 0 && height > 1 => (width.into(), height.into()),
            // A terminal that does not know is as large as they used to be.
            _ => (80, 24),
        }
    }

    /// Draws over what is there, so that nothing flickers.
    pub(crate) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        for (row, line) in lines.iter().enumerate() {
            let row = u16::try_from(row).unwrap_or(u16::MAX);
            let end = terminal::Clear(terminal::ClearType::UntilNewLine);
            queue!(out, cursor::MoveTo(0, row), style::Print(line), end)?;
        }
        queue!(out, terminal::Clear(terminal::ClearType::FromCursorDown))?;
        out.flush()
    }

    /// The next key that means something.
    pub(crate) async fn key(&mut self) -> Key {
        // Nobody sends any more: the terminal is gone.
        self.keys.recv().await.unwrap_or(Key::End)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(reader) = self.reader.take() {
            // It has nothing to say.
            let _ = reader.join();
        }
        // There is nobody left to tell.
        let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

/// Reads keys until the end. In a thread: a terminal is read by waiting for it.
fn read(keys: &mpsc::UnboundedSender<Key>, over: &AtomicBool) {
    while !over.load(Ordering::Acquire) {
        let key = match event::poll(Duration::from_millis(50)) {
            Ok(false) => continue,
            Ok(true) => event::read().map(|event| meaning(&event)),
            Err(error) => Err(error),
        };
        match key {
            Ok(Some(key)) if keys.send(key).is_ok() => {}
            Ok(None) => {}
            _ => return,
        }
    }
}

fn meaning(event: &Event) -> Option<Key> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => None,
        Event::Key(key) => match key.code {
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Key::End),
            // Raw: no signal comes of it.
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::End),
            _ => None,
        },
        Event::Resize(..) => Some(Key::Redraw),
        _ => None,
    }
}
