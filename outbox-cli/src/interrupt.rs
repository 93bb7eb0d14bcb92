//! [`Interrupt`]: Ctrl-C between two batches.

use std::{
    io::{self, IsTerminal as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Set by the first Ctrl-C. The second ends the program at once, which undoes the transaction that
/// is open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub(crate) fn listen() -> Self {
        let interrupt = Self::default();
        let came = interrupt.clone();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if came.0.swap(true, Ordering::AcqRel) {
                    std::process::exit(130);
                }
                if io::stderr().is_terminal() {
                    eprintln!("\nfinishing what is begun; once more ends it at once");
                }
            }
        });
        interrupt
    }

    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Whatever asks a view to end: Ctrl-C, and what a machine sends when it stops.
#[derive(Debug)]
pub(crate) struct Ending {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
}

impl Ending {
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ];
        Ok(Self { signals })
    }

    #[cfg(unix)]
    pub(crate) async fn came(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn came(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
