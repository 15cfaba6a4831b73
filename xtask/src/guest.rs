//! Gets what the guest of `crates/cli/tests/guest` is made of: QEMU, Debian's newest kernel, a static
//! busybox, and udev.
//!
//! What must hold: what is only the guest's is unpacked into the target directory, never installed, and
//! is there whole or not at all, so that the next run only looks. apt-get checks what it downloads. Where it
//! cannot be had, the step is skipped with the reason, and the test skips, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};

use crate::peers;
use crate::process::{find_program, output_of, run};
use crate::steps::Outcome;
use crate::tidy;

const QEMU: &str = "qemu-system-x86_64";
const QEMU_PACKAGE: &str = "qemu-system-x86";
/// What the guest is made of besides the kernel.
const PACKAGES: [&str; 2] = ["busybox-static", "udev"];
/// Debian's kernel packages of one flavour, whatever their version.
const KERNEL_PREFIX: &str = "linux-image-";
const KERNEL_SUFFIX: &str = "-amd64";

/// Makes the guest's parts be there, or says why they are not.
pub fn ensure(no_install: bool) -> Result<Outcome> {
    if std::env::consts::ARCH != "x86_64" {
        return skipped("the guest runs this machine's own programs, and its kernel is for x86_64");
    }
    let unpacked = directory()?;
    let has_qemu = find_program(QEMU).is_some();
    if has_qemu && unpacked.exists() {
        return Ok(Outcome::Passed);
    }
    if no_install || !peers::can_install() {
        return skipped(
            "the test with a card's interrupts will skip; as root on Debian this step gets QEMU and a kernel",
        );
    }
    match get(&unpacked, has_qemu) {
        Ok(()) => Ok(Outcome::Passed),
        Err(error) => skipped(&format!("{error:#}")),
    }
}

fn skipped(reason: &str) -> Result<Outcome> {
    Ok(Outcome::Skipped(String::from(reason)))
}

/// Where the test looks: cargo gives it the same directory as `CARGO_TARGET_TMPDIR`.
fn directory() -> Result<PathBuf> {
    let metadata = tidy::metadata()?;
    let target = metadata["target_directory"].as_str();
    let target = target.context("`cargo metadata` names no target directory")?;
    Ok(Path::new(target).join("tmp").join("guest"))
}

fn get(unpacked: &Path, has_qemu: bool) -> Result<()> {
    if has_qemu {
        peers::update()?;
    } else {
        peers::install(&[QEMU_PACKAGE])?;
    }
    if unpacked.exists() {
        return Ok(());
    }
    let pattern = format!("^{KERNEL_PREFIX}[0-9].*{KERNEL_SUFFIX}$");
    let names = output_of(Command::new("apt-cache").args(["search", "--names-only", &pattern]))
        .context("`apt-cache search` failed")?;
    let kernel = newest(&names)
        .with_context(|| format!("this archive has no package {KERNEL_PREFIX}*{KERNEL_SUFFIX}"))?;
    let parent = unpacked.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    // In the same file system, so that it can be moved into place.
    let home = tempfile::tempdir_in(parent).context("cannot make a temporary directory")?;
    let mut download = Command::new("apt-get");
    download.args(["download", "-qq", kernel]).args(PACKAGES);
    run(download.current_dir(home.path()))?;
    let whole = home.path().join("guest");
    for file in fs::read_dir(home.path())? {
        let package = file?.path();
        if package.extension().is_some_and(|end| end == "deb") {
            run(Command::new("dpkg-deb")
                .arg("--extract")
                .args([&package, &whole]))?;
        }
    }
    fs::rename(&whole, unpacked).map_err(|error| anyhow!("{}: {error}", unpacked.display()))
}

/// The newest kernel among lines of `apt-cache search`. Packages without files, such as linux-image-6.1-amd64,
/// have no third number; flavours, such as linux-image-6.1.0-9-cloud-amd64, have words in their version.
fn newest(names: &str) -> Option<&str> {
    names
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter_map(|name| Some((version(name)?, name)))
        .max()
        .map(|(_, name)| name)
}

/// The numbers of a kernel package's version, such as 6, 12, 9, 12 of `6.12.9+deb12`.
fn version(package: &str) -> Option<Vec<u32>> {
    let text = package
        .strip_prefix(KERNEL_PREFIX)?
        .strip_suffix(KERNEL_SUFFIX)?;
    let (release, _) = text.split_once(['+', '-']).unwrap_or((text, ""));
    let is_flavour = text
        .rsplit('-')
        .next()
        .is_some_and(|word| word.starts_with(|letter: char| letter.is_ascii_alphabetic()));
    if release.split('.').count() < 3 || is_flavour {
        return None;
    }
    let numbers = text.split(|letter: char| !letter.is_ascii_digit());
    let numbers = numbers.filter(|number| !number.is_empty());
    numbers.map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_with_files_and_all_drivers_is_chosen() {
        let names = "linux-image-6.1.0-50-amd64 - Linux 6.1 for 64-bit PCs (signed)\n\
            linux-image-6.1.0-9-amd64 - Linux 6.1 for 64-bit PCs (signed)\n\
            linux-image-6.1.0-56-cloud-amd64 - Linux 6.1 for x86-64 cloud (signed)\n\
            linux-image-6.12-amd64 - Linux for 64-bit PCs (meta-package)\n";
        assert_eq!(newest(names), Some("linux-image-6.1.0-50-amd64"));
        let more = format!(
            "{names}linux-image-6.12.100+deb12-amd64 - Linux 6.12\n\
             linux-image-6.12.99+deb12-amd64 - Linux 6.12\n\
             linux-image-6.12.101+deb12-rt-amd64 - Linux 6.12\n"
        );
        assert_eq!(newest(&more), Some("linux-image-6.12.100+deb12-amd64"));
        assert_eq!(newest("linux-image-amd64 - meta\n"), None);
        assert_eq!(newest(""), None);
    }
}
