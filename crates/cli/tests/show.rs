//! `nicpoll show` on a real kernel: its output for a link in the test's own namespaces, under the test's settings.

mod common;

use crate::common::prelude::*;
use crate::common::stage::Studied;
use nicpoll_lab::{INTERFACE, Running};
use nicpoll_switch::Journal;

/// Error of a gap: a bucket is a sixteenth of an octave wide, and its middle is reported.
const BUCKET: f64 = 1.04;
/// Longer than any look of these tests.
const TRAFFIC: Duration = Duration::from_millis(1500);

fn json(output: &Output) -> Value {
    assert_code(output, 0);
    let show = json_of(output);
    assert_eq!(show["schema"], "nicpoll.show/2");
    assert_described(&show, "show");
    show
}

fn lab(stage: &Stage) -> Studied {
    Studied::new(&Journal::at(stage.state()))
}

fn show_in(host: &NetnsThread<()>, args: &[&str]) -> Output {
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    let run = move || {
        let mut command = Command::new(NICPOLL);
        command.arg("show").args(args).stdin(Stdio::null());
        command.output().unwrap()
    };
    host.run(move |_| run()).unwrap()
}

/// Returns the shown interface of the lab's receiver.
fn receiver(lab: &Studied, args: &[&str]) -> Value {
    let args = [&[INTERFACE, "--json"], args].concat();
    json(&show_in(lab.receiver(), &args))["interfaces"][0].clone()
}

fn variable<'a>(interface: &'a Value, name: &str) -> &'a Value {
    let mut all = interface["kern_polling"].as_array().unwrap().iter();
    &all.find(|one| one["name"] == name).unwrap()["value"]
}

/// Runs `look` after UDP traffic of this duration has begun.
fn under_traffic<T>(lab: &mut Studied, traffic: Duration, look: impl FnOnce(&Studied) -> T) -> T {
    let mut running = Running::start(&mut lab.lab, &nicpoll_lab::udp(64), traffic).unwrap();
    let seen = look(lab);
    let cancel = AtomicBool::new(false);
    running.wait_for_sender(&mut lab.lab, &cancel).unwrap();
    running
        .drain(&mut lab.lab, Duration::from_millis(20))
        .unwrap();
    seen
}

/// Shows the receiver while UDP traffic runs.
fn seen_under_traffic(lab: &mut Studied) -> Value {
    under_traffic(lab, TRAFFIC, |lab| {
        thread::sleep(Duration::from_millis(100));
        receiver(lab, &["--for", "0.3"])
    })
}

#[test]
fn interrupts_are_seen_as_such() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let mut lab = lab(&stage);
    lab.put("interrupt", 0);
    let seen = seen_under_traffic(&mut lab);
    assert_eq!(seen["evidence"]["discipline"], "interrupt", "{seen:#}");
    assert_eq!(seen["setting"]["discipline"], "interrupt");
    assert_eq!(seen["driver"], "veth");
    assert_eq!(seen["rx_ring_slots"], 256);
    assert_eq!(seen["ceiling"], Value::Null);
    assert_eq!(seen["napis"].as_array().unwrap().len(), 1);
    assert_eq!(*variable(&seen, "hz"), Value::Null);
    assert_eq!(*variable(&seen, "handlers"), 0.0);
    assert!(variable(&seen, "burst").as_f64().unwrap() >= 1.0);
    // Without watching there are settings but no evidence.
    let still = receiver(&lab, &["--for", "0"]);
    assert_eq!(still["evidence"], Value::Null);
    assert_eq!(still["setting"]["discipline"], "interrupt");
    assert_eq!(*variable(&still, "burst"), Value::Null);
}

#[test]
fn polling_is_seen_with_the_period_that_is_set() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let mut rates = Vec::new();
    for period_ns in [1_000_000, 4_000_000] {
        let mut lab = lab(&stage);
        lab.put("polling", period_ns);
        // The first packet starts the timer.
        under_traffic(&mut lab, Duration::from_millis(10), |_| ());
        let seen = receiver(&lab, &["--for", "0.5"]);
        assert_eq!(seen["evidence"]["discipline"], "polling", "{seen:#}");
        assert_eq!(seen["setting"]["discipline"], "polling");
        assert_eq!(seen["ceiling"]["is_measured"], true);
        assert_eq!(seen["ceiling"]["slots"], 256);
        assert_eq!(*variable(&seen, "enable"), 1.0);
        assert_eq!(*variable(&seen, "handlers"), 1.0);
        assert_eq!(*variable(&seen, "each_burst"), 64.0);
        let printed = show_in(
            lab.receiver(),
            &[INTERFACE, "--for", "0.5", "-n", "kern.polling.hz"],
        );
        let hz: f64 = stdout(&printed).trim().parse().unwrap();
        // The timer starts when a round ends, so no machine is faster.
        assert!(
            hz <= BUCKET * 1e9 / period_ns as f64,
            "{period_ns} ns: {hz}"
        );
        rates.push(hz);
    }
    assert!(rates[0] > 1.5 * rates[1], "{rates:?}");
}

