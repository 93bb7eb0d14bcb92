//! What the macros accept, and what they say about what they do not.
//!
//! `fail-macro` are messages in our own words, the same on every compiler. `fail-type` are
//! messages of the compiler with our hints in them; it words them anew every few releases, so
//! they are compared on one release only. After a change of a message, read the difference, then
//! write it with `TRYBUILD=overwrite cargo test -p outbox-ui-tests`.

use std::{env, io, process::Command};

use trybuild::TestCases;

/// The release that `fail-type/*.stderr` were written with.
const PINNED: &str = "rustc 1.95.";

#[test]
fn accepted() {
    TestCases::new().pass("tests/pass/*.rs");
}

#[test]
fn rejected_by_the_macros() {
    TestCases::new().compile_fail("tests/fail-macro/*.rs");
}

#[test]
fn rejected_by_the_compiler() {
    let version = compiler_version().expect("rustc runs");
    if version.starts_with(PINNED) {
        TestCases::new().compile_fail("tests/fail-type/*.rs");
    } else {
        eprintln!("SKIPPED tests/fail-type: written for {PINNED}x, this is {version}");
    }
}

fn compiler_version() -> io::Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
