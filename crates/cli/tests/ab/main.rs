//! `nicpoll ab`: settings alternate under traffic that nicpoll does not control, and everything is restored, however
//! a run ends.

#[path = "../common/mod.rs"]
mod common;
mod traffic;

use crate::common::prelude::*;
use crate::traffic::{Traffic, under_connections};
use nicpoll_model::ab::{AbDelayKind, AbEndCause, AbNoVerdict, LiveAb};
use nicpoll_model::tune::Tune;
use nicpoll_model::{CpuSource, Studies, StudyKind, StudyState};
use nicpoll_switch::knob::table;
use nicpoll_switch::{Kernel, ScopedKnob};

/// Long enough for every disturbance of the tests.
const LONG: &str = "ab em0 --for 60s --block 0.5s --loss-limit 100000 --json";

fn document(output: &Output) -> LiveAb {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// The interface's own period, in ns.
fn period_ns(pair: &Switched) -> u64 {
    pair.near(|control, target| {
        let knob = ScopedKnob::of_interface(&table::GRO_FLUSH_TIMEOUT);
        let value = control.read(target, &knob).unwrap();
        value.and_then(|value| value.number()).unwrap()
    })
}

fn wait_for_polling(pair: &Switched) {
    wait_until("polling takes its turn", || period_ns(pair) == 200_000);
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid as i32).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// Returns the output of a long run that `what` disturbs once polling has been in force; it ends with that code.
fn met_by(pair: &Switched, code: i32, what: impl FnOnce(&Child)) -> LiveAb {
    let run = pair.start(LONG);
    wait_for_polling(pair);
    what(&run);
    let output = run.wait_with_output().unwrap();
    assert_code(&output, code);
    document(&output)
}

#[test]
fn settings_take_turns_and_are_put_back_exactly() {
    needs!(Time, Root, PerNapi, Iperf, Ip);
    let pair = Switched::new();
    pair.set_up_by_hand();
    let before = pair.dump();
    let _traffic = Traffic::iperf(&pair);
    let run = pair.start("ab em0 --for 4s --block 0.5s --loss-limit 100000 --seed 3 --json");
    let (mut periods, mut records) = (BTreeSet::new(), BTreeSet::new());
    wait_for_polling(&pair);
    for _ in 0..60 {
        periods.insert(period_ns(&pair));
        for path in pair.journal().paths().unwrap() {
            records.insert(fs::read(path).unwrap());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let output = run.wait_with_output().unwrap();
    let told = document(&output);
    // Too few pairs for a verdict.
    assert_code(&output, 4);
    assert_eq!(told.end.cause, AbEndCause::Planned);
    // While the setting changes, the timer is off for a moment.
    periods.remove(&0);
    assert_eq!(periods, BTreeSet::from([20_000, 200_000]));
    // A turn writes nothing to disk: each interface has one record, which does not change.
    assert!(records.len() <= 2, "{}", records.len());
    pair.assert_restored(&before);
    assert!(told.restored.iter().all(|one| one.is_as_before));
    assert!(told.judged.command.starts_with("nicpoll set em0 polling"));
    // The part left out is known, or the reason why it is not.
    let is_told = |what: &str| told.unseen.iter().any(|unseen| unseen.what.contains(what));
    assert!(
        told.plan.settling_seconds.is_some() != is_told("take to settle"),
        "{told:?}"
    );
    // Every pair is stored, and the result.
    let shown: LiveAb = serde_json::from_str(&pair.done("study show last --json")).unwrap();
    assert_eq!(shown, told);
    // TSO had to be switched off at the other end, so the traffic was also measured without that.
    let looks = told.prerequisites_cost.unwrap();
    let mut looks = looks.without.iter().chain(&looks.with);
    assert!(looks.all(|look| look.cpu.is_some() && look.rx_packets > 0));
    let blocks = told
        .pairs
        .iter()
        .flat_map(|pair| [&pair.reference, &pair.judged]);
    let blocks: Vec<_> = blocks.collect();
    assert!(blocks.len() >= 4, "{}", blocks.len());
    for block in blocks {
        assert!(block.window.rx_packets > 0, "{block:?}");
        let cpu = block.window.cpu.unwrap();
        assert!(cpu.softirq_seconds > 0.0 && cpu.counting_seconds > 0.0);
        // A poll takes one packet or more.
        assert!(block.polls.unwrap() > 0 && block.polls <= block.polled_packets);
        let kinds: Vec<AbDelayKind> = block.delays.iter().map(|delay| delay.kind).collect();
        // The driver of a veth counts the packets of its only queue's polls.
        let [queue] = block.queues.as_slice() else {
            panic!("{:?}", block.queues);
        };
        assert_eq!((queue.queue, queue.polls), (0, block.polls));
        assert!(queue.counters["xdp_packets"] > 0, "{queue:?}");
        // The traffic has no TCP.
        assert_eq!(kinds, [AbDelayKind::UdpStackToRead, AbDelayKind::RunQueue]);
    }
}

/// Runs a few pairs of short blocks, and checks what every run with traffic must say.
fn a_few_pairs(pair: &Switched, name: &str) -> LiveAb {
    let before = pair.dump();
    let line = format!("ab {name} --for 2.5s --block 0.5s --loss-limit 100000 --no-store --json");
    let output = pair.run(&line);
    let told = document(&output);
    assert_code(&output, 4);
    assert_eq!(told.end.cause, AbEndCause::Planned);
    assert_eq!(told.members, ["em0"]);
    pair.assert_restored(&before);
    assert!(!told.pairs.is_empty());
    for block in told.pairs.iter().flat_map(|it| [&it.reference, &it.judged]) {
        assert!(block.window.rx_packets > 0, "{block:?}");
        let cpu = block.window.cpu.unwrap();
        // Without the estimated cost of counting, which for little traffic on a busy machine exceeds all of it.
        let counted = cpu.user_seconds + cpu.system_seconds + cpu.irq_seconds + cpu.softirq_seconds;
        assert!(counted > 0.0, "{block:?}");
    }
    told
}

#[test]
fn a_setting_is_compared_with_itself_and_nothing_is_changed() {
    needs!(Time, Root, PerNapi, Iperf, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    let _traffic = Traffic::iperf(&pair);
    let period = period_ns(&pair);
    let plan = pair.done("ab em0 --null --dry-run");
    assert_has(&plan, "nothing: what is there is written again");
    let line = "ab em0 --null --for 3s --block 0.5s --loss-limit 100000 --no-store";
    let run = pair.start(&format!("{line} --json"));
    thread::sleep(Duration::from_secs(2));
    assert_eq!(period_ns(&pair), period);
    let output = run.wait_with_output().unwrap();
    assert_code(&output, 4);
    let told = document(&output);
    assert!(told.plan.is_null && !told.pairs.is_empty() && told.prerequisites.is_empty());
    assert!(!told.answer.is_recommended);
    assert_eq!(
        (&*told.judged.name, &*told.judged.command),
        ("the same", "")
    );
    assert_eq!(told.judged.values, told.reference.values);
    pair.assert_restored(&before);
}

#[test]
fn without_bpf_cpu_time_is_sampled_and_named_so() {
    needs!(Time, Root, PerNapi, Iperf, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    let _traffic = Traffic::iperf(&pair);
    // Five pairs or more, of which costs can be told.
    let line = "ab em0 --for 8s --block 0.4s --loss-limit 100000 --json";
    let output = without_bpf(pair.command(line));
    assert_code(&output, 4);
    let told = document(&output);
    for block in told.pairs.iter().flat_map(|it| [&it.reference, &it.judged]) {
        let cpu = block.window.cpu.unwrap();
        assert_eq!(
            (cpu.source, cpu.counting_seconds),
            (CpuSource::TickSampled, 0.0)
        );
        // No more than all CPUs have, and a tick's resolution.
        let cores = thread::available_parallelism().unwrap().get() as f64;
        assert!(cpu.busy_seconds().unwrap_or(0.0) < cores * (block.window.seconds + 0.02));
        assert!(block.polls.is_none() && block.delays.is_empty());
    }
    assert_eq!(told.answer.cpu.unwrap().source, CpuSource::TickSampled);
    assert!(told.answer.no_verdict.contains(&AbNoVerdict::TooFewPairs));
    let text = pair.done("study show last");
    assert_has(&text, "cost, CPU time sampled by ticks");
    pair.assert_restored(&before);
}

/// Returns the kinds of delays that some block has.
fn kinds(told: &LiveAb) -> BTreeSet<AbDelayKind> {
    let blocks = told.pairs.iter().flat_map(|it| [&it.reference, &it.judged]);
    let delays = blocks.flat_map(|block| &block.delays);
    delays.map(|delay| delay.kind).collect()
}

#[test]
fn traffic_of_iperf3_is_compared() {
    needs!(Time, Root, PerNapi, Iperf3, Ip);
    let pair = Switched::new();
    pair.set_up_by_hand();
    {
        let _traffic = Traffic::iperf3(&pair, "-u -b 20M -l 512");
        assert!(kinds(&a_few_pairs(&pair, "em0")).contains(&AbDelayKind::UdpStackToRead));
    }
    let _traffic = Traffic::iperf3(&pair, "-b 50M");
    assert!(kinds(&a_few_pairs(&pair, "em0")).contains(&AbDelayKind::TcpStackToRead));
}

#[test]
fn short_connections_at_random_are_compared() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    pair.set_up_by_hand();
    let told = under_connections(&pair, || a_few_pairs(&pair, "em0"));
    assert!(
        kinds(&told).contains(&AbDelayKind::TcpStackToRead),
        "{:?}",
        kinds(&told)
    );
}

/// VLANs and bonds, which a kernel may lack, use the same table, which has tests of its own.
#[test]
fn members_of_a_bridge_take_turns_and_are_named() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    pair.set_up_by_hand();
    pair.ip("link add br0 type bridge; link set em0 master br0");
    pair.ip("link set br0 up; address del 198.18.0.2/24 dev em0");
    pair.ip("address add 198.18.0.2/24 dev br0");
    let told = pair.under_traffic(|| a_few_pairs(&pair, "br0"));
    assert_eq!(told.interface, "br0");
    assert!(
        told.judged
            .values
            .iter()
            .all(|value| value.interface == "em0")
    );
}

#[test]
fn a_program_that_is_killed_leaves_nothing_changed() {
    needs!(Root, PerNapi, Ip);
    let pair = Switched::new();
    pair.set_up_by_hand();
    let before = pair.dump();
    for wait_ms in [0, 170, 390] {
        let mut run = pair.start(LONG);
        wait_for_polling(&pair);
        thread::sleep(Duration::from_millis(wait_ms));
        run.kill().unwrap();
        run.wait().unwrap();
        wait_until("the guard has put it back", || {
            pair.is_clean() && pair.dump() == before
        });
    }
    let stored: Studies = serde_json::from_str(&pair.done("study list --json")).unwrap();
    let states: Vec<_> = stored
        .studies
        .iter()
        .map(|it| (it.kind, it.state))
        .collect();
    assert_eq!(states, [(StudyKind::Ab, StudyState::Killed); 3]);
    let shown: LiveAb = serde_json::from_str(&pair.done("study show last --json")).unwrap();
    assert_eq!(shown.end.cause, AbEndCause::Interrupted);
}

#[test]
fn without_its_guard_a_run_ends_and_puts_everything_back() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    let end = met_by(&pair, 1, |_| kill(pair.guard_in_force().pid)).end;
    assert_eq!(end.cause, AbEndCause::SettingFailed);
    assert!(end.text.unwrap().contains("was ended"));
    pair.assert_restored(&before);
}

#[test]
fn what_a_killed_guard_left_is_put_back_before_settings_take_turns() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    pair.done("set em0 polling --period 50us --fix --for 60s --look 0");
    let left = pair.guard_in_force();
    kill(left.pid);
    wait_until("the guard is gone", || !left.is_alive().unwrap());
    assert_eq!(period_ns(&pair), 50_000);
    let told = met_by(&pair, 143, |run| send_signal(run, Signal::TERM));
    // Polling alternated with the setting from before the change that was left.
    assert_eq!(told.reference.name, "as it is");
    pair.assert_restored(&before);
}

#[test]
fn a_signal_ends_a_run_and_the_pairs_so_far_are_told() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("ab.html");
    let run = pair.start(&format!("{LONG} --report {}", report.display()));
    wait_for_polling(&pair);
    send_signal(&run, Signal::TERM);
    let output = run.wait_with_output().unwrap();
    assert_code(&output, 143);
    let page = fs::read_to_string(report).unwrap();
    assert!(page.contains("em0: polling against as it is") && page.contains("It ended early"));
    assert_eq!(pair.done("study report last -o -"), page);
    assert_eq!(document(&output).end.cause, AbEndCause::Interrupted);
    pair.assert_restored(&before);
}

