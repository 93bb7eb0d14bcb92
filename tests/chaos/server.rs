//! A database server for one run. The run can crash it and start it again.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use rand::RngExt as _;
use tokio::{process::Child, time::sleep};

use crate::{
    commands,
    database::Tested as _,
    signal::{Signal, send},
};

/// One of the databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Postgres,
    Mysql,
    Sqlite,
}

/// The server. Dropping it kills the process and removes its files.
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    folder: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl Server {
    /// Creates the files of the server and starts it.
    pub(crate) async fn start(kind: Kind) -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("outbox-chaos-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut server = Self {
            kind,
            folder,
            port: free_port()?,
            child: None,
        };
        let data = server.data();
        if let Some(command) = commands::install(kind, &data)? {
            server.prepare(command)?;
        }
        server.run().await?;
        if kind == Kind::Mysql {
            let url = format!("mysql://root@127.0.0.1:{}/mysql", server.port);
            let mut connection = sqlx::MySql::connect(&url).await?;
            sqlx::MySql::execute(&mut connection, "create database outbox".to_owned()).await?;
        }
        Ok(server)
    }

    /// The folder for files of this run.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The address of the server; `None` for SQLite.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        (self.kind != Kind::Sqlite).then(|| (Ipv4Addr::LOCALHOST, self.port).into())
    }

    /// The URL of the server, or of a proxy at `proxy_port`.
    pub(crate) fn url(&self, proxy_port: Option<u16>) -> String {
        let port = proxy_port.unwrap_or(self.port);
        match self.kind {
            Kind::Postgres => format!("postgres://outbox@127.0.0.1:{port}/postgres"),
            Kind::Mysql => format!("mysql://root@127.0.0.1:{port}/outbox"),
            Kind::Sqlite => format!("sqlite://{}", self.folder.join("chaos.db").display()),
        }
    }

    fn log(&self) -> anyhow::Result<File> {
        let path = self.folder.join("server.log");
        Ok(File::options().create(true).append(true).open(path)?)
    }

    fn prepare(&self, mut command: Command) -> anyhow::Result<()> {
        command.stdout(self.log()?).stderr(self.log()?);
        let status = command.stdin(Stdio::null()).status()?;
        ensure!(
            status.success(),
            "{command:?}: {status}\n{}",
            self.log_tail()
        );
        Ok(())
    }

    fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(self.folder.join("server.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Starts the server, also after a crash, and waits until it accepts TCP connections.
    pub(crate) async fn run(&mut self) -> anyhow::Result<()> {
        let Some(mut command) = commands::serve(self.kind, &self.data(), self.port)? else {
            return Ok(());
        };
        command
            .stdin(Stdio::null())
            .stdout(self.log()?)
            .stderr(self.log()?);
        let spawned = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .spawn()?;
        let child = self.child.insert(spawned);
        for _ in 0..600 {
            sleep(Duration::from_millis(50)).await;
            if tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))
                .await
                .is_ok()
            {
                return Ok(());
            }
            if let Some(status) = child.try_wait()? {
                bail!("the server stopped: {status}\n{}", self.log_tail());
            }
        }
        bail!("the server did not start within 30 s\n{}", self.log_tail())
    }

    /// Ends the server at once: it cannot flush or roll back.
    pub(crate) async fn crash(&mut self) -> anyhow::Result<()> {
        let mut child = self.child.take().context("there is no server")?;
        let pid = child.id().context("the server has already ended")?;
        let signal = match self.kind {
            Kind::Postgres => Signal::Quit,
            Kind::Mysql | Kind::Sqlite => Signal::Kill,
        };
        send(pid, signal).await?;
        child.wait().await?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Dropping the handle kills the server. Files that cannot be removed stay.
        if let Some(child) = &mut self.child {
            let _ = child.start_kill();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A free port below the range of outgoing connections. A port of that range could be taken while
/// the server is down.
fn free_port() -> anyhow::Result<u16> {
    let mut random = rand::rng();
    (0..100)
        .map(|_| random.random_range(20_000..32_000))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .context("no free port")
}
