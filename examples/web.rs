//! A signal handler for a web service, and an HTTP client.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    signal::unix::{SignalKind, signal},
};

/// Waits for ctrl-c or for SIGTERM, which a container runtime sends to stop a service.
///
/// # Errors
/// The operating system does not let the program listen for signals.
pub async fn stop_signal() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed?,
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Sends an HTTP request and returns the body of the response. It has only what an example needs.
///
/// # Errors
/// The server cannot be reached, or its status is not 200.
pub async fn http(to: SocketAddr, method: &str, path: &str, json: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(to).await?;
    let length = json.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{json}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    anyhow::ensure!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    Ok(body.unwrap_or_default().to_owned())
}