#[test]
fn a_link_that_goes_down_ends_a_run() {
    needs!(Root, PerNapi, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    let told = met_by(&pair, 1, |_| pair.ip("link set em0 down"));
    assert_eq!(told.end.cause, AbEndCause::CarrierLost, "{told:?}");
    assert!(told.end.text.unwrap().contains("em0 was taken down"));
    pair.ip("link set em0 up");
    assert!(pair.is_clean());
    wait_until("it is as before", || pair.dump() == before);
}

#[test]
fn an_interface_that_is_removed_ends_a_run() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    let told = met_by(&pair, 1, |_| pair.ip("link delete em0"));
    assert_eq!(told.end.cause, AbEndCause::InterfaceChanged, "{told:?}");
    for restored in &told.restored {
        assert!(!restored.is_as_before);
        assert!(restored.notes[0].contains("no more"), "{restored:?}");
    }
    assert!(pair.is_clean());
}

/// The far end plays the user's host.
#[test]
fn a_run_over_ones_own_ssh_ends_when_that_host_no_longer_answers() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    let over_ssh = |line: &str| {
        let mut command = pair.command(line);
        command.env("SSH_CONNECTION", "198.18.0.1 50000 198.18.0.2 22");
        command
    };
    let slow = "ab em0 polling --period 1ms --for 60s";
    let refused = over_ssh(slow).output().unwrap();
    assert_code(&refused, 1);
    assert!(said(&refused).contains("carries your ssh connection"));
    let run = over_ssh(LONG).spawn().unwrap();
    wait_for_polling(&pair);
    let silence = "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all";
    let mut silent = Command::new("ip");
    silent.args(["netns", "exec", &pair.far_netns(), "sh", "-c", silence]);
    assert!(silent.status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    assert_code(&output, 1);
    let end = document(&output).end;
    assert_eq!(end.cause, AbEndCause::EchoLost, "{end:?}");
    pair.assert_restored(&before);
}

