//! Two guests with different kernels, a cable between their cards and ssh over other cards, are two machines: a published
//! experiment runs between them.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use nicpoll_testkit::needs;

use crate::common::prelude::*;
use crate::guest::{Booted, Guest, rewrite_between};
use crate::is_asked_for;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hosts.md");
/// The lines of the page between which the study stands.
const BOUNDS: [&str; 2] = ["<!-- guests: begin -->\n", "<!-- guests: end -->"];
/// Time for a guest to boot and start its sshd, next to others.
const UP_WITHIN: Duration = Duration::from_secs(240);

/// The sender and the receiver: their roles, kernels, ports of this machine's loopback, and addresses.
const HOSTS: [(&str, &str, u16, &str); 2] = [
    ("sender", "6.1", 22061, "198.18.0.1"),
    ("receiver", "newest", 22073, "198.18.0.2"),
];

const SSHD_CONFIG: &str = "HostKey /host_key
AuthorizedKeysFile /authorized_keys
PermitRootLogin yes
StrictModes no
PasswordAuthentication no
UsePAM no
PidFile none
";

/// Keys for ssh, and a wrapper that knows where the guests are.
fn equipped(home: &Path) -> PathBuf {
    for name in ["host_key", "id"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
        assert!(keygen.arg(home.join(name)).status().unwrap().success());
    }
    let mut config = String::new();
    for (role, _, port, _) in HOSTS {
        config += &format!("Host {role}-box\n HostName 127.0.0.1\n Port {port}\n");
    }
    config += &format!(
        "Host *\n User root\n IdentityFile {}\n IdentitiesOnly yes\n StrictHostKeyChecking no\n \
         UserKnownHostsFile {}\n LogLevel ERROR\n",
        home.join("id").display(),
        home.join("known").display()
    );
    fs::write(home.join("config"), config).unwrap();
    let bin = home.join("bin");
    fs::create_dir(&bin).unwrap();
    let wrapper = format!(
        "#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n",
        home.join("config").display()
    );
    let ssh = bin.join("ssh");
    fs::write(&ssh, wrapper).unwrap();
    fs::set_permissions(&ssh, Permissions::from_mode(0o755)).unwrap();
    bin
}

fn booted(guest: &Guest, address: &str, home: &Path) -> Booted {
    let text = |name: &str| fs::read_to_string(home.parent().unwrap().join(name)).unwrap();
    let (key, authorized) = (text("host_key"), text("id.pub"));
    let script = format!(
        "load e1000e; ip link set lo up; ip link set eth1 up; ip addr add {address}/24 dev eth1
mkdir -p /etc /root /tmp /run/sshd /dev/pts /usr/bin; chmod 600 /host_key
echo root:*:0:0::/root:/bin/sh >/etc/passwd; echo sshd:*:100:100::/run/sshd:/bin/false >>/etc/passwd
/usr/sbin/sshd -D -e -f /sshd_config\n"
    );
    let files = [
        ("host_key", key.as_str()),
        ("authorized_keys", &authorized),
        ("sshd_config", SSHD_CONFIG),
    ];
    guest.start(home, &script, &files)
}

/// Waits until a guest takes commands.
fn await_ssh(bin: &Path, role: &str) {
    let begin = Instant::now();
    let reached = || {
        let mut ssh = Command::new(bin.join("ssh"));
        ssh.args(["-o", "ConnectTimeout=10", &format!("{role}-box"), "true"]);
        ssh.output().unwrap().status.success()
    };
    while !reached() {
        assert!(begin.elapsed() < UP_WITHIN, "the {role} does not come up");
        thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn the_experiment_of_2006_runs_between_linux_6_1_and_the_newest() {
    let test = test_name!();
    needs!(Root, Sshd, Kernels);
    if !is_asked_for(test) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let bin = equipped(home.path());
    let guests = HOSTS.map(|(_, kernel, port, _)| {
        let guest = Guest::of_kernel(test, kernel, Need::Kernels)?;
        Some(guest.with_cpus(2).with_ssh(port))
    });
    let [Some(sender), Some(receiver)] = guests else {
        return;
    };
    let mut hosts = String::new();
    let guests = sender.joined(receiver, home.path());
    let running: Vec<Booted> = guests
        .iter()
        .zip(HOSTS)
        .map(|(guest, (role, _, _, address))| {
            hosts += &format!("[hosts.{role}]\nssh = \"{role}-box\"\ninterface = \"eth1\"\n");
            let folder = home.path().join(role);
            fs::create_dir(&folder).unwrap();
            booted(guest, address, &folder)
        })
        .collect();
    let file = home.path().join("hosts.toml");
    fs::write(&file, hosts).unwrap();
    for (role, ..) in HOSTS {
        await_ssh(&bin, role);
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let study = |words: &[&str]| {
        let mut command = Command::new(NICPOLL);
        command.args(["study", "run", "servers-2006", "--store"]);
        command.arg(home.path().join("studies.db"));
        command.arg("--hosts").arg(&file).args(words);
        command.env("PATH", &path).output().unwrap()
    };
    let output = study(&[
        "--workload",
        "tcp,udp500m",
        "--time",
        "6m",
        "--seed",
        "2006",
        "--json",
    ]);
    for guest in running {
        guest.end();
    }
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_between_two_kernels(&document);
    show_on_page(home.path());
}

/// Each setting has figures, and each trial both machines' CPU states.
fn assert_between_two_kernels(document: &Value) {
    let kernels = document["lab"]["hosts"].as_array().unwrap().iter();
    let kernels: Vec<&str> = kernels
        .map(|host| host["machine"]["kernel"].as_str().unwrap())
        .collect();
    assert!(kernels[0].starts_with("Linux 6.1."), "{kernels:?}");
    assert_ne!(kernels[0], kernels[1]);
    let trials = document["trials"].as_array().unwrap();
    let with_figures = || trials.iter().filter(|trial| !trial["figures"].is_null());
    for setting in ["interrupt", "polling"] {
        let of_setting = with_figures().filter(|trial| trial["setting"] == setting);
        assert!(of_setting.count() > 1, "{setting}: {document:#}");
    }
    for trial in with_figures() {
        let hosts = trial["figures"]["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), 2);
        assert!(hosts.iter().all(|host| host["cores"][0].is_object()));
    }
    assert!(!document["comparisons"].as_array().unwrap().is_empty());
}

/// Puts the study's first screen and its CPU states on the page.
fn show_on_page(home: &Path) {
    let shown = |words: &[&str]| {
        let mut show = Command::new(NICPOLL);
        show.args(["study", "show", "1", "--store"]);
        show.arg(home.join("studies.db")).args(words);
        stdout(&show.output().unwrap())
    };
    let mut text = shown(&["--brief"]);
    let whole = shown(&[]);
    let lines: Vec<&str> = whole.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let is_head = line.contains("median of trials") || line.contains("all CPUs:");
        let rows = if line.contains("all CPUs:") { 5 } else { 1 };
        if is_head {
            text += &(lines[at..at + rows].join("\n") + "\n");
        }
    }
    print!("{text}");
    rewrite_between(PAGE, BOUNDS, |_| format!("```text\n{text}```\n"));
}
