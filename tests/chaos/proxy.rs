//! Between one worker and the server: can cut every connection, also in the middle of a message,
//! and refuse new ones.

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

/// How long a cut waits for a message to tear apart.
const TEAR_WITHIN: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    cuts: u32,
    refuses: bool,
}

/// One listening port. Dropped, it takes no more connections.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    line: watch::Sender<Line>,
    ports: Arc<Mutex<BTreeSet<u16>>>,
    listening: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (line, watched) = watch::channel(Line::default());
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
            line,
            ports,
            listening,
        })
    }

    /// The ports by which the server knows these connections.
    pub(crate) fn ports(&self) -> BTreeSet<u16> {
        let ports = self.ports.lock();
        ports.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resets all connections and refuses new ones for this long.
    pub(crate) fn cut(&self, refused: Duration) {
        self.line.send_modify(|line| {
            line.cuts += 1;
            line.refuses = true;
        });
        let line = self.line.clone();
        tokio::spawn(async move {
            sleep(refused).await;
            line.send_modify(|line| line.refuses = false);
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
    line: watch::Receiver<Line>,
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
    forward(client, server, line).await;
    known().remove(&port);
}

/// Until one side closes, or the line is cut: then half of the next message still goes through.
async fn forward(mut client: TcpStream, mut server: TcpStream, mut line: watch::Receiver<Line>) {
    let before = line.borrow().cuts;
    let torn = AtomicBool::new(false);
    let cut = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let both = async {
            tokio::select! {
                () = pump(from_client, to_server, &torn) => {}
                () = pump(from_server, to_client, &torn) => {}
            }
        };
        tokio::pin!(both);
        tokio::select! {
            () = &mut both => false,
            () = cut(&mut line, before) => {
                torn.store(true, Ordering::Relaxed);
                let _ = timeout(TEAR_WITHIN, &mut both).await;
                true
            }
        }
    };
    if cut {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

async fn cut(line: &mut watch::Receiver<Line>, before: u32) {
    if line.wait_for(|line| line.cuts != before).await.is_err() {
        // There is nobody any more who could cut it.
        std::future::pending::<()>().await;
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    torn: &AtomicBool,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let torn = torn.load(Ordering::Relaxed);
        let length = if torn { read / 2 } else { read };
        let Some(chunk) = buffer.get(..length) else {
            return;
        };
        if to.write_all(chunk).await.is_err() || torn {
            return;
        }
    }
}
