//! Hosts that are reached by ssh: network namespaces, each with a real sshd(8) and folders of its own.
//!
//! Each host has a management link to the controller, a namespace of its own, and test links to its neighbours. In a host
//! `/etc`, `/run`, `/tmp`, `/var` and the like are empty file systems of its own, so that what is written there
//! can be found and ends with the host. The controller sees the machine's files; ssh(1) is there by a wrapper that knows
//! the hosts `box1`, `box2` and so on. All of it ends with the value, in a test that panics, too.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_switch::Control;
use nicpoll_sys::netns::{NetNamespace, NetnsThread};
use nicpoll_testkit::shell;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::gettid;

/// What is not done after this will not be.
const PATIENCE: Duration = Duration::from_secs(10);

/// The hosts of a pair in a study file.
pub const PAIR: &str = r#"
[hosts.sender]
ssh = "root@box1"
interface = "eth1"
[hosts.receiver]
ssh = "root@box2"
interface = "eth1"
"#;

/// The folders that each host has for itself.
const FOLDERS: [&str; 6] = ["/etc", "/root", "/run", "/tmp", "/usr/local", "/var"];

/// Files of the machine that a host has, too.
const KEPT: [&str; 4] = [
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/machine-id",
];

/// The accounts of a host: root, what sshd gives up its rights to, and a user without rights.
const ACCOUNTS: &str = "root:x:0:0:root:/root:/bin/sh\n\
                        sshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n\
                        user:x:1000:1000::/var/user:/bin/sh\n\
                        nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n";

/// Root and the user come by key only. An account with `!` would be locked.
const SHADOW: &str = "root:*:20000::::::\nuser:*:20000::::::\n";

const CONFIG: &str = "HostKey /etc/ssh/key\nAuthorizedKeysFile /etc/ssh/authorized\nPidFile none\nUsePAM no\n\
                      PasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\nPrintLastLog no\n\
                      UseDNS no\n";

/// A controller and the hosts that it reaches.
pub struct SshHosts {
    /// A thread in the controller's namespace.
    pub controller: NetnsThread<()>,
    hosts: Vec<SshHost>,
    /// What is between a pair, perhaps.
    switch: Option<NetnsThread<()>>,
    folder: tempfile::TempDir,
}

/// A host with its sshd.
pub struct SshHost {
    /// A thread of the host, with its network, `/sys` and folders.
    pub inside: NetnsThread<()>,
    name: String,
    address: Ipv4Addr,
    /// Its mount namespace, which all its processes share.
    mounts: PathBuf,
    sshd: Option<Child>,
    log: PathBuf,
}

impl SshHosts {
    /// Makes `box1` and `box2`, whose interfaces eth1 are joined: 198.18.0.1 and 198.18.0.2, 2001:2::1 and 2001:2::2.
    pub fn pair() -> Self {
        let hosts = Self::new(2);
        hosts.join([("box1", "eth1", "0", 1), ("box2", "eth1", "0", 2)]);
        hosts
    }

    /// Makes `box1` to `box3`, whose interfaces eth1 are at a switch: 198.18.0.1, 198.18.0.2 and so on. The switch is a
    /// bridge, which loses each tenth datagram to `box2`.
    pub fn switched() -> Self {
        let mut hosts = Self::new(3);
        let switch = NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap();
        shell(
            &switch,
            "ip link add switch type bridge\nip link set switch up",
        );
        for (name, number) in [("box1", 1), ("box2", 2), ("box3", 3)] {
            hosts.link_to(name, "eth1", &switch, name);
            shell(&switch, &format!("ip link set {name} master switch up"));
            hosts.address(name, "eth1", "0", number);
        }
        let rules = "nft add table bridge loss\n\
                     nft 'add chain bridge loss ports { type filter hook forward priority 0; }'\n\
                     nft add rule bridge loss ports oif box2 ip protocol udp numgen inc mod 10 0 drop";
        shell(&switch, rules);
        hosts.switch = Some(switch);
        hosts
    }

