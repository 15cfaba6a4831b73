//! `nicpoll sink` at one end of a veth: every packet is received or counted as lost, under every discipline, and the
//! interface is restored afterwards.

mod blast;
#[path = "../common/mod.rs"]
mod common;
mod gone;
mod left;

use crate::common::prelude::*;
use crate::common::running::ended;
use nicpoll_sys::schedule::cpu_ns_of;

const PORT: &str = "9000";
const RECEIVER: &str = "198.18.0.2";
/// Fewer than the socket's memory and the veth's ring hold.
const BURST: u64 = 50;

/// Runs a command at the receiver until it ends.
fn at_receiver(veth: &Veth, args: &[&str]) -> Output {
    ended(veth.inside(Side::Receiver), args)
}

/// Runs a shell's lines at the receiver.
fn shell_at_receiver(veth: &Veth, lines: &str) -> String {
    shell(veth.inside(Side::Receiver), lines)
}

fn send(veth: &Veth, port: u16, datagrams: u64) {
    let send = move |(): &mut ()| {
        let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
        for number in 0..datagrams {
            // Fails after an earlier datagram to the other port, where nobody listens.
            let _ = socket.send_to(&[0; 64], (RECEIVER, port));
            if number % BURST == BURST - 1 {
                thread::sleep(Duration::from_millis(1));
            }
        }
    };
    veth.inside(Side::Sender).run(send).unwrap();
}

/// Starts a sink at an interface of the receiver; returns its start event.
fn sink(veth: &Veth, interface: &str, discipline: &str, more: &[&str]) -> (Running, Value) {
    let args = [
        "sink",
        interface,
        "--port",
        PORT,
        "--discipline",
        discipline,
    ];
    Running::start(veth.inside(Side::Receiver), &[&args[..], more].concat())
}

#[test]
fn every_discipline_accounts_for_every_packet_and_leaves_the_interface_as_it_was() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    for discipline in ["polling", "interrupt", "busy-poll", "adaptive"] {
        let (mut running, start) = sink(&veth, "em0", discipline, &[]);
        assert_eq!(start["discipline"], discipline);
        assert_eq!(start["udp_ports"], serde_json::json!([9000]));
        send(&veth, 9000, 2000);
        send(&veth, 9001, 3);
        running.await_counted("received_packets", 2000);
        let end = running.end_closed();
        let account = &end["account"];
        assert_eq!(account["taken_packets"], 2000, "{end}");
        assert_eq!(account["received_packets"], 2000, "{end}");
        assert!(account["passed_packets"].as_u64().unwrap() >= 3, "{end}");
        // 106 bytes: Ethernet, IPv4, UDP, and what was sent.
        assert_eq!(end["totals"]["received_bytes"], 2000 * 106, "{end}");
        // At a veth the kernel gives sockets no NAPI to poll.
        let asks_kernel = discipline == "busy-poll";
        let outcome = asks_kernel.then_some("no-napi");
        assert_eq!(end["kernel_busy_poll"].as_str(), outcome, "{end}");
        let is_woken = end["totals"]["wake_up_events"].as_u64().unwrap() > 0;
        // Under polling the first packet after a lull does.
        if discipline != "polling" {
            assert_eq!(is_woken, discipline != "busy-poll", "{end}");
        }
        let link = shell_at_receiver(&veth, "ip link show em0");
        assert!(!link.contains("xdp"), "{link}");
    }
}

#[test]
fn the_cpu_time_that_is_told_is_that_of_the_process() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    for knob in ["idle_poll=0", "idle_poll=1"] {
        let (mut running, _) = sink(&veth, "em0", "polling", &["--set", knob]);
        let cpu_ns = |running: &Running| cpu_ns_of(running.child.id()).unwrap();
        running.await_interval();
        let before = cpu_ns(&running);
        let intervals = (0..20).map(|_| running.await_interval());
        let told: u64 = intervals.map(|it| it["cpu_ns"].as_u64().unwrap()).sum();
        let used = cpu_ns(&running) - before;
        assert!(told.abs_diff(used) < used / 4, "{knob}: {told} of {used}");
        running.end_closed();
    }
}

