//! The commands that install and start each server. SQLite has no server, so it has none.

use std::{ffi::OsString, path::Path, process::Command};

use crate::{
    programs::{User, find},
    server::Kind,
};

/// The command that creates the files of a new server.
pub(crate) fn install(kind: Kind, data: &Path) -> anyhow::Result<Option<Command>> {
    let mut command = match kind {
        Kind::Sqlite => return Ok(None),
        Kind::Postgres => {
            let user = User::new("postgres")?;
            user.folder(data)?;
            user.command(&find("initdb")?)?
        }
        Kind::Mysql => {
            let user = User::new("mysql")?;
            user.folder(data)?;
            user.command(&find("mariadb-install-db")?)?
        }
    };
    if kind == Kind::Postgres {
        command.arg("-D").arg(data);
        command.args([
            "-U",
            "outbox",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]);
    } else {
        command.arg("--no-defaults").arg(option("--datadir=", data));
        command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    }
    Ok(Some(command))
}

/// The command that runs the server.
pub(crate) fn serve(kind: Kind, data: &Path, port: u16) -> anyhow::Result<Option<Command>> {
    let port_text = port.to_string();
    Ok(Some(match kind {
        Kind::Sqlite => return Ok(None),
        Kind::Postgres => {
            let mut command = User::new("postgres")?.command(&find("postgres")?)?;
            command.arg("-D").arg(data).arg("-k").arg(data);
            command.args([
                "-h",
                "127.0.0.1",
                "-p",
                &port_text,
                "-c",
                "max_connections=200",
            ]);
            command
        }
        Kind::Mysql => {
            let mut command = User::new("mysql")?.command(&find("mariadbd")?)?;
            command.arg("--no-defaults").arg(option("--datadir=", data));
            command.arg(option("--socket=", &data.join("socket")));
            command.arg(option("--pid-file=", &data.join("pid")));
            command.args([
                "--bind-address=127.0.0.1",
                "--max-connections=200",
                "--port",
                &port_text,
            ]);
            command
        }
    }))
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}
