//! A machine with a card: a distribution's kernel in QEMU, emulated to run anywhere, so its timing means nothing. It
//! runs a busybox script and our program.

// Each test program uses a part of it.
#![allow(dead_code)]

use crate::common::prelude::*;

/// Folder into which `cargo xtask test --all` unpacks the tools of guests and their kernels, each by its name.
const UNPACKED: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/guests");
/// The kernel that most tests boot: of Debian 12.
const USUAL: &str = "6.1";
const QEMU: &str = "qemu-system-x86_64";
/// Time limit of a guest, in seconds.
const TIME_LIMIT: &str = "1200";
/// Without no_timer_check the kernel counts ticks in a loop at its start, and finds the timer broken if this machine
/// is busy then.
const KERNEL_OPTIONS: &str = "console=ttyS0 quiet panic=-1 no_timer_check";
/// QEMU's oldest e1000 whose driver has settable interrupt moderation.
const CARD: &str = "e1000-82545em,netdev=net0";
/// The driver of the second card, which has a clock and time stamps. It appears once a script has loaded the driver.
const STAMPING_DRIVER: &str = "e1000e";
/// Drivers that scripts may load, which brings those that they need.
const DRIVERS: [&str; 11] = [
    "virtio_pci",
    "e1000",
    "e1000e",
    "virtio_net",
    "8021q",
    "bonding",
    "veth",
    "wireguard",
    "sch_netem",
    "sch_tbf",
    "tun",
];
/// Programs of this machine that guests get if they are there.
const PROGRAMS: [&str; 1] = ["ip"];
/// And those that come with the tools.
const TOOLS: [&str; 1] = ["wg"];
/// What an sshd is made of, in the versions that have it in parts and in those that do not.
const SSHD: [&str; 3] = [
    "/usr/sbin/sshd",
    "/usr/lib/openssh/sshd-session",
    "/usr/lib/openssh/sshd-auth",
];
/// A program to try in place of the one built for the tests.
const PROGRAM: &str = "NICPOLL_GUEST_PROGRAM";

/// First commands in every guest: bring the card up, with the address that QEMU's network expects.
const PRELUDE: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin 2>/dev/null
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mount -t tracefs tracing /sys/kernel/tracing
exec >/dev/ttyS0 2>&1
echo
load() { for module in $(cat /modules/$1); do [ -e /sys/module/$module ] || insmod /modules/$module.ko; done; }
load e1000
card_up() { ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; }
card_up
";

/// The files that a guest is made of. Several guests may run at a time.
#[derive(Clone)]
pub struct Guest {
    kernel: PathBuf,
    /// Its modules, by their names.
    modules: BTreeMap<String, PathBuf>,
    busybox: PathBuf,
    /// udev's program; `None` without its package.
    udev: Option<PathBuf>,
    /// Number of its processors.
    cpus: u8,
    /// The driver of its second card.
    second_driver: String,
    /// Where the second card's cable ends, here and there; otherwise it has the same network as the first.
    cable: Option<[PathBuf; 2]>,
    /// The port of this machine's loopback that leads to its port 22. It then has this machine's sshd.
    ssh_port: Option<u16>,
}

/// A guest that runs.
pub struct Booted(Child);

impl Booted {
    /// Ends it.
    pub fn end(mut self) {
        // `timeout` passes it on.
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        self.0.wait().unwrap();
    }
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
    /// Makes a guest with the usual kernel; `None` if the test is to be skipped.
    pub fn new(test: &str) -> Option<Self> {
        Self::of_kernel(test, USUAL, Need::Qemu)
    }

    /// Makes a guest with a kernel by its name, which is not there if `need` is not met.
    pub fn of_kernel(test: &str, name: &str, need: Need) -> Option<Self> {
        if !nicpoll_testkit::has(test, &[Need::Qemu, Need::Time]) {
            return None;
        }
        let guest = Self::unpacked(name);
        if guest.is_none() {
            skip(test, need, &format!("the kernel {name} is not there"));
        }
        guest
    }

