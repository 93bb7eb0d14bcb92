//! Where the programs of the servers are, and as which user they run. `scripts/with-databases`
//! installs them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

/// Finds a program of a server in `PATH` or in Debian's folders.
pub(crate) fn find(program: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push(PathBuf::from("/usr/sbin"));
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        let mut versions: Vec<PathBuf> = versions.flatten().map(|version| version.path()).collect();
        versions.sort();
        folders.extend(versions.iter().rev().map(|version| version.join("bin")));
    }
    let found = folders
        .iter()
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .with_context(|| {
            format!("no {program} here; `scripts/with-databases true` installs what is missing")
        })?;
    // The server finds its own files relative to its real path, not to that of a link.
    Ok(found.canonicalize()?)
}

/// The user of a server. No server runs as root, and Debian's packages create a user.
#[derive(Debug)]
pub(crate) struct User(Option<&'static str>);

impl User {
    pub(crate) fn new(name: &'static str) -> anyhow::Result<Self> {
        let root = id(&["-u"])? == "0";
        Ok(Self(root.then_some(name)))
    }

    /// Creates an empty folder that this user may write to.
    pub(crate) fn folder(&self, path: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(path)?;
        if let Some(name) = self.0 {
            let (uid, gid) = (id(&["-u", name])?.parse()?, id(&["-g", name])?.parse()?);
            std::os::unix::fs::chown(path, Some(uid), Some(gid))?;
        }
        Ok(())
    }

    /// A command as this user, with the process id of the program itself.
    pub(crate) fn command(&self, program: &Path) -> anyhow::Result<Command> {
        let Some(name) = self.0 else {
            return Ok(Command::new(program));
        };
        let (user, group) = (format!("--reuid={name}"), id(&["-g", name])?);
        let mut command = Command::new("setpriv");
        command.args([&user, &format!("--regid={group}"), "--clear-groups"]);
        command.arg(program);
        Ok(command)
    }
}

fn id(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("id").args(arguments).output()?;
    if !output.status.success() {
        bail!("id {}: {}", arguments.join(" "), output.status);
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
