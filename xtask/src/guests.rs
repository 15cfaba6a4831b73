//! The kernels that tests boot in QEMU, from the archives of the distributions that ship them.
//!
//! apt-get downloads them with lists and keys of its own, below the target directory: it checks every signature, and
//! changes nothing of this machine. A kernel is there whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};

use crate::needs::{can_install, install};
use crate::process::{cargo, find_program, metadata, output_of, run};
use crate::steps::Outcome;

const QEMU: &str = "qemu-system-x86_64";
/// And what packs the modules of kernels.
const QEMU_PACKAGES: [&str; 3] = ["qemu-system-x86", "xz-utils", "zstd"];
const DEBIAN: &str = "http://deb.debian.org/debian";
const SECURITY: &str = "http://deb.debian.org/debian-security";
const UBUNTU: &str = "http://archive.ubuntu.com/ubuntu";
const DEBIAN_KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// A package of Debian, and the file in it that has Ubuntu's keys.
const UBUNTU_KEYS: (&str, &str) = (
    "ubuntu-keyring",
    "usr/share/keyrings/ubuntu-archive-keyring.gpg",
);
/// Besides the kernel.
const OTHERS: [&str; 3] = ["busybox-static", "udev", "wireguard-tools"];
/// Kernels come as packages of one flavour, whatever their version: linux-image-6.1.0-56-amd64.
const IMAGE: &str = "linux-image-";
const FLAVOURS: [&str; 2] = ["-amd64", "-generic"];
/// Where newer ones have their files.
const PARTS: [&str; 2] = ["linux-binary-", "linux-modules-"];

const TOOLS: &str = "tools";
const NEWEST: &str = "newest";
/// The name of a part of guests, its archive and suite. A kernel's version begins like its name, but for the newest.
type Part = (&'static str, &'static str, &'static str);

/// crates/cli/tests/kernels boots the kernels by these names.
const GUESTS: [Part; 7] = [
    (TOOLS, DEBIAN, "bookworm"),
    ("6.1", SECURITY, "bookworm-security"),
    (NEWEST, DEBIAN, "trixie-backports"),
    ("5.10", SECURITY, "bullseye-security"),
    ("5.15", UBUNTU, "jammy"),
    ("6.8", UBUNTU, "noble"),
    ("6.12", DEBIAN, "trixie"),
];
/// The first of them are for tests that everybody runs.
const FOR_ALL: usize = 3;

/// Makes QEMU and the kernels be there that all tests boot, or says why they are not.
pub fn ensure(no_install: bool) -> Result<Outcome> {
    ensure_parts(no_install, &GUESTS[..FOR_ALL])
}

/// Boots every kernel with a program, and writes what worked on which into docs/kernels.md.
pub fn tell(program: Option<&Path>) -> Result<Outcome> {
    let had = ensure_parts(false, &GUESTS)?;
    if had != Outcome::Passed {
        return Ok(had);
    }
    let mut tests = cargo();
    tests.args(["test", "--locked", "--package", "nicpoll"]);
    tests.args(["--test", "kernels", "--", "--nocapture"]);
    tests.env("NICPOLL_REQUIRE", "qemu,kernels,time");
    tests.env("NICPOLL_REFRESH_GOLDEN", "1");
    if let Some(program) = program {
        tests.env("NICPOLL_GUEST_PROGRAM", fs::canonicalize(program)?);
    }
    run(&mut tests)?;
    Ok(Outcome::Passed)
}

fn ensure_parts(no_install: bool, parts: &[Part]) -> Result<Outcome> {
    let skipped = |reason: &str| Ok(Outcome::Skipped(String::from(reason)));
    if std::env::consts::ARCH != "x86_64" {
        return skipped("guests run this machine's own programs, and their kernels are for x86_64");
    }
    let home = folder()?;
    let has_qemu = find_program(QEMU).is_some();
    let missing = parts.iter().filter(|(name, ..)| !home.join(name).exists());
    let missing: Vec<_> = missing.collect();
    if has_qemu && missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    if no_install || !can_install() {
        return skipped(
            "tests that boot a guest will skip; as root on Debian this step gets QEMU and kernels",
        );
    }
    if !has_qemu {
        install(&QEMU_PACKAGES)?;
    }
    for part in missing {
        if let Err(error) = get(part, &home) {
            return skipped(&format!("{}: {error:#}", part.0));
        }
    }
    Ok(Outcome::Passed)
}

/// Where the tests look: cargo gives them the same directory as `CARGO_TARGET_TMPDIR`.
fn folder() -> Result<PathBuf> {
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str();
    let target = target.context("`cargo metadata` names no target directory")?;
    let folder = Path::new(target).join("tmp").join("guests");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn get(&(name, archive, suite): &Part, home: &Path) -> Result<()> {
    // In the same file system, so that it can be moved into place.
    let work = tempfile::tempdir_in(home).context("cannot make a temporary directory")?;
    let work = work.path();
    let mut keys = PathBuf::from(DEBIAN_KEYS);
    if archive == UBUNTU {
        let folder = work.join("keys");
        let apt = Apt::new(&folder, DEBIAN, "trixie", &keys)?;
        apt.unpack(&[UBUNTU_KEYS.0], &folder.join("unpacked"))?;
        keys = folder.join("unpacked").join(UBUNTU_KEYS.1);
    }
    let apt = Apt::new(work, archive, suite, &keys)?;
    let whole = work.join("unpacked");
    if name == TOOLS {
        apt.unpack(&OTHERS, &whole)?;
    } else {
        let names = apt.names()?;
        let image =
            newest(&names, name).with_context(|| format!("{} has no kernel {}", suite, name))?;
        let version = image.strip_prefix(IMAGE).unwrap_or(image);
        let parts = PARTS.map(|prefix| format!("{prefix}{version}"));
        let parts = parts.iter().map(String::as_str);
        let parts = parts.filter(|name| names.lines().any(|line| line == *name));
        let packages: Vec<_> = std::iter::once(image).chain(parts).collect();
        apt.unpack(&packages, &whole)?;
    }
    let place = home.join(name);
    fs::rename(&whole, &place).map_err(|error| anyhow!("{}: {error}", place.display()))
}

/// apt-get and its kin, confined to a folder.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Learns what an archive offers that is signed with these keys.
    fn new(folder: &Path, archive: &str, suite: &str, keys: &Path) -> Result<Self> {
        for name in ["lists/partial", "cache/archives/partial", "etc"] {
            fs::create_dir_all(folder.join(name))?;
        }
        fs::write(folder.join("status"), "")?;
        let source = format!(
            "deb [signed-by={}] {archive} {suite} main\n",
            keys.display()
        );
        fs::write(folder.join("sources.list"), source)?;
        let at =
            |option: &str, name: &str| format!("{option} \"{}\";\n", folder.join(name).display());
        let options = [
            at("Dir::Etc::SourceList", "sources.list"),
            String::from("Dir::Etc::SourceParts \"-\";\n"),
            at("Dir::State", "etc"),
            at("Dir::State::Lists", "lists"),
            at("Dir::State::status", "status"),
            at("Dir::Cache", "cache"),
            String::from("Acquire::Languages \"none\";\n"),
            // The files of an old release are signed for good and dated for a while.
            String::from("Acquire::Check-Valid-Until \"false\";\n"),
            String::from("APT::Sandbox::User \"root\";\n"),
        ];
        fs::write(folder.join("apt.conf"), options.concat())?;
        let apt = Apt {
            folder: folder.to_path_buf(),
        };
        run(apt.command("apt-get").args(["update", "-qq"]))?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.folder.join("apt.conf"));
        command
    }

    /// Names of all its kernels' packages, one a line.
    fn names(&self) -> Result<String> {
        let mut all = self.command("apt-cache");
        output_of(all.args(["pkgnames", "linux-"])).context("`apt-cache pkgnames` failed")
    }

    fn unpack(&self, packages: &[&str], into: &Path) -> Result<()> {
        let mut download = self.command("apt-get");
        download.args(["download", "-qq"]).args(packages);
        run(download.current_dir(&self.folder))?;
        fs::create_dir_all(into)?;
        let mut unpacked = 0;
        for file in fs::read_dir(&self.folder)? {
            let package = file?.path();
            if package.extension().is_some_and(|end| end == "deb") {
                run(Command::new("dpkg-deb")
                    .arg("--extract")
                    .args([&package, into]))?;
                unpacked += 1;
            }
        }
        ensure!(
            unpacked == packages.len(),
            "{unpacked} of {packages:?} came"
        );
        Ok(())
    }
}