    fn unpacked(name: &str) -> Option<Self> {
        let unpacked = Path::new(UNPACKED);
        let tools = either(&unpacked.join("tools"));
        let tool = |name: &str| {
            let mut places = tools.iter().map(|root| root.join("bin").join(name));
            places.find(|path| path.exists())
        };
        let root = unpacked.join(name);
        let below = |place: &Path| fs::read_dir(place).into_iter().flatten().flatten();
        let mut versions = either(&root)
            .into_iter()
            .flat_map(|root| below(&root.join("lib/modules")));
        let version = versions.find(|version| version.path().join("kernel").exists())?;
        let release = version.file_name().into_string().ok()?;
        let kernels = [
            root.join(format!("boot/vmlinuz-{release}")),
            root.join(format!("usr/lib/modules/{release}/vmlinuz")),
        ];
        Some(Guest {
            kernel: kernels.into_iter().find(|path| path.exists())?,
            modules: modules(&version.path().join("kernel")),
            busybox: tool("busybox")?,
            udev: tool("udevadm"),
            cpus: 1,
            second_driver: String::from(STAMPING_DRIVER),
            cable: None,
            ssh_port: None,
        })
    }

    /// Gives it another second card, by its driver.
    pub fn with_card(self, driver: &str) -> Self {
        let second_driver = String::from(driver);
        Guest {
            second_driver,
            ..self
        }
    }

    /// Gives it this machine's sshd, and a port of this machine's loopback that leads to it.
    pub fn with_ssh(self, port: u16) -> Self {
        let ssh_port = Some(port);
        Guest { ssh_port, ..self }
    }

    /// Joins its second card to another guest's by a cable, whose ends are files in `home`.
    pub fn joined(self, other: Guest, home: &Path) -> [Guest; 2] {
        let [here, there] = ["here", "there"].map(|end| home.join(end));
        let other = Guest {
            cable: Some([there.clone(), here.clone()]),
            ..other
        };
        let guest = Guest {
            cable: Some([here, there]),
            ..self
        };
        [guest, other]
    }

    /// Boots as [`Guest::run`] does, next to another guest at the end of the second card's cable, which runs until this one
    /// has ended.
    pub fn run_with_peer(self, script: &str, peer: &str, files: &[(&str, &str)]) -> Console {
        let home = tempfile::tempdir().unwrap();
        let folders = ["guest", "peer"].map(|name| home.path().join(name));
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        let other = self.clone().with_cpus(1);
        let [guest, other] = self.joined(other, home.path());
        let booted = other.start(&folders[1], peer, &[]);
        let console = guest.run(&folders[0], script, files);
        booted.end();
        console
    }

    /// Gives it several processors: a study takes two. Either may then get the card's interrupts.
    pub fn with_cpus(self, cpus: u8) -> Self {
        Guest { cpus, ..self }
    }

    /// Boots with these files, runs the script as the first process, and returns the console's output.
    pub fn run(&self, home: &Path, script: &str, files: &[(&str, &str)]) -> Console {
        let booted = self.start(home, script, files);
        let output = booted.0.wait_with_output().unwrap();
        Console(String::from_utf8_lossy(&output.stdout).replace('\r', ""))
    }

    /// Boots as [`Guest::run`] does, and lets it run.
    pub fn start(&self, home: &Path, script: &str, files: &[(&str, &str)]) -> Booted {
        let program = std::env::var_os(PROGRAM).map(PathBuf::from);
        let program = program.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_nicpoll")));
        let mut archive = Archive::default();
        for directory in ["bin", "proc", "sys", "dev", "var", "var/lib", "modules"] {
            archive.directory(directory);
        }
        archive.file("init", format!("{PRELUDE}{script}poweroff -f\n").as_bytes());
        for (name, text) in files {
            archive.file(name, text.as_bytes());
        }
        archive.file("bin/busybox", &fs::read(&self.busybox).unwrap());
        self.put_drivers(&mut archive);
        archive.file("bin/nicpoll", &fs::read(&program).unwrap());
        let mut needed: BTreeSet<PathBuf> = libraries(&program).into_iter().collect();
        let tools = TOOLS.map(|name| Path::new(UNPACKED).join("tools/usr/bin").join(name));
        let programs = PROGRAMS.iter().flat_map(|name| {
            let places = ["/bin", "/sbin", "/usr/sbin"].map(|place| Path::new(place).join(name));
            places.into_iter().find(|path| path.exists())
        });
        for program in programs.chain(tools).filter(|path| path.exists()) {
            let name = program.file_name().unwrap().to_string_lossy();
            archive.file(&format!("bin/{name}"), &fs::read(&program).unwrap());
            needed.extend(libraries(&program));
        }
        if let Some(udev) = &self.udev {
            // One program with two names.
            for name in ["bin/udevadm", "bin/systemd-udevd"] {
                archive.file(name, &fs::read(udev).unwrap());
            }
            needed.extend(libraries(udev));
        }
        let sshd = SSHD.map(Path::new);
        let has_sshd = |path: &&Path| self.ssh_port.is_some() && path.exists();
        for path in sshd.into_iter().filter(has_sshd) {
            archive.with_parents(path);
            needed.extend(libraries(path));
        }
        for library in needed {
            archive.with_parents(&library);
        }
        let image = home.join("initramfs");
        fs::write(&image, archive.end()).unwrap();
        let started = Command::new("timeout")
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
            .args(["-netdev", &self.first_network(), "-device", CARD])
            .args(["-netdev", &self.second_network()])
            .args(["-device", &self.second_card()])
            .args([Path::new("-kernel"), &self.kernel])
            .args([Path::new("-initrd"), &image])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        Booted(started.unwrap())
    }