/// Sends these payloads to the port, all from one socket.
fn send_payloads(veth: &Veth, payloads: Vec<Vec<u8>>) {
    let send = move |(): &mut ()| {
        let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
        for payload in &payloads {
            let _ = socket.send_to(payload, (RECEIVER, 9000));
        }
    };
    veth.inside(Side::Sender).run(send).unwrap();
}

#[test]
fn numbers_tell_what_was_lost_doubled_and_late_and_marks_how_long_it_took() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    // 5 does not come, 3 comes twice, 7 after 8.
    let numbers = [1u32, 2, 3, 3, 4, 6, 8, 7];
    for (check, device) in [("netrate", "af-packet"), ("mark", "af-xdp")] {
        let options = ["--check", check, "--device", device];
        let (mut running, start) = sink(&veth, "em0", "polling", &options);
        assert_eq!(
            (&start["check"], &start["device"]),
            (&check.into(), &device.into())
        );
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let payload = |number: &u32| {
            let mut payload = [number.to_be_bytes(), [0; 4]].concat();
            payload.extend(now_ns.to_be_bytes());
            payload.extend([0; 2]);
            payload
        };
        send_payloads(&veth, numbers.iter().map(payload).collect());
        running.await_counted("received_packets", 8);
        let end = running.end_closed();
        let found = &end["check"];
        for (name, packets) in [
            ("numbered_packets", 8),
            ("lost_packets", 1),
            ("duplicate_packets", 1),
            ("late_packets", 1),
            ("unnumbered_packets", 0),
        ] {
            assert_eq!(found[name], packets, "{name}: {end}");
        }
        let samples = &found["latency"]["samples"];
        let with_times = check == "mark";
        assert_eq!(samples.as_u64(), with_times.then_some(8), "{end}");
    }
}

#[test]
fn the_fastest_device_that_works_is_taken_and_says_why_not_another() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    let attach = concat!(
        "ip link set dev em0 xdpdrv obj ",
        env!("CARGO_MANIFEST_DIR"),
        "/../observe/bpf/xdp_pass.bpf.o sec xdp"
    );
    shell_at_receiver(&veth, attach);
    let (mut running, start) = sink(&veth, "em0", "interrupt", &[]);
    assert_eq!(start["device"], "af-packet");
    assert_eq!(start["refused_devices"][0]["device"], "af-xdp");
    let why = start["refused_devices"][0]["why"].as_str().unwrap();
    assert_has(why, "has an XDP program of another program");
    send(&veth, 9000, 500);
    running.await_counted("received_packets", 500);
    let end = running.end_closed();
    assert_eq!(end["account"]["taken_packets"], 500, "{end}");
    assert_eq!(end["account"]["passed_packets"], Value::Null);
    assert!(shell_at_receiver(&veth, "ip link show em0").contains("xdp"));
}

#[test]
fn a_sink_can_be_the_other_end_of_an_interface() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    let (mut running, start) = sink(&veth, "tap9", "polling", &["--device", "tap"]);
    assert_eq!(
        (&start["device"], &start["program_mode"]),
        (&"tap".into(), &Value::Null)
    );
    shell_at_receiver(
        &veth,
        "ip addr add 198.51.100.1/24 dev tap9; \
         ip neigh add 198.51.100.2 lladdr 02:00:00:00:00:02 dev tap9",
    );
    let send = |(): &mut ()| {
        let socket = UdpSocket::bind("198.51.100.1:0").unwrap();
        for port in [9000, 9001, 9000] {
            socket.send_to(&[0; 64], ("198.51.100.2", port)).unwrap();
        }
    };
    veth.inside(Side::Receiver).run(send).unwrap();
    running.await_counted("received_packets", 2);
    let end = running.end_closed();
    let account = &end["account"];
    assert_eq!(account["received_packets"], 2, "{account}");
    assert!(account["passed_packets"].as_u64().unwrap() > 0, "{account}");
    assert!(!shell_at_receiver(&veth, "ip -o link").contains("tap9"));
}