#[test]
fn what_changes_with_some_drivers_is_tried_before_it_takes_turns() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    let output = pair.run("ab em0 --threaded --for 2.5s --block 0.4s --loss-limit 100000 --json");
    let told = document(&output);
    assert_eq!(told.end.cause, AbEndCause::Planned, "{told:?}");
    let tried = "what changes of threaded do to packets in the card";
    assert!(told.unseen.iter().any(|unseen| unseen.what == tried));
    assert!(!told.pairs.is_empty());
    pair.assert_restored(&before);
}

#[test]
fn of_each_period_a_part_is_measured_and_in_between_all_is_as_it_was() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    pair.set_up_by_hand();
    let before = pair.dump();
    // Four periods: on a busy machine one may pass without a pair.
    let line =
        "ab em0 --for 13.6s --duty 2.4s/3.6s --block 0.4s --loss-limit 100000 --no-store --json";
    let run = pair.start(line);
    wait_for_polling(&pair);
    wait_until("a pause", || {
        (0..10).all(|_| {
            thread::sleep(Duration::from_millis(40));
            period_ns(&pair) == 20_000
        })
    });
    let output = run.wait_with_output().unwrap();
    let told = document(&output);
    assert_eq!(told.end.cause, AbEndCause::Planned, "{told:?}");
    let blocks = told.pairs.iter().flat_map(|it| [&it.reference, &it.judged]);
    let starts: Vec<f64> = blocks.map(|block| block.start_seconds).collect();
    assert!(starts.iter().all(|start| start % 3.6 < 2.4), "{starts:?}");
    let periods: BTreeSet<u64> = starts.iter().map(|start| (start / 3.6) as u64).collect();
    assert!(periods.len() >= 2, "{starts:?}");
    pair.assert_restored(&before);
    // The run was not to be stored.
    let stored: Studies = serde_json::from_str(&pair.done("study list --json")).unwrap();
    assert!(stored.studies.is_empty());
}

