//! A proxy between one worker and the server. It can cut every connection, also in the middle of a
//! message, and refuse new ones.

use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

/// How long a cut waits for a message of which it forwards only half.
const HALF_MESSAGE_WAIT: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, Default)]
struct ProxyState {
    cuts: u32,
    refuses: bool,
}

/// One listening port. Dropping the proxy closes it.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: watch::Sender<ProxyState>,
    ports: Arc<Mutex<BTreeSet<u16>>>,
    listening: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (state, watched) = watch::channel(ProxyState::default());
        let ports: Arc<Mutex<BTreeSet<u16>>> = Arc::default();
        let known = Arc::clone(&ports);
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if watched.borrow().refuses {
                    let _ = client.set_zero_linger();
                    continue;
                }
                tokio::spawn(connect(client, server, watched.clone(), Arc::clone(&known)));
            }
        });
        Ok(Self {
            port,
            state,
            ports,
            listening,
        })
    }

    /// The ports by which the server knows these connections.
    pub(crate) fn ports(&self) -> BTreeSet<u16> {
        let ports = self.ports.lock();
        ports.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resets all connections and refuses new ones for the duration `refused`.
    pub(crate) fn cut(&self, refused: Duration) {
        self.state.send_modify(|state| {
            state.cuts += 1;
            state.refuses = true;
        });
        let state = self.state.clone();
        tokio::spawn(async move {
            sleep(refused).await;
            state.send_modify(|state| state.refuses = false);
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn connect(
    client: TcpStream,
    server: SocketAddr,
    state: watch::Receiver<ProxyState>,
    ports: Arc<Mutex<BTreeSet<u16>>>,
) {
    let Ok(server) = TcpStream::connect(server).await else {
        let _ = client.set_zero_linger();
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let port = server.local_addr().map_or(0, |address| address.port());
    let known = || ports.lock().unwrap_or_else(PoisonError::into_inner);
    known().insert(port);
    forward(client, server, state).await;
    known().remove(&port);
}

/// Forwards until one side closes or the proxy cuts the connection. A cut still forwards half of the
/// next message.
async fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    mut state: watch::Receiver<ProxyState>,
) {
    let before = state.borrow().cuts;
    let is_cutting = AtomicBool::new(false);
    let cut = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let both = async {
            tokio::select! {
                () = pump(from_client, to_server, &is_cutting) => {}
                () = pump(from_server, to_client, &is_cutting) => {}
            }
        };
        tokio::pin!(both);
        tokio::select! {
            () = &mut both => false,
            () = cut(&mut state, before) => {
                is_cutting.store(true, Ordering::Relaxed);
                let _ = timeout(HALF_MESSAGE_WAIT, &mut both).await;
                true
            }
        }
    };
    if cut {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

async fn cut(state: &mut watch::Receiver<ProxyState>, before: u32) {
    if state.wait_for(|state| state.cuts != before).await.is_err() {
        // The proxy was dropped, so no cut can follow.
        std::future::pending::<()>().await;
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    is_cutting: &AtomicBool,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let sends_half = is_cutting.load(Ordering::Relaxed);
        let length = if sends_half { read / 2 } else { read };
        let Some(chunk) = buffer.get(..length) else {
            return;
        };
        if to.write_all(chunk).await.is_err() || sends_half {
            return;
        }
    }
}
