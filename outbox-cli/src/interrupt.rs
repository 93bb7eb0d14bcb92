//! [`Interrupt`]: a request to stop, by Ctrl-C or by the operating system.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Set by the first signal. A second signal ends the program at once; the database then rolls the
/// open transaction back.
#[derive(Debug)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Listens until the program ends. `on_first` runs at the first signal.
    pub(crate) fn listen(on_first: fn()) -> io::Result<Self> {
        let (sender, receiver) = watch::channel(false);
        let received = move || {
            if sender.send_replace(true) {
                std::process::exit(130);
            }
            on_first();
        };
        #[cfg(unix)]
        for kind in [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ] {
            let (mut signals, received) = (signal(kind)?, received.clone());
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    received();
                }
            });
        }
        #[cfg(not(unix))]
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                received();
            }
        });
        Ok(Self(receiver))
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the first signal.
    pub(crate) async fn wait(&mut self) {
        // An error means that nothing listens for signals: there will be none.
        if self.0.wait_for(|set| *set).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