#[test]
fn what_somebody_else_changes_sets_a_pair_aside() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    let run = pair.start("ab em0 --for 4s --block 0.5s --loss-limit 100000 --json");
    wait_for_polling(&pair);
    // The first changes, before any pair, take a second and a half.
    for _ in 0..50 {
        pair.write_timeout(77_777);
        thread::sleep(Duration::from_millis(50));
    }
    let told = document(&run.wait_with_output().unwrap());
    let causes = told
        .pairs
        .iter()
        .filter_map(|pair| pair.set_aside_because.as_ref());
    let causes: Vec<&String> = causes.collect();
    assert!(
        !causes.is_empty() && causes.len() < told.pairs.len(),
        "{causes:?}"
    );
    assert!(causes[0].contains("77777"), "{causes:?}");
    pair.assert_restored(&before);
}

#[test]
fn what_cannot_take_turns_is_refused_and_a_plan_writes_nothing() {
    needs!(Root, PerNapi, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    assert_refused(
        "
        1 | ab em0 --knob gro=off | --disruptive
        1 | ab em0 --threaded --threaded-cpus 1 | come and go with 'threaded'
        1 | ab em0 -polling | nothing to compare
        2 | ab em0 polling --null | leave 'polling' out
        2 | ab em0 --null --period 50us | cannot be used with
        2 | ab em0 interrupts | 'polling', '-polling' or nothing
        2 | ab em0 --block 0.1s | from 0.4s to 10m
        2 | ab em0 --duty 5m/1h | give a longer --for
        1 | ab em9 | there is no interface 'em9'
        ",
        |line| pair.run(line),
    );
    let plan = pair.done("ab em0 --dry-run --seed 5");
    assert_has_all(&plan, "seed 5 | gro off -> on | gro_flush_timeout");
    pair.ip("link set em0 down");
    assert_has(pair.refused("ab em0", 1), "it is down");
    pair.ip("link set em0 up");
    pair.assert_restored(&before);
}

#[test]
fn tune_tries_candidates_under_the_traffic_and_leaves_everything_as_it_was() {
    needs!(Time, Root, PerNapi, Iperf, Ip);
    let pair = Switched::new();
    pair.set_up_by_hand();
    let before = pair.dump();
    let _traffic = Traffic::iperf(&pair);
    let words = "tune em0 --try deferral --for 40s --block 0.4s --loss-limit 100000 --json";
    let output = pair.start(words).wait_with_output().unwrap();
    let found: Tune = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found.is_finished, "{found:?}");
    let names: Vec<&str> = found.candidates.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["as it is", "deferral 20us", "deferral 100us"]);
    assert!(found.race_trials >= 2, "{found:?}");
    // Whichever wins, only a comparison of its own chooses it.
    assert!(found.choice.is_none() || found.ab.is_some(), "{found:?}");
    assert_eq!(pair.dump(), before);
    let refused = pair
        .start("tune em0 --try pulling")
        .wait_with_output()
        .unwrap();
    assert_code(&refused, 2);
    assert_has(
        said(&refused),
        "no candidate is called so; there are interrupts",
    );
}
