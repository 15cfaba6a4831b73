//! A machine with a card: Debian's kernel in QEMU, by emulation, so that it runs anywhere and its timing means
//! nothing. What it runs is a script of busybox and our program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names a directory in which the packages linux-image-* and busybox-static of Debian were unpacked, where
/// they are not installed.
const PACKAGES_VARIABLE: &str = "NICPOLL_TEST_GUEST";
const QEMU: &str = "/usr/bin/qemu-system-x86_64";
/// Ends a guest that does not end by itself, in seconds.
const TIME_LIMIT: &str = "180";
const CARD_MODULE: &str = "kernel/drivers/net/ethernet/intel/e1000/e1000.ko";

/// What a guest is made of.
pub struct Guest {
    kernel: PathBuf,
    module: PathBuf,
    busybox: PathBuf,
}

impl Guest {
    /// A guest, or the reason why not on standard output and `None`.
    pub fn new(test: &str) -> Option<Self> {
        let root =
            std::env::var_os(PACKAGES_VARIABLE).map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let busybox = root.join("bin/busybox");
        for (program, package) in [
            (Path::new(QEMU), "qemu-system-x86"),
            (&busybox, "busybox-static"),
        ] {
            if !program.exists() {
                println!(
                    "skipped {test}: no {} (package {package})",
                    program.display()
                );
                return None;
            }
        }
        let versions = fs::read_dir(root.join("lib/modules")).into_iter().flatten();
        let found = versions.flatten().find_map(|version| {
            let module = version.path().join(CARD_MODULE);
            let name = version.file_name().into_string().ok()?;
            let kernel = root.join(format!("boot/vmlinuz-{name}"));
            (module.exists() && kernel.exists()).then_some((kernel, module))
        });
        let Some((kernel, module)) = found else {
            println!(
                "skipped {test}: no kernel with an e1000 module (package linux-image-amd64, installed, or \
                 unpacked where {PACKAGES_VARIABLE} says)"
            );
            return None;
        };
        Some(Guest {
            kernel,
            module,
            busybox,
        })
    }

    /// Boots, runs the script as the first process, and returns what the console showed.
    pub fn run(&self, home: &Path, script: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_nicpoll"));
        let mut archive = Archive::default();
        for directory in ["bin", "proc", "sys", "dev", "var", "var/lib"] {
            archive.directory(directory);
        }
        archive.file("init", script.as_bytes());
        archive.file("bin/busybox", &fs::read(&self.busybox).unwrap());
        archive.file("e1000.ko", &fs::read(&self.module).unwrap());
        archive.file("bin/nicpoll", &fs::read(program).unwrap());
        for library in libraries(program) {
            archive.with_parents(&library);
        }
        let image = home.join("initramfs");
        fs::write(&image, archive.end()).unwrap();
        let output = Command::new("timeout")
            .args([
                TIME_LIMIT,
                QEMU,
                "-m",
                "1024",
                "-accel",
                "tcg",
                "-nographic",
            ])
            .args(["-no-reboot", "-append", "console=ttyS0 quiet panic=-1"])
            .args([
                "-netdev",
                "user,id=net0,restrict=on",
                "-device",
                "e1000,netdev=net0",
            ])
            .args([Path::new("-kernel"), &self.kernel])
            .args([Path::new("-initrd"), &image])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).replace('\r', "")
    }
}

/// The shared objects that a program is linked with.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

/// An archive of the kernel's own kind, cpio "newc" (Documentation/driver-api/early-userspace/buffer-format).
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    directories: Vec<String>,
    entries: u32,
}

impl Archive {
    fn directory(&mut self, name: &str) {
        if !self.directories.iter().any(|known| known == name) {
            self.directories.push(String::from(name));
            self.entry(name, 0o040_755, &[]);
        }
    }

    fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, 0o100_755, content);
    }

    /// A file at its own place, with the directories above it.
    fn with_parents(&mut self, path: &Path) {
        let name = path.strip_prefix("/").unwrap().to_str().unwrap();
        for (end, _) in name.match_indices('/') {
            self.directory(&name[..end]);
        }
        self.file(name, &fs::read(path).unwrap());
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = content.len() as u32;
        let name_size = name.len() as u32 + 1;
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}