    /// Makes `box1` and `box3`, whose interfaces eth1 are joined to eth1 and eth2 of `box2`, which forwards: 198.18.1.0/24
    /// and 198.18.2.0/24, 2001:2:1::/64 and 2001:2:2::/64, where the router is number 254.
    pub fn routed() -> Self {
        let hosts = Self::new(3);
        hosts.join([("box1", "eth1", "1", 1), ("box2", "eth1", "1", 254)]);
        hosts.join([("box2", "eth2", "2", 254), ("box3", "eth1", "2", 2)]);
        let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward\n\
                       echo 1 > /proc/sys/net/ipv6/conf/all/forwarding";
        shell(&hosts.host("box2").inside, forward);
        for (name, own, others) in [("box1", 1, 2), ("box3", 2, 1)] {
            let routes = format!(
                "ip route add 198.18.{others}.0/24 via 198.18.{own}.254\n\
                 ip route add 2001:2:{others}::/64 via 2001:2:{own}::254"
            );
            shell(&hosts.host(name).inside, &routes);
        }
        hosts
    }

    /// Makes `box1` and so on, each with a link of its own: its interfaces eth1 and eth2 are the two ends.
    pub fn alone(count: u8) -> Self {
        let hosts = Self::new(count);
        for host in &hosts.hosts {
            let link = "ip link add eth1 type veth peer name eth2";
            shell(
                &host.inside,
                &format!("{link}\nip link set eth1 up\nip link set eth2 up"),
            );
        }
        hosts
    }