/// The newest kernel of a version among names of packages.
fn newest<'a>(names: &'a str, version: &str) -> Option<&'a str> {
    names
        .lines()
        .filter_map(|name| Some((numbers(name)?, name)))
        .filter(|(_, name)| version == NEWEST || name.starts_with(&format!("{IMAGE}{version}.")))
        .max()
        .map(|(_, name)| name)
}

/// The numbers of a kernel package's version, such as 6, 12, 9, 12 of `6.12.9+deb12`. Packages without files, such as
/// linux-image-6.1-amd64, have no third number; other flavours, such as linux-image-6.1.0-9-cloud-amd64, have words in
/// their version.
fn numbers(package: &str) -> Option<Vec<u32>> {
    let text = package.strip_prefix(IMAGE)?;
    let text = FLAVOURS.iter().find_map(|end| text.strip_suffix(end))?;
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
        let names = "linux-image-6.1.0-50-amd64\nlinux-image-6.1.0-9-amd64\n\
            linux-image-6.1.0-56-cloud-amd64\nlinux-image-6.12-amd64\nlinux-modules-6.1.0-57-amd64\n";
        assert_eq!(newest(names, "6.1"), Some("linux-image-6.1.0-50-amd64"));
        assert_eq!(newest(names, "6.12"), None);
        let more = format!(
            "{names}linux-image-6.12.100+deb12-amd64\nlinux-image-6.12.99+deb12-amd64\n\
             linux-image-6.12.101+deb12-rt-amd64\nlinux-image-unsigned-6.13.0-1-generic\n"
        );
        assert_eq!(
            newest(&more, NEWEST),
            Some("linux-image-6.12.100+deb12-amd64")
        );
        assert_eq!(newest(&more, "6.1"), Some("linux-image-6.1.0-50-amd64"));
        let ubuntu = "linux-image-5.15.0-25-generic\nlinux-image-5.15.0-1002-aws\n";
        assert_eq!(
            newest(ubuntu, "5.15"),
            Some("linux-image-5.15.0-25-generic")
        );
        assert_eq!(newest("linux-image-amd64\n", NEWEST), None);
        assert_eq!(newest("", NEWEST), None);
    }
}
