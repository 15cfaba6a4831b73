//! Changes of a sink besides its own interface, and their restoring; and its abilities without root.

use super::{shell_at_receiver, sink};
use crate::common::prelude::*;
use crate::common::running::nicpoll_with;
use nicpoll_switch::{Control, DIRECTORY_VARIABLE};
use nicpoll_sys::schedule::{self, Policy};

/// Returns the sender's offloads, and its MTU limit.
fn senders_end(veth: &Veth) -> String {
    shell(
        veth.inside(Side::Sender),
        "ethtool -k em0; ip -d link show em0 | grep -o 'maxmtu [0-9]*'",
    )
}

#[test]
fn what_linux_changes_at_the_other_end_is_shown_and_put_back_also_after_a_kill() {
    needs!(Root, Ip, Ethtool);
    let veth = Veth::build().unwrap();
    let before = senders_end(&veth);
    for signal in [Signal::INT, Signal::KILL] {
        let (mut running, start) = sink(&veth, "em0", "polling", &[]);
        assert_ne!(senders_end(&veth), before);
        let changes = start["other_end_changes"].as_array().unwrap();
        assert!(
            changes.contains(&"em0 tx-udp-segmentation on -> off".into()),
            "{start}"
        );
        // The limits with a program depend on the kernel; only lowered ones are reported.
        let most = |change: &Value| -> Option<u32> {
            let most = change
                .as_str()?
                .strip_prefix("em0 greatest MTU 65535 -> ")?;
            most.parse().ok()
        };
        assert!(
            changes.iter().filter_map(most).all(|most| most < 65_535),
            "{start}"
        );
        if signal == Signal::INT {
            let end = running.interrupt();
            assert_eq!(end["other_end_left"], serde_json::json!([]), "{end}");
        } else {
            send_signal(&running.child, signal);
            running.child.wait().unwrap();
        }
        let began = Instant::now();
        while senders_end(&veth) != before {
            assert!(began.elapsed() < PATIENCE, "{}", senders_end(&veth));
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the kernel's thread that polls the receiver's end.
fn napi_thread(veth: &Veth) -> u32 {
    let find = |(): &mut ()| {
        let mut control = Control::new();
        let interface = control.interface("em0").unwrap();
        let napis = control.napis(interface.ifindex).unwrap();
        napis[0].thread_pid.unwrap()
    };
    veth.inside(Side::Receiver).run(find).unwrap()
}

/// Returns the guard that a process has started.
fn guard_of(parent: u32) -> Pid {
    let is_guard = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_child = status
            .lines()
            .any(|line| line == format!("PPid:\t{parent}"));
        is_child && command.ends_with(b"\0guard\0")
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let guard = names.find(|name| is_guard(name)).unwrap();
    Pid::from_raw(guard.parse().unwrap()).unwrap()
}

#[test]
fn a_napi_thread_gets_its_policy_back_by_the_next_start_when_the_guard_was_killed_too() {
    needs!(Root, Ip, Ethtool, PerNapi);
    let veth = Veth::build().unwrap();
    shell_at_receiver(
        &veth,
        "ethtool -K em0 gro on; echo 1 > /sys/class/net/em0/threaded",
    );
    let thread = napi_thread(&veth);
    schedule::set_policy(thread, Policy::Batch { nice: 3 }).unwrap();
    let of_thread = || {
        (
            schedule::policy(thread).unwrap(),
            schedule::cpus(thread).unwrap(),
        )
    };
    let before = of_thread();
    // No other process's start restores it.
    let folder = tempfile::tempdir().unwrap();
    let variables: [(&str, &Path); 1] = [(DIRECTORY_VARIABLE, folder.path())];
    let shared = ["--cpu", "0", "--kernel-cpu", "0", "--set", "user_frac=10"];
    let options = ["sink", "em0", "--json-stream", "--kernel-side", "threaded"];
    let host = veth.inside(Side::Receiver);
    let sink = nicpoll_with(host, &[&options[..], &shared].concat(), &variables);
    let (mut sink, _) = Running::of(sink);
    // The engine lends the thread its CPU for a part of each tick. It is stopped in such a part.
    let began = Instant::now();
    loop {
        send_signal(&sink.child, Signal::STOP);
        thread::sleep(Duration::from_millis(20));
        if matches!(of_thread().0, Policy::Fifo { .. }) {
            break;
        }
        send_signal(&sink.child, Signal::CONT);
        assert!(began.elapsed() < PATIENCE, "{:?}", of_thread());
        thread::sleep(Duration::from_micros(300));
    }
    kill_process(guard_of(sink.child.id()), Signal::KILL).unwrap();
    send_signal(&sink.child, Signal::KILL);
    sink.child.wait().unwrap();
    assert!(matches!(of_thread().0, Policy::Fifo { .. }));
    let next = nicpoll_with(host, &["sink", "em0", "--for", "100ms"], &variables);
    let next = next.wait_with_output().unwrap();
    assert!(next.status.success(), "{next:?}");
    assert_eq!(of_thread(), before);
}

/// An unprivileged user makes an interface in namespaces of his own, and sends through it.
const WITHOUT_ROOT: &str = r#"
nicpoll=/proc/self/fd/9
$nicpoll sink tap0 --device tap --port 9000 --json & sink=$!
until ip -o link show up | grep -q tap0; do kill -0 $sink; sleep 0.02; done
ip addr add 198.51.100.1/24 dev tap0
ip neigh add 198.51.100.2 lladdr 02:00:00:00:00:02 dev tap0
for number in 1 2 3; do echo $number > /dev/udp/198.51.100.2/9000; done
sleep 0.2
kill -INT $sink
wait $sink || [ $? = 130 ]
"#;

/// Starts a script as an unprivileged user, in namespaces of his own. The program is run by its descriptor, wherever
/// it is; udev lets every user open the device, but a machine may lack udev.
const AS_NOBODY: &str = r#"
exec 9< "$0"
mount -t tmpfs none /mnt
mknod /mnt/tun c 10 200
chmod "$2" /mnt/tun
mount --bind /mnt/tun /dev/net/tun
exec setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Urn bash -ec "$1"
"#;

fn as_nobody(script: &str, mode: &str) -> Output {
    Command::new("unshare")
        .args(["-m", "bash", "-ec", AS_NOBODY])
        .args([env!("CARGO_BIN_EXE_nicpoll"), script, mode])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn a_device_file_of_roots_own_is_named() {
    needs!(Root, UserNamespace);
    let output = as_nobody("/proc/self/fd/9 sink tap0 --device tap --for 1s", "600");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert_has(&said, "opening /dev/net/tun takes mode 666");
}

#[test]
fn a_tap_interface_needs_no_root_in_a_user_namespace() {
    needs!(Root, Ip, UserNamespace);
    let output = as_nobody(WITHOUT_ROOT, "666");
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let document = json_of(&output);
    let (start, account) = (&document["start"], &document["end"]["account"]);
    assert_eq!(account["received_packets"], 3, "{document}");
    assert_eq!(account["residual_packets"], 0, "{document}");
    assert_eq!(start["scheduling"], "fair", "{start}");
    let why = start["knobs_refused"].as_str().unwrap();
    assert!(why.starts_with("only root may use /run/nicpoll"), "{why}");
}