    fn first_network(&self) -> String {
        let forward = self.ssh_port.map_or(String::new(), |port| {
            format!(",hostfwd=tcp:127.0.0.1:{port}-:22")
        });
        format!("user,id=net0,restrict=on{forward}")
    }

    /// Both ends of a cable need addresses of their own.
    fn second_card(&self) -> String {
        let model = match self.second_driver.as_str() {
            "virtio_net" => "virtio-net-pci",
            driver => driver,
        };
        let last = self
            .cable
            .as_ref()
            .map_or(7, |[here, there]| 7 + u8::from(here > there));
        format!("{model},netdev=net1,mac=52:54:00:12:34:5{last}")
    }

    fn second_network(&self) -> String {
        let Some([here, there]) = &self.cable else {
            return String::from("user,id=net1,restrict=on");
        };
        let ends = [("local", here), ("remote", there)];
        let ends = ends.map(|(end, path)| format!("{end}.type=unix,{end}.path={}", path.display()));
        format!("dgram,id=net1,{}", ends.join(","))
    }

    /// Puts the drivers and what they need into an archive, and for each the order in which to load them.
    fn put_drivers(&self, archive: &mut Archive) {
        let mut put = BTreeMap::new();
        for driver in DRIVERS {
            let mut order = Vec::new();
            self.add_module(driver, &mut order, &mut put);
            archive.file(&format!("modules/{driver}"), order.join(" ").as_bytes());
        }
        for (name, bytes) in put {
            archive.file(&format!("modules/{name}.ko"), &bytes);
        }
    }

    /// Adds a module to an order, after those that it says it depends on. Who is not there is built into the kernel.
    fn add_module(&self, name: &str, order: &mut Vec<String>, put: &mut BTreeMap<String, Vec<u8>>) {
        let Some(path) = self.modules.get(name) else {
            return;
        };
        if order.iter().any(|known| known == name) {
            return;
        }
        let bytes = unpacked(path);
        let tag = b"\0depends=";
        let at = bytes.windows(tag.len()).position(|bytes| bytes == tag);
        let depends = bytes[at.unwrap() + tag.len()..].split(|byte| *byte == 0);
        let depends = String::from_utf8(depends.into_iter().next().unwrap().to_vec()).unwrap();
        for other in depends.split(',').filter(|other| !other.is_empty()) {
            self.add_module(&other.replace('-', "_"), order, put);
        }
        order.push(String::from(name));
        put.insert(String::from(name), bytes);
    }
}

/// Changes what stands between two lines of a page.
pub fn rewrite_between(page: &str, bounds: [&str; 2], change: impl FnOnce(&str) -> String) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let text = fs::read_to_string(page).unwrap();
    let (head, rest) = text.split_once(bounds[0]).unwrap();
    let (old, tail) = rest.split_once(bounds[1]).unwrap();
    fs::write(
        page,
        [head, bounds[0], &change(old), bounds[1], tail].concat(),
    )
    .unwrap();
}

/// Returns the places of a root directory, old or merged (`/usr/bin` for `/bin`).
fn either(root: &Path) -> [PathBuf; 2] {
    [root.to_path_buf(), root.join("usr")]
}

/// Finds all modules below a folder, by their names.
fn modules(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(modules(&path));
        } else if let Some((name, _)) = name.split_once(".ko") {
            found.insert(name.replace('-', "_"), path);
        }
    }
    found
}

/// Returns a module, which newer packages compress.
fn unpacked(path: &Path) -> Vec<u8> {
    let program = match path.extension().and_then(|end| end.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return fs::read(path).unwrap(),
    };
    let output = Command::new(program).arg("-dc").arg(path).output().unwrap();
    assert!(output.status.success(), "{}", path.display());
    output.stdout
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
