//! A machine with a card: Debian's kernel in QEMU, emulated to run anywhere, so its timing means nothing. It runs a
//! busybox script and our program.

use crate::common::prelude::*;

/// Folder into which `cargo xtask test` unpacks Debian's packages linux-image-* and busybox-static. Installed ones
/// take precedence.
const UNPACKED: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/guest");
const QEMU: &str = "qemu-system-x86_64";
/// Time limit of a guest, in seconds.
const TIME_LIMIT: &str = "600";
/// Without no_timer_check the kernel counts ticks in a loop at its start, and finds the timer broken if this machine
/// is busy then.
const KERNEL_OPTIONS: &str = "console=ttyS0 quiet panic=-1 no_timer_check";
/// QEMU's oldest e1000 whose driver has settable interrupt moderation.
const CARD: &str = "e1000-82545em,netdev=net0";
/// A second card, with a clock and time stamps. It appears once a script has loaded its driver.
const STAMPING_CARD: &str = "e1000e,netdev=net1";
/// The card's driver, required for a guest.
const CARD_DRIVER: &str = "kernel/drivers/net/ethernet/intel/e1000/e1000";
/// Drivers that scripts may load, each after those that it needs.
const OTHER_DRIVERS: [&str; 11] = [
    "kernel/drivers/net/ethernet/intel/e1000e/e1000e",
    "kernel/net/llc/llc",
    "kernel/net/802/stp",
    "kernel/net/802/garp",
    "kernel/net/802/mrp",
    "kernel/net/8021q/8021q",
    "kernel/net/tls/tls",
    "kernel/drivers/net/bonding/bonding",
    "kernel/drivers/net/veth",
    "kernel/net/sched/sch_netem",
    "kernel/net/sched/sch_tbf",
];

/// First commands in every guest: bring the card up, with the address that QEMU's network expects.
const PRELUDE: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mount -t tracefs tracing /sys/kernel/tracing
exec >/dev/ttyS0 2>&1
echo
load() { [ ! -e /modules/$1.ko.xz ] || unxz /modules/$1.ko.xz; insmod /modules/$1.ko; }
load e1000
card_up() { ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; }
card_up
";

/// The files that a guest is made of. Several guests may run at a time.
pub struct Guest {
    kernel: PathBuf,
    modules: Vec<PathBuf>,
    busybox: PathBuf,
    /// udev's program; `None` without its package.
    udev: Option<PathBuf>,
    /// Number of its processors.
    cpus: u8,
}

/// Output of a guest's console.
pub struct Console(pub String);

impl Console {
    /// Returns the rest of the line that begins with a name and a colon.
    pub fn line(&self, name: &str) -> &str {
        let mut lines = self.0.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found
            .unwrap_or_else(|| panic!("no '{name}' in\n{}", self.0))
            .trim()
    }
}

impl Guest {
    /// Makes a guest; `None` if the test is to be skipped.
    pub fn new(test: &str) -> Option<Self> {
        if !nicpoll_testkit::has(test, &[Need::Qemu]) {
            return None;
        }
        let roots = [Path::new(UNPACKED), Path::new("/")];
        let guest = roots.into_iter().find_map(below);
        if guest.is_none() {
            skip(
                test,
                Need::Qemu,
                "neither installed nor unpacked: a kernel with an e1000 module (package linux-image-amd64) and \
                 a static busybox (package busybox-static)",
            );
        }
        guest
    }

    /// Gives it several processors: a study takes two. Either may then get the card's interrupts.
    pub fn with_cpus(self, cpus: u8) -> Self {
        Guest { cpus, ..self }
    }

    /// Boots with these files, runs the script as the first process, and returns the console's output.
    pub fn run(&self, home: &Path, script: &str, files: &[(&str, &str)]) -> Console {
        let program = Path::new(env!("CARGO_BIN_EXE_nicpoll"));
        let mut archive = Archive::default();
        for directory in ["bin", "proc", "sys", "dev", "var", "var/lib", "modules"] {
            archive.directory(directory);
        }
        archive.file("init", format!("{PRELUDE}{script}poweroff -f\n").as_bytes());
        for (name, text) in files {
            archive.file(name, text.as_bytes());
        }
        archive.file("bin/busybox", &fs::read(&self.busybox).unwrap());
        for module in &self.modules {
            let name = module.file_name().unwrap().to_string_lossy();
            archive.file(&format!("modules/{name}"), &fs::read(module).unwrap());
        }
        archive.file("bin/nicpoll", &fs::read(program).unwrap());
        let mut needed: BTreeSet<PathBuf> = libraries(program).into_iter().collect();
        if let Some(udev) = &self.udev {
            // One program with two names.
            for name in ["bin/udevadm", "bin/systemd-udevd"] {
                archive.file(name, &fs::read(udev).unwrap());
            }
            needed.extend(libraries(udev));
        }
        for library in needed {
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
                // One thread for all processors: several emulator threads fail when a kernel changes its running
                // code, as tracepoints do.
                "tcg,thread=single",
                "-nographic",
            ])
            .args(["-no-reboot", "-append", KERNEL_OPTIONS])
            .args(["-smp", &self.cpus.to_string()])
            .args(["-netdev", "user,id=net0,restrict=on", "-device", CARD])
            .args(["-netdev", "user,id=net1,restrict=on"])
            .args(["-device", STAMPING_CARD])
            .args([Path::new("-kernel"), &self.kernel])
            .args([Path::new("-initrd"), &image])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Console(String::from_utf8_lossy(&output.stdout).replace('\r', ""))
    }
}

/// Finds the files below a root directory, old or merged (`/usr/bin` for `/bin`).
fn below(root: &Path) -> Option<Guest> {
    let either = |name: &str| [root.join(name), root.join("usr").join(name)];
    let mut busybox = either("bin/busybox").into_iter();
    let busybox = busybox.find(|path| path.exists())?;
    let modules = either("lib/modules").into_iter();
    let mut versions = modules.flat_map(|path| fs::read_dir(path).into_iter().flatten().flatten());
    versions.find_map(|version| {
        let name = version.file_name().into_string().ok()?;
        let kernel = root.join(format!("boot/vmlinuz-{name}"));
        let mut modules = vec![module(&version.path(), CARD_DRIVER)?];
        let others = OTHER_DRIVERS.into_iter();
        modules.extend(others.filter_map(|driver| module(&version.path(), driver)));
        kernel.exists().then(|| Guest {
            kernel,
            modules,
            busybox: busybox.clone(),
            udev: either("bin/udevadm").into_iter().find(|path| path.exists()),
            cpus: 1,
        })
    })
}

/// Returns a module, compressed as in newer packages or plain.
fn module(directory: &Path, name: &str) -> Option<PathBuf> {
    let forms = ["ko", "ko.xz"].map(|end| directory.join(format!("{name}.{end}")));
    forms.into_iter().find(|path| path.exists())
}

/// Returns the shared objects of a program.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = stdout(&output);
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

    /// Adds a file at its own path, with its directories.
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