    fn new(count: u8) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let controller = NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap();
        shell(&controller, "ip link set lo up");
        let mut all = SshHosts {
            controller,
            hosts: Vec::new(),
            switch: None,
            folder,
        };
        all.write_key("id");
        for number in 1..=count {
            let host = all.new_host(number);
            all.hosts.push(host);
        }
        all.write_client();
        for at in 0..all.hosts.len() {
            all.hosts[at].start_sshd("");
            all.await_sshd(at);
        }
        all
    }

    /// Makes a host and its management link.
    fn new_host(&self, number: u8) -> SshHost {
        let name = format!("box{number}");
        let inside = NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap();
        self.write_key(&name);
        let read = |file: String| fs::read_to_string(self.folder.path().join(file)).unwrap();
        let files = [
            ("/etc/passwd", String::from(ACCOUNTS), 0o644),
            ("/etc/shadow", String::from(SHADOW), 0o600),
            ("/etc/ssh/key", read(name.clone()), 0o600),
            ("/etc/ssh/authorized", read(String::from("id.pub")), 0o644),
        ];
        inside.run(move |()| furnish(&files)).unwrap();
        let tid = thread_of(&inside);
        let (near, far) = (2 * number, 2 * number + 1);
        shell(
            &self.controller,
            &format!(
                "ip link add {name} type veth peer name eth0 netns {tid}\n\
                 ip addr add 192.0.2.{near}/31 dev {name}\n\
                 ip link set {name} up"
            ),
        );
        shell(
            &inside,
            &format!(
                "ip link set lo up\nip addr add 192.0.2.{far}/31 dev eth0\nip link set eth0 up"
            ),
        );
        let mounts = inside.run(|()| fs::read_link("/proc/thread-self/ns/mnt"));
        SshHost {
            mounts: mounts.unwrap().unwrap(),
            inside,
            address: Ipv4Addr::new(192, 0, 2, far),
            sshd: None,
            log: self.folder.path().join(format!("{name}.log")),
            name,
        }
    }

    /// Joins the interfaces of two hosts, each with its name, interface, network and number.
    fn join(&self, ends: [(&str, &str, &str, u8); 2]) {
        let [(near, own, ..), (far, peer, ..)] = ends;
        self.link_to(near, own, &self.host(far).inside, peer);
        for (name, interface, network, number) in ends {
            self.address(name, interface, network, number);
        }
    }

    /// Links an interface of a host to one of another namespace.
    fn link_to(&self, name: &str, own: &str, other: &NetnsThread<()>, peer: &str) {
        let tid = thread_of(other);
        let link = format!("ip link add {own} type veth peer name {peer} netns {tid}");
        shell(&self.host(name).inside, &link);
    }

    /// Gives a host's interface its addresses, and brings it up.
    fn address(&self, name: &str, interface: &str, network: &str, number: u8) {
        let lines = format!(
            "echo 0 > /proc/sys/net/ipv6/conf/{interface}/accept_dad\n\
             ip addr add 198.18.{network}.{number}/24 dev {interface}\n\
             ip link set {interface} up\n\
             ip addr add 2001:2:{network}::{number}/64 dev {interface} nodad"
        );
        shell(&self.host(name).inside, &lines);
    }

    /// A host by its name.
    pub fn host(&self, name: &str) -> &SshHost {
        &self.hosts[self.index(name)]
    }

    /// A host's place in the order of their names.
    pub fn index(&self, name: &str) -> usize {
        let found = self.hosts.iter().position(|host| host.name == name);
        found.unwrap_or_else(|| panic!("there is no host {name}"))
    }

    /// The hosts, in the order of their names.
    pub fn all(&self) -> &[SshHost] {
        &self.hosts
    }

    /// The controller's folder for temporary files. What the hosts need is elsewhere.
    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// Gives a command of the controller the wrapped ssh(1) and its temporary folder.
    pub fn equip(&self, command: &mut Command) {
        let mut folders = vec![self.folder.path().join("bin")];
        folders.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        let path: OsString = std::env::join_paths(folders).unwrap();
        command.env("PATH", path).env("TMPDIR", self.temporary());
        for name in ["SSH_AUTH_SOCK", "SSH_CONNECTION", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
    }

    /// Runs lines of a shell at a host, as `ssh NAME` does, and returns what they print.
    pub fn ssh(&self, name: &str, lines: &str) -> String {
        let mut command = Command::new(self.folder.path().join("bin/ssh"));
        command.args([name, lines]).stdin(Stdio::null());
        let output = self.controller.run(move |()| command.output().unwrap());
        let output = output.unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {lines}\n{complaints}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Takes down a host's management link at the controller's end, or brings it up.
    pub fn set_link(&self, name: &str, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        shell(&self.controller, &format!("ip link set {name} {state}"));
    }

    /// Kills a host's sshd and the processes of its sessions, but not what they have started.
    pub fn kill_sshd(&mut self, name: &str) {
        let at = self.index(name);
        self.hosts[at].kill_sshd();
    }

    /// Kills a host's sshd as [`SshHosts::kill_sshd`] does, and starts another with further lines in its configuration.
    pub fn restart_sshd(&mut self, name: &str, lines: &str) {
        self.kill_sshd(name);
        let at = self.index(name);
        self.hosts[at].start_sshd(lines);
        self.await_sshd(at);
    }

    /// Gives each host the program in PATH.
    pub fn install(&self, program: &Path) {
        for host in &self.hosts {
            let program = program.to_owned();
            let copy = move |_: &mut ()| {
                fs::create_dir("/usr/local/bin")?;
                fs::copy(program, "/usr/local/bin/nicpoll")
            };
            host.inside.run(copy).unwrap().unwrap();
        }
    }

    /// Has the controller know a host by another key than the host has.
    pub fn forge_known_key(&self, name: &str) {
        let keys = self.folder.path().join("known_hosts");
        let known = fs::read_to_string(&keys).unwrap();
        let own = fs::read_to_string(self.folder.path().join("id.pub")).unwrap();
        let forged = known.lines().map(|line| match line.split_once(' ') {
            Some((host, _)) if host == name => format!("{name} {own}"),
            _ => format!("{line}\n"),
        });
        fs::write(keys, forged.collect::<String>()).unwrap();
    }

    /// Waits until sshd takes connections.
    fn await_sshd(&self, at: usize) {
        let host = &self.hosts[at];
        let address = SocketAddr::from((host.address, 22));
        let began = Instant::now();
        let connect = move |_: &mut ()| TcpStream::connect_timeout(&address, PATIENCE).is_ok();
        while !self.controller.run(connect).unwrap() {
            let log = fs::read_to_string(&host.log).unwrap_or_default();
            assert!(began.elapsed() < PATIENCE, "sshd does not start: {log}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn write_key(&self, name: &str) {
        let file = self.folder.path().join(name);
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]);
        assert!(command.arg(file).status().unwrap().success());
    }

    /// Writes what the controller's ssh(1) reads, and its wrapper.
    fn write_client(&self) {
        let folder = self.folder.path();
        let (mut config, mut known) = (String::new(), String::new());
        for SshHost { name, address, .. } in &self.hosts {
            config += &format!("Host {name}\n  HostName {address}\n  HostKeyAlias {name}\n");
            let key = fs::read_to_string(folder.join(format!("{name}.pub"))).unwrap();
            known += &format!("{name} {key}");
        }
        let path = folder.display();
        config += &format!(
            "Host *\n  User root\n  IdentityFile {path}/id\n  IdentitiesOnly yes\n  GlobalKnownHostsFile none\n  \
             UserKnownHostsFile {path}/known_hosts\n"
        );
        fs::write(folder.join("known_hosts"), known).unwrap();
        fs::write(folder.join("ssh_config"), config).unwrap();
        for name in ["bin", "tmp"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        let ssh = program("ssh");
        let script = format!(
            "#!/bin/sh\nexec {} -F {path}/ssh_config \"$@\"\n",
            ssh.display()
        );
        write(&folder.join("bin/ssh"), &script, 0o755);
    }
}

impl SshHost {
    /// Starts sshd with further lines in its configuration, which come first.
    fn start_sshd(&mut self, lines: &str) {
        let config = format!("{lines}\nListenAddress {}\n{CONFIG}", self.address);
        let log = File::options().create(true).append(true).open(&self.log);
        let mut command = Command::new("setpriv");
        // It ends with the thread that has started it.
        command.args(["--pdeathsig", "KILL", "unshare", "--uts", "sh", "-c"]);
        let named = "echo \"$0\" > /proc/sys/kernel/hostname; exec \"$@\"";
        command.args([named, &self.name]);
        command.arg(program("sshd")).args(["-D", "-e"]);
        command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(log.unwrap());
        let started = self.inside.run(move |()| {
            write(Path::new("/etc/ssh/sshd_config"), &config, 0o600);
            command.spawn().unwrap()
        });
        self.sshd = Some(started.unwrap());
    }

    fn kill_sshd(&mut self) {
        self.kill(|command| command.starts_with("sshd") || command.contains("/sshd"));
        if let Some(mut sshd) = self.sshd.take() {
            sshd.wait().unwrap();
        }
    }

    /// Kills the processes whose command line is meant, and returns how many there were.
    pub fn kill(&self, is_meant: impl Fn(&str) -> bool) -> usize {
        let all = self.processes().into_iter();
        let meant: Vec<u32> = all
            .filter(|(_, command)| is_meant(command))
            .map(|(pid, _)| pid)
            .collect();
        for pid in &meant {
            let pid = Pid::from_raw(*pid as i32).unwrap();
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        meant.len()
    }

    /// The processes of the host with their command lines, sshd's among them.
    pub fn processes(&self) -> BTreeMap<u32, String> {
        let space = |at: &str| fs::read_link(format!("/proc/{at}/ns/mnt"));
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let here =
            pids.filter(|pid| space(&pid.to_string()).is_ok_and(|other| other == self.mounts));
        here.map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (pid, String::from(line.trim_end()))
        })
        .collect()
    }

    /// The files and folders that are in the host's own folders.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        self.inside.run(|()| files_below(&FOLDERS)).unwrap()
    }

    /// What can be set at the host's test interfaces, by name: attributes, features, NAPI instances, links with their queueing
    /// disciplines and programs, addresses, routes and permanent neighbours.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut all = self.inside.run(|()| interface_settings()).unwrap();
        for lines in [
            "ip -o -d link | sed /eth0/d",
            "ip -o addr show scope global",
            "(ip route; ip -6 route) | sed /eth0/d",
            "ip neigh show nud permanent",
        ] {
            all.insert(String::from(lines), shell(&self.inside, lines));
        }
        all
    }
}