#[test]
fn a_sink_that_is_killed_leaves_no_program_behind() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    let (mut running, _) = sink(&veth, "em0", "polling", &[]);
    assert!(shell_at_receiver(&veth, "ip link show em0").contains("xdp"));
    send_signal(&running.child, Signal::KILL);
    running.child.wait().unwrap();
    let began = Instant::now();
    while shell_at_receiver(&veth, "ip link show em0").contains("xdp") {
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
}

/// Requests of `nicpoll sysctl`: exit code, arguments, and the output or words of the error.
const SYSCTL: &str = "
    0 | kern.polling.user_frac | kern.polling.user_frac: 50
    0 | user_frac=30 | kern.polling.user_frac: 50 -> 30
    0 | -n user_frac handlers | 30 1
    0 | kern.polling.cpu0.user_frac=20 | kern.polling.cpu0.user_frac: 30 -> 20
    0 | -n user_frac | 20
    1 | user_frac=100 | EINVAL: 0 to 99 are possible
    1 | burst=3 | EPERM: it can only be read
    1 | kern.polling.enable=1 | 'nicpoll set IF polling'
    1 | speed | unknown oid 'kern.polling.speed'
    1 | cpu7.burst | the engine runs on CPU 0
";

#[test]
fn knobs_of_a_running_sink_are_read_and_written_of_all_cpus_and_of_one() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    let (running, start) = sink(&veth, "em0", "polling", &["--cpu", "0"]);
    assert_eq!(start["cpus"], serde_json::json!([0]));
    let pid = running.child.id().to_string();
    let sysctl = |line: &str| {
        let args = ["sysctl", "--engine", &pid];
        nicpoll([&args[..], &words(line)].concat())
            .output()
            .unwrap()
    };
    for [code, line, wanted] in cases(SYSCTL) {
        let output = sysctl(line);
        assert_code(&output, code.parse().unwrap());
        let printed = words(&stdout(&output)).join(" ");
        match code {
            "0" => assert_eq!(
                (printed.as_str(), output.stderr.len()),
                (wanted, 0),
                "{line}"
            ),
            _ => {
                assert_has(stderr(&output), wanted);
                assert_eq!(printed, "", "{line}");
            }
        }
    }
    assert_eq!(stdout(&sysctl("-a")).lines().count(), 15);
    let end = running.interrupt();
    let mut knobs = end["polling"].as_array().unwrap().iter();
    let user_frac = knobs.find(|knob| knob["name"] == "user_frac");
    assert_eq!(user_frac.unwrap()["value"], 20);
    assert_eq!(end["polling_by_cpu"][0]["cpu"], 0, "{end}");
    let output = nicpoll(["sysctl", "--engine", &pid]).output().unwrap();
    assert_code(&output, 1);
    assert_has(stderr(&output), "no such engine runs");
}

/// Returns the settings of the receiver's kernel side.
fn kernel_side(veth: &Veth) -> String {
    shell_at_receiver(
        veth,
        "cat /sys/class/net/em0/threaded /sys/class/net/em0/napi_defer_hard_irqs \
         /sys/class/net/em0/gro_flush_timeout; ethtool -k em0 | grep ^generic-receive",
    )
}

