//! The evidence that a setting was in force: all polls of the right NAPI are counted, and no others.

mod common;

use std::thread;
use std::time::Duration;

use common::TestLab;
use nicpoll_model::Side;
use nicpoll_observe::PollCounts;
use nicpoll_study::demo::{DEFAULT, INTERRUPT, POLLING};
use nicpoll_testkit::needs;

const QUIET: Duration = Duration::from_millis(20);

/// Returns the polls of the watched NAPI during UDP traffic, and the received datagrams.
fn polls_during_traffic(test: &mut TestLab) -> (PollCounts, u64) {
    thread::sleep(QUIET);
    let before = test.polls.read().unwrap();
    // Short enough for the receive buffer to hold all of it, even if the receiver does not run meanwhile.
    let duration = Duration::from_millis(50);
    let books = test.traffic(&nicpoll_lab::udp(64), duration, QUIET);
    let fins = books.control[0].received_packets.unwrap();
    let received = books.packets.unwrap().1 + fins;
    assert!(received > 100);
    (test.polls.read().unwrap().since(&before), received)
}

/// Returns the polls of traffic whose every datagram was polled. Some hosts' kernels run no BPF program while a
/// thread of the host's agent is interrupted, so it tries more than once.
fn polls_of_every_frame(test: &mut TestLab) -> PollCounts {
    let mut seen = Vec::new();
    for _ in 0..4 {
        let (polls, received) = polls_during_traffic(test);
        assert!(polls.frames <= received, "{polls:?}, {received} datagrams");
        if polls.frames == received {
            return polls;
        }
        seen.push((polls.frames, received));
    }
    panic!("polled and received: {seen:?}");
}

#[test]
fn every_poll_of_the_receivers_napi_is_counted_and_no_other() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let napi_id = test.put(INTERRUPT, 0);
    let [sender, receiver] = [Side::Sender, Side::Receiver].map(|side| test.inode(side));

    test.polls.watch(receiver, napi_id).unwrap();
    let polls = polls_of_every_frame(&mut test);
    assert!(polls.rounds > 0 && polls.rounds <= polls.polls());

    // Without an id, every NAPI of the namespace counts: there is one.
    test.polls.watch(receiver, None).unwrap();
    polls_of_every_frame(&mut test);

    // The other end has the same name, and another id is another NAPI.
    for (netns, napi_id) in [(sender, napi_id), (receiver, Some(u32::MAX))] {
        test.polls.watch(netns, napi_id).unwrap();
        let (polls, _) = polls_during_traffic(&mut test);
        assert_eq!(polls.polls(), 0, "{netns} {napi_id:?}");
    }
}

#[test]
fn a_detached_counter_counts_nothing() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    test.put(INTERRUPT, 0);
    let netns = test.inode(Side::Receiver);
    test.polls.watch(netns, None).unwrap();
    test.polls.programs.detach().unwrap();
    assert_eq!(polls_during_traffic(&mut test).0.polls(), 0);
    test.polls.programs.attach().unwrap();
    assert!(polls_during_traffic(&mut test).0.polls() > 0);
}

#[test]
fn the_plain_link_has_no_napi_and_no_polls() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    assert_eq!(test.put(DEFAULT, 0), None);
    let netns = test.inode(Side::Receiver);
    test.polls.watch(netns, None).unwrap();
    assert_eq!(
        polls_during_traffic(&mut test).0,
        PollCounts {
            polls_by_cpu: test
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
    let napi_id = test.put(POLLING, 1_000_000);
    let netns = test.inode(Side::Receiver);
    test.polls.watch(netns, napi_id).unwrap();
    let busy = polls_of_every_frame(&mut test);
    // One poll a packet would be interrupts. A round a millisecond cannot be more than this, however
    // slow the machine: the timer starts when a round ends.
    assert!(
        busy.rounds < busy.frames / 2,
        "{} rounds, {} packets",
        busy.rounds,
        busy.frames
    );
    // The first packet started the timer, and the deferral count is far from used up.
    let before = test.polls.read().unwrap();
    thread::sleep(Duration::from_millis(100));
    let idle = test.polls.read().unwrap().since(&before);
    assert!(idle.empty_polls > 0);
    assert_eq!(idle.empty_polls, idle.polls());
}