/// What a host is like.
#[derive(Clone, Debug, PartialEq)]
pub struct HostState {
    settings: BTreeMap<String, String>,
    files: BTreeSet<PathBuf>,
    /// Command lines. Processes of sshd go with their connections.
    programs: Vec<String>,
}

/// What a host has that it had not, or the other way round.
#[derive(Debug, Default, PartialEq)]
pub struct Left {
    pub settings: Vec<String>,
    pub files: Vec<PathBuf>,
    pub programs: Vec<String>,
}

impl HostState {
    pub fn of(host: &SshHost) -> Self {
        let programs = host.processes().into_values();
        HostState {
            settings: host.settings(),
            files: host.files(),
            programs: programs.filter(|line| !line.contains("sshd")).collect(),
        }
    }

    /// What differs from how the host was before.
    pub fn since(&self, before: &HostState) -> Left {
        let names = self.settings.keys().chain(before.settings.keys());
        let names: BTreeSet<&String> = names.collect();
        let settings = names.into_iter().filter_map(|name| {
            let (was, is) = (before.settings.get(name), self.settings.get(name));
            (was != is).then(|| format!("{name}: {was:?} -> {is:?}"))
        });
        let files = self.files.symmetric_difference(&before.files);
        let programs = self.programs.iter();
        Left {
            settings: settings.collect(),
            files: files.cloned().collect(),
            programs: programs
                .filter(|line| !before.programs.contains(line))
                .cloned()
                .collect(),
        }
    }

