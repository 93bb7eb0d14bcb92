//! [`Interrupt`]: a request to stop, by Ctrl-C or by the operating system.

use std::io;

use tokio::sync::watch;

/// Set by the first signal. A second signal ends the program at once; the database then rolls the
/// open transaction back.
#[derive(Debug)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Listens until the program ends. `on_first` runs at the first signal.
    pub(crate) fn listen(on_first: fn()) -> io::Result<Self> {
        let (sender, receiver) = watch::channel(false);
        let mut signals = Signals::new()?;
        tokio::spawn(async move {
            loop {
                signals.next().await;
                if sender.send_replace(true) {
                    std::process::exit(130);
                }
                on_first();
            }
        });
        Ok(Self(receiver))
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn wait(&mut self) {
        // The sender lives as long as the program.
        let _ = self.0.wait_for(|set| *set).await;
    }
}

#[cfg(unix)]
struct Signals([tokio::signal::unix::Signal; 3]);

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
