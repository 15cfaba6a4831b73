//! Other programs that tests run.

use std::path::PathBuf;
use std::process::Command;

/// Why a program cannot be used, unless it is in PATH or where Debian keeps the administrator's programs.
pub fn missing(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(extra);
    let is_there = folders.any(|folder| folder.join(name).is_file());
    (!is_there).then(|| format!("{name} is not installed"))
}

/// Why no host can be reached by ssh.
pub fn missing_sshd() -> Option<String> {
    let mut programs = ["sshd", "ssh", "ssh-keygen", "setpriv"].into_iter();
    programs.find_map(missing)
}

/// Why no systemd with devices can be booted.
pub fn missing_systemd() -> Option<String> {
    ["systemd-analyze", "udevadm"].into_iter().find_map(missing)
}

/// Why no cluster of Slurm can be made.
pub fn missing_slurm() -> Option<String> {
    ["slurmctld", "slurmd", "sbatch"]
        .into_iter()
        .find_map(missing)
}

/// Why iperf cannot be used, unless the one in PATH speaks the dialect of 2.1.
pub fn missing_iperf() -> Option<String> {
    let Ok(output) = Command::new("iperf").arg("-v").output() else {
        return Some(String::from("iperf is not installed"));
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    (!text.contains("version 2.1.")).then(|| format!("iperf is not 2.1: {}", text.trim()))
}
