//! The versions of packages, from the lock files.

const CRATES: &str = include_str!("../Cargo.lock");
const PACKAGES: &str = include_str!("../node/package-lock.json");

pub(crate) fn of(package: &str) -> &'static str {
    in_text(CRATES, &format!("name = \"{package}\"\nversion = \""))
        .or_else(|| {
            in_text(
                PACKAGES,
                &format!("\"node_modules/{package}\": {{\n      \"version\": \""),
            )
        })
        .unwrap_or("unknown")
}

fn in_text(text: &'static str, before: &str) -> Option<&'static str> {
    text.split_once(before)?.1.split('"').next()
}
