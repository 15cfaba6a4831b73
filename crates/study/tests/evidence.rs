//! The evidence that a setting was in force: polls of the right NAPI are counted, all of them, and no
//! others.

mod common;

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use common::TestLab;
use nicpoll_model::{Setting, Workload};
use nicpoll_observe::PollCounts;
use nicpoll_study::{Lab, Running, apply};
use nicpoll_testkit::needs;

const QUIET: Duration = Duration::from_millis(20);

/// Polls of the watched NAPI while UDP traffic runs, and the datagrams that were received.
fn polls_during_traffic(lab: &Lab) -> (PollCounts, u64) {
    thread::sleep(QUIET);
    let before = lab.polls.read().unwrap();
    // So short that the receive buffer would hold all of it, should the receiver not run meanwhile.
    let duration = Duration::from_millis(50);
    let mut running = Running::start(lab, Workload::Udp64, duration).unwrap();
    running.wait_for_sender(&AtomicBool::new(false)).unwrap();
    let run = running.drain(QUIET).unwrap();
    let fins = run.control[0].received.unwrap();
    let received = run.packets.unwrap().1 + fins;
    assert!(received > 100);
    (lab.polls.read().unwrap().since(&before), received)
}

#[test]
fn every_poll_of_the_receivers_napi_is_counted_and_no_other() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let lab = &mut test.lab;
    let applied = apply(lab, Setting::Interrupt, 0).unwrap();
    let [sender, receiver] = lab.hosts().map(|host| host.netns().inode());

    lab.polls.watch(receiver, applied.napi_id).unwrap();
    let (polls, received) = polls_during_traffic(lab);
    assert_eq!(polls.frames, received);
    assert!(polls.rounds > 0 && polls.rounds <= polls.polls());

    // Without an id, every NAPI of the namespace is meant, and there is one.
    lab.polls.watch(receiver, None).unwrap();
    let (polls, received) = polls_during_traffic(lab);
    assert_eq!(polls.frames, received);

    // The other end has the same name, and another id is another NAPI.
    for (netns, napi_id) in [(sender, applied.napi_id), (receiver, Some(u32::MAX))] {
        lab.polls.watch(netns, napi_id).unwrap();
        let (polls, _) = polls_during_traffic(lab);
        assert_eq!(polls.polls(), 0, "{netns} {napi_id:?}");
    }
}

#[test]
fn a_detached_counter_counts_nothing() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let lab = &mut test.lab;
    apply(lab, Setting::Interrupt, 0).unwrap();
    let netns = lab.receiver.netns().inode();
    lab.polls.watch(netns, None).unwrap();
    lab.polls.detach().unwrap();
    assert_eq!(polls_during_traffic(lab).0.polls(), 0);
    lab.polls.attach().unwrap();
    assert!(polls_during_traffic(lab).0.polls() > 0);
}

#[test]
fn the_plain_link_has_no_napi_and_no_polls() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let lab = &mut test.lab;
    let applied = apply(lab, Setting::Default, 0).unwrap();
    assert_eq!(applied.napi_id, None);
    let netns = lab.receiver.netns().inode();
    lab.polls.watch(netns, None).unwrap();
    assert_eq!(
        polls_during_traffic(lab).0,
        PollCounts {
            polls_by_cpu: lab
                .polls
                .read()
                .unwrap()
                .polls_by_cpu
                .iter()
                .map(|_| 0)
                .collect(),
            ..PollCounts::default()
        }
    );
}

#[test]
fn timer_polling_goes_on_without_arrivals_and_arrivals_wake_nothing() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let lab = &mut test.lab;
    let applied = apply(lab, Setting::Polling, 1_000_000).unwrap();
    let netns = lab.receiver.netns().inode();
    lab.polls.watch(netns, applied.napi_id).unwrap();
    let (busy, received) = polls_during_traffic(lab);
    assert_eq!(busy.frames, received);
    // One poll a packet would be interrupts. A round a millisecond cannot be more than this, however
    // slow the machine: the timer starts when a round ends.
    assert!(
        busy.rounds < received / 2,
        "{} rounds, {received} packets",
        busy.rounds
    );
    // The first packet started the timer, and the deferral count is far from used up.
    let before = lab.polls.read().unwrap();
    thread::sleep(Duration::from_millis(100));
    let idle = lab.polls.read().unwrap().since(&before);
    assert!(idle.empty_polls > 0);
    assert_eq!(idle.empty_polls, idle.polls());
}
