//! axe-core, which tests of the pages run in a browser. It comes from npm's registry at the version below; this project
//! holds no copy of it.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{find_program, run};
use crate::steps::Outcome;

/// The package with its version: a newer one may find more, and is tried on purpose.
const PACKAGE: &str = "axe-core@4.11.0";
/// Where it goes, below the workspace.
const FOLDER: &str = "target/axe";
/// The file that tests read.
const SCRIPT: &str = "target/axe/node_modules/axe-core/axe.min.js";

/// Installs it where that is possible, and says how where it is not.
pub fn ensure(no_install: bool) -> Result<Outcome> {
    if Path::new(SCRIPT).is_file() {
        return Ok(Outcome::Passed);
    }
    let install = [
        "install",
        "--no-save",
        "--ignore-scripts",
        "--prefix",
        FOLDER,
        PACKAGE,
    ];
    if no_install || find_program("npm").is_none() {
        return Ok(Outcome::Skipped(format!(
            "tests that need axe-core will skip and say so; to run them: npm {}",
            install.join(" ")
        )));
    }
    std::fs::create_dir_all(FOLDER)?;
    run(Command::new("npm").args(install))?;
    if !Path::new(SCRIPT).is_file() {
        bail!("{SCRIPT} is still missing after npm installed {PACKAGE}");
    }
    Ok(Outcome::Passed)
}