    /// Waits until a host is as it was before, at most until `deadline`. Returns what differs then.
    pub fn await_again(&self, host: &SshHost, deadline: Instant) -> Left {
        loop {
            let left = HostState::of(host).since(self);
            if left == Left::default() || Instant::now() > deadline {
                return left;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for SshHost {
    fn drop(&mut self) {
        let began = Instant::now();
        // A process that is being killed may have started another.
        while self.kill(|_| true) > 0 && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(2));
        }
        if let Some(mut sshd) = self.sshd.take() {
            let _ = sshd.wait();
        }
        if thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            nicpoll_sys::tell!("sshd of {}:\n{log}", self.name);
        }
    }
}

/// Gives the calling thread's mount namespace folders of its own, with these files, each with its mode.
fn furnish(files: &[(&str, String, u32)]) {
    let kept = KEPT.map(|file| (file, fs::read(file)));
    for folder in FOLDERS {
        mount("tmpfs", folder, "tmpfs", MountFlags::NOSUID, c"mode=755").unwrap();
    }
    for folder in ["/etc/ssh", "/var/user", "/run/sshd", "/var/lib", "/var/tmp"] {
        fs::create_dir(folder).unwrap();
    }
    for folder in ["/tmp", "/var/tmp"] {
        fs::set_permissions(folder, Permissions::from_mode(0o1777)).unwrap();
    }
    std::os::unix::fs::chown("/var/user", Some(1000), Some(1000)).unwrap();
    for (file, content) in kept {
        if let Ok(content) = content {
            fs::write(file, content).unwrap();
        }
    }
    for (file, text, mode) in files {
        write(Path::new(file), text, *mode);
    }
}

fn write(file: &Path, text: &str, mode: u32) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

fn thread_of(host: &NetnsThread<()>) -> i32 {
    host.run(|()| gettid().as_raw_nonzero().get()).unwrap()
}

fn files_below(folders: &[&str]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}

/// The attributes, features and NAPI instances of the caller's interfaces.
fn interface_settings() -> BTreeMap<String, String> {
    let mut control = Control::new();
    let mut all = BTreeMap::new();
    for interface in fs::read_dir("/sys/class/net").unwrap().flatten() {
        let name = interface.file_name().into_string().unwrap();
        if name == "eth0" {
            continue;
        }
        for file in fs::read_dir(interface.path()).unwrap().flatten() {
            let attribute = file.file_name().into_string().unwrap();
            let is_history = attribute.contains("carrier") || attribute.ends_with("_count");
            // An error: it does not apply to the interface.
            if let (false, Ok(value)) = (is_history, fs::read_to_string(file.path())) {
                all.insert(format!("{name}: {attribute}"), value);
            }
        }
        let ifindex = control.interface(&name).unwrap().ifindex;
        let features = control.features(ifindex).unwrap().wanted;
        all.insert(format!("{name}: features"), format!("{features:?}"));
        for (index, mut napi) in control.napis(ifindex).unwrap().into_iter().enumerate() {
            // Numbers that the kernel assigns again.
            (napi.id, napi.thread_pid) = (0, None);
            all.insert(format!("{name}: NAPI {index}"), format!("{napi:?}"));
        }
    }
    all
}

/// Where a program is: in PATH, or where Debian keeps the administrator's programs.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let folders = std::env::split_paths(&path).chain(extra);
    let mut files = folders.map(|folder| folder.join(name));
    files.find(|file| file.is_file()).unwrap()
}
