//! Counts the statements that a process sends to PostgreSQL, with a proxy that reads the messages.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, ensure};
use sqlx::postgres::PgConnectOptions;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A proxy in front of a server. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    /// The URL of the server through the proxy.
    pub(crate) url: String,
    count: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(server_url: &str) -> anyhow::Result<Self> {
        let options: PgConnectOptions = server_url.parse()?;
        let server = format!("{}:{}", options.get_host(), options.get_port());
        ensure!(server_url.contains(&server), "no `host:port` in the URL");
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let own = listener.local_addr().context("the proxy")?;
        let url = server_url.replacen(&server, &own.to_string(), 1);
        let count = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&count);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, count) = (server.clone(), Arc::clone(&counting));
                tokio::spawn(async move {
                    // The client notices a lost connection itself.
                    let _ = forward(client, &server, &count).await;
                });
            }
        });
        Ok(Self { url, count, task })
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(client: TcpStream, server: &str, count: &AtomicU64) -> std::io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    });
    let (mut messages, mut buffer) = (Messages::default(), vec![0; 16 * 1024]);
    loop {
        let read = from_client.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        count.fetch_add(messages.statements(&buffer[..read]), Ordering::Relaxed);
        to_server.write_all(&buffer[..read]).await?;
    }
    to_server.shutdown().await?;
    // The task ends when the server has answered the last message.
    let _ = back.await;
    Ok(())
}

/// The messages of a client: each has a type, a length and a body.
#[derive(Debug, Default)]
struct Messages {
    /// The first messages of a connection have no type.
    started: bool,
    header: Vec<u8>,
    /// The bytes that are left of the current message.
    left: usize,
}

impl Messages {
    /// The number of statements that start in the next bytes.
    fn statements(&mut self, mut bytes: &[u8]) -> u64 {
        let mut count = 0;
        while let Some((first, rest)) = bytes.split_first() {
            if self.left > 0 {
                let skipped = self.left.min(bytes.len());
                self.left -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            self.header.push(*first);
            bytes = rest;
            count += u64::from(self.header_is_statement());
        }
        count
    }

    /// Whether the header is complete and belongs to a statement.
    fn header_is_statement(&mut self) -> bool {
        let length = |bytes: &[u8]| {
            let length = bytes.try_into().map_or(4, u32::from_be_bytes);
            usize::try_from(length).unwrap_or(4)
        };
        if self.started {
            let [kind, size @ ..] = &*self.header else {
                return false;
            };
            if size.len() < 4 {
                return false;
            }
            // `Q` is a simple query, `E` the execution of a prepared statement.
            let statement = matches!(kind, b'Q' | b'E');
            self.left = length(size).saturating_sub(4);
            self.header.clear();
            return statement;
        }
        if self.header.len() == 8 {
            let (size, code) = self.header.split_at(4);
            // A request for encryption comes before the start of the session.
            self.started = !matches!(code, [0x04, 0xd2, 0x16, 0x2f | 0x30]);
            self.left = length(size).saturating_sub(8);
            self.header.clear();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind], &length.to_be_bytes()[..], body].concat()
    }

    fn conversation() -> Vec<u8> {
        let ssl = [8_u32.to_be_bytes(), 80_877_103_u32.to_be_bytes()].concat();
        let startup = [&12_u32.to_be_bytes()[..], &[0, 3, 0, 0], b"QQEE"].concat();
        [
            ssl,
            startup,
            message(b'Q', b"select 1\0"),
            message(b'P', b"EQ"),
            message(b'B', b"Q"),
            message(b'E', b"\0\0\0\0\0"),
            message(b'S', b""),
            message(b'Q', b"commit\0"),
        ]
        .concat()
    }

    #[test]
    fn only_queries_and_executions_are_statements() {
        assert_eq!(Messages::default().statements(&conversation()), 3);
    }

    #[test]
    fn messages_may_arrive_in_pieces() {
        let (mut messages, conversation) = (Messages::default(), conversation());
        let pieces = conversation.chunks(3);
        let counts = pieces.map(|piece| messages.statements(piece));
        assert_eq!(counts.sum::<u64>(), 3);
    }
}
