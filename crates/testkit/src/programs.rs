//! Other programs that tests run.

use std::path::PathBuf;
use std::process::Command;

/// An error unless the program is in PATH, or where Debian keeps the administrator's programs.
pub fn find(name: &str) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(extra);
    if folders.any(|folder| folder.join(name).is_file()) {
        return Ok(());
    }
    Err(format!("{name} is not installed"))
}

/// An error unless the iperf in PATH speaks the dialect of 2.1.
pub fn iperf() -> Result<(), String> {
    let output = Command::new("iperf").arg("-v").output();
    let output = output.map_err(|_| String::from("iperf is not installed"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    if text.contains("version 2.1.") {
        return Ok(());
    }
    Err(format!("iperf is not 2.1: {}", text.trim()))
}