/// With few packets each one wakes the NAPI, and the timer polls twice in vain before arrivals can wake it again.
#[test]
fn short_deferral_is_seen_as_a_hybrid() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let mut lab = lab(&stage);
    lab.put("interrupt", 0);
    let values = [
        ("napi_defer_hard_irqs", "2"),
        ("gro_flush_timeout", "300000"),
    ];
    lab.receiver()
        .run(move |_| {
            for (file, value) in values {
                fs::write(format!("/sys/class/net/{INTERFACE}/{file}"), value).unwrap();
            }
        })
        .unwrap();
    let sending = lab
        .sender()
        .spawn_pinned(0, "trickle", || {
            let socket = UdpSocket::bind(("198.18.0.1", 0)).unwrap();
            for _ in 0..200 {
                socket.send_to(b"one", ("198.18.0.2", 9)).unwrap();
                thread::sleep(Duration::from_millis(5));
            }
        })
        .unwrap();
    let seen = receiver(&lab, &["--for", "0.5"]);
    sending.join().unwrap().unwrap();
    assert_eq!(seen["evidence"]["discipline"], "hybrid", "{seen:#}");
    assert_eq!(seen["setting"]["discipline"], "hybrid");
}

#[test]
fn packets_that_go_past_napi_are_seen_in_the_backlog() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let mut lab = lab(&stage);
    let seen = seen_under_traffic(&mut lab);
    assert_eq!(seen["evidence"]["discipline"], "backlog", "{seen:#}");
    assert_eq!(seen["setting"]["discipline"], "backlog");
    assert_eq!(seen["napis"], Value::Array(Vec::new()));
    assert!(seen["rx_packets_per_second"].as_f64().unwrap() > 0.0);
}

#[test]
fn another_namespace_is_shown_and_not_the_hosts_own() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let lab = lab(&stage);
    let tid = lab.receiver().run(|_| rustix::thread::gettid()).unwrap();
    let path = format!("/proc/{}/task/{tid}/ns/net", std::process::id());
    let shown = json(&stage.run(&["show", "--netns", &path, "--for", "0", "--json"]));
    let names: Vec<&Value> = shown["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|interface| &interface["name"])
        .collect();
    assert_eq!(names, [INTERFACE]);
    assert_eq!(shown["netns"], path.as_str());
    assert_eq!(shown["interfaces"][0]["driver"], "veth");
}

#[test]
fn an_ordinary_user_sees_settings_and_is_told_what_takes_root() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let mut lab = lab(&stage);
    lab.put("interrupt", 0);
    let program = copy_for_anybody(stage.home.path());
    let run = |args: &[&str]| {
        let (program, args) = (program.clone(), args.iter().map(ToString::to_string));
        let args: Vec<String> = args.collect();
        let run = move |_: &mut _| {
            let mut command = as_nobody(&program);
            command.args(args).output().unwrap()
        };
        lab.receiver().run(run).unwrap()
    };
    let shown = json(&run(&["show", INTERFACE, "--for", "0.1", "--json"]));
    assert_eq!(shown["look_seconds"], Value::Null);
    assert!(shown["unseen"][0]["why"].as_str().unwrap().contains("root"));
    let interface = &shown["interfaces"][0];
    assert_eq!(interface["setting"]["discipline"], "interrupt");
    assert_eq!(interface["evidence"], Value::Null);
    let value = run(&["show", INTERFACE, "--for", "0.1", "-n", "kern.polling.hz"]);
    assert_code(&value, 5);
    assert_eq!(value.stdout, b"-\n");
    // Settings need no privilege.
    let value = run(&["show", INTERFACE, "--for", "0", "-n", "handlers"]);
    assert_code(&value, 0);
    assert_eq!(value.stdout, b"0\n");
}

#[test]
fn what_is_not_there_is_an_error_with_a_next_step() {
    let stage = Stage::new();
    assert_refused(
        "
        1 | show no-such-interface --for 0 | --netns
        2 | show -n kern.polling.nonsense | lost_polls
        1 | show --netns no-such-namespace | ip netns list
        ",
        |line| stage.run(&words(line)),
    );
}
