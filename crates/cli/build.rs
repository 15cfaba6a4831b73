//! Sets the program's version, with the commit that it is built from, if known, and its features.
//!
//! It must build without git, and from an archive inside another project's repository.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let version = match commit(&root) {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => String::from(env!("CARGO_PKG_VERSION")),
    };
    println!("cargo:rustc-env=NICPOLL_VERSION={version}");
    let has_postgres = env::var_os("CARGO_FEATURE_POSTGRES").is_some();
    let features = if has_postgres { "postgres" } else { "none" };
    println!("cargo:rustc-env=NICPOLL_FEATURES={features}");
    if let Some(path) = log_of_head(&root) {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

/// Returns the commit of a working tree and its day: `0123456789ab 2026-01-31`. `None` if the directory is no
/// repository's top, or there is no git.
pub fn commit(root: &Path) -> Option<String> {
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    let is_own = top.canonicalize().ok()? == root.canonicalize().ok()?;
    is_own.then(|| git(root, &["log", "-1", "--abbrev=12", "--format=%h %cs"]))?
}

/// Returns the file that grows with each commit and each checkout.
fn log_of_head(root: &Path) -> Option<PathBuf> {
    commit(root)?;
    let path = root.join(git(root, &["rev-parse", "--git-path", "logs/HEAD"])?);
    path.exists().then_some(path)
}

/// Returns git's output, without the end of the line.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(args)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim_end();
    (output.status.success() && !text.is_empty()).then(|| String::from(text))
}