#[test]
fn the_kernels_side_is_changed_while_a_sink_runs_and_put_back_also_after_a_kill() {
    needs!(Time, Root, Ip, Ethtool, PerNapi);
    let veth = Veth::build().unwrap();
    let before = kernel_side(&veth);
    for (side, shown) in [("threaded", "1\n"), ("polling", "0\n2147483647\n200000\n")] {
        for signal in [Signal::INT, Signal::KILL] {
            let (mut running, start) = sink(&veth, "em0", "polling", &["--kernel-side", side]);
            assert_eq!(start["kernel_side"]["name"], side);
            let now = kernel_side(&veth);
            assert!(
                now.starts_with(shown) && now.contains(": on"),
                "{side}: {now}"
            );
            // The pair itself may lose some while its features change.
            let (began, mut received) = (Instant::now(), 0);
            while received < 500 {
                assert!(began.elapsed() < PATIENCE, "{side}: {received}");
                send(&veth, 9000, BURST);
                received += running.await_interval()["received_packets"]
                    .as_u64()
                    .unwrap();
            }
            if signal == Signal::INT {
                running.end_closed();
                assert_eq!(kernel_side(&veth), before, "{side}");
                continue;
            }
            send_signal(&running.child, signal);
            running.child.wait().unwrap();
            let began = Instant::now();
            while kernel_side(&veth) != before {
                assert!(began.elapsed() < PATIENCE, "{}", kernel_side(&veth));
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

#[test]
fn where_the_kernel_polls_sysctl_shows_what_stands_for_the_knobs() {
    needs!(Root, Ip, Ethtool);
    // An interface of the same name, in another namespace.
    let elsewhere = Veth::build().unwrap();
    let (_engine, _) = sink(&elsewhere, "em0", "polling", &[]);
    let veth = Veth::build().unwrap();
    shell_at_receiver(
        &veth,
        "ethtool -K em0 gro on; echo 500000 > /sys/class/net/em0/gro_flush_timeout; \
         echo 2147483647 > /sys/class/net/em0/napi_defer_hard_irqs",
    );
    let output = at_receiver(
        &veth,
        &["sysctl", "--engine", "em0", "kern.polling.handlers"],
    );
    let shown = stdout(&output);
    assert_eq!(shown, "kern.polling.handlers: 1\n");
    assert_refused(
        "
        1 | sysctl --engine em0 user_frac=9 | nicpoll set em0 polling
        1 | sysctl --engine em0 kern.polling.enable=1 | 'nicpoll set IF polling'
        1 | sysctl --engine em0 speed | speed
        ",
        |line| at_receiver(&veth, &words(line)),
    );
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    assert_refused(
        "
        1 | sink em9 | there is no interface 'em9'
        2 | sink em0 --set user_frac=100 | kern.polling.user_frac=100: EINVAL: 0 to 99
        2 | sink em0 --set burst=9 | kern.polling.burst=9: EPERM: it can only be read
        2 | sink em0 --set speed=9 | unknown oid 'kern.polling.speed'
        2 | sink em0 --hz 50 | from 100 to 10000
        2 | sink em0 --discipline poll | busy-poll
        2 | sink em0 --kernel-cpu 0 | '--kernel-side threaded'
        1 | sink lo --device af-xdp | MTU
        1 | sink em0 --device tap | cannot be a TAP interface
        2 | sink em0 --device xdp | auto, af-xdp, af-packet, tap
        2 | sink em0 --check ping | netrate, iperf, mark
        ",
        |line| at_receiver(&veth, &words(line)),
    );
    let link = shell_at_receiver(&veth, "ip link show em0");
    assert!(!link.contains("xdp"), "{link}");
}

#[test]
fn the_document_is_as_its_schema_says_and_the_text_closes_the_account() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    let options = ["sink", "em0", "--for", "300ms", "--interval", "100ms"];
    let json = at_receiver(&veth, &[&options[..], &["--json"]].concat());
    let document = json_of(&json);
    crate::common::schema::assert_described(&document, "sink");
    assert_eq!(document["start"]["udp_ports"], serde_json::json!([9, 5001]));
    let ticks = |part: &Value| part["ticks"].as_u64().unwrap();
    let intervals = document["intervals"].as_array().unwrap();
    let in_intervals: u64 = intervals.iter().map(ticks).sum();
    assert!(in_intervals > 0 && in_intervals <= ticks(&document["end"]));
    let names = |part: &Value| {
        let variables = part["polling"].as_array().unwrap();
        let names = variables.iter().map(|variable| variable["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&intervals[0]), names(&document["end"]));
    let text = String::from_utf8(at_receiver(&veth, &options).stdout).unwrap();
    assert_has_all(
        &text,
        "em0: taking UDP to port 9, 5001 | User-side polling only | 0 unaccounted for | \
         kern.polling.user_frac: 50",
    );
}
