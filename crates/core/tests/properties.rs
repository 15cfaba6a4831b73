//! Invariants after any events in any order.

use nicpoll_core::{Controller, DeviceId, Knob, POLL_LIST_LEN, Poller, Time};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Event {
    Tick(u64),
    Poll,
    PollMore,
    Idle,
    Write(usize, u32),
    Register(u32),
    Deregister(u32),
    Controller(bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => prop_oneof![Just(1000), 0..5000u64].prop_map(Event::Tick),
        4 => Just(Event::Poll),
        4 => Just(Event::PollMore),
        1 => Just(Event::Idle),
        1 => (0..Knob::ALL.len(), prop_oneof![0..200u32, any::<u32>()])
            .prop_map(|(knob, value)| Event::Write(knob, value)),
        2 => (0..140u32).prop_map(Event::Register),
        1 => (0..140u32).prop_map(Event::Deregister),
        1 => any::<bool>().prop_map(Event::Controller),
    ]
}

fn bounds_hold(poller: &Poller) -> Result<(), TestCaseError> {
    let hz = poller.hz();
    let state = poller.state();
    prop_assert_eq!(state.handlers as usize, poller.devices().len());
    prop_assert!((1..=state.burst_max).contains(&state.burst));
    prop_assert!((10..=20_000).contains(&state.burst_max));
    prop_assert!((1..=state.burst_max).contains(&state.each_burst));
    prop_assert!(state.user_frac <= 99);
    prop_assert!((1..=hz).contains(&state.reg_frac) || state.reg_frac == 20);
    prop_assert!(state.reg_frac_count < state.reg_frac || hz < 20);
    prop_assert!(state.phase <= 6);
    // A tick is given up only when more than 100 were pending.
    prop_assert!(state.pending_polls <= 101);
    // The software interrupt never has its end scheduled without work pending.
    prop_assert!(!state.pollmore_scheduled || state.pending_polls > 0);
    Ok(())
}

proptest! {
    #[test]
    fn bounds_hold_and_every_device_is_asked_alike(
        events in prop::collection::vec(event(), 0..400),
        hz in 1..5000u32,
    ) {
        let mut poller = Poller::new(hz).unwrap();
        let mut registered: Vec<u32> = Vec::new();
        let mut now_us = 0;
        for event in events {
            let mut asked: Vec<(u32, u32)> = Vec::new();
            let mut devices = |id: DeviceId, _, count| {
                asked.push((id.0, count));
                count
            };
            let now = Time::from_us(now_us);
            match event {
                Event::Tick(us) => {
                    now_us += us;
                    poller.hardclock(Time::from_us(now_us));
                }
                Event::Poll => poller.netisr_poll(now, &mut devices),
                Event::PollMore => {
                    poller.netisr_pollmore(now);
                }
                Event::Idle => {
                    poller.idle_poll(&mut devices);
                }
                Event::Write(knob, value) => {
                    let _ = poller.write(Knob::ALL[knob], value);
                }
                Event::Register(id) => {
                    let room = registered.len() < POLL_LIST_LEN;
                    let is_new = room && !registered.contains(&id);
                    prop_assert_eq!(poller.register(DeviceId(id)).is_ok(), is_new);
                    if is_new {
                        registered.push(id);
                    }
                }
                Event::Deregister(id) => {
                    let place = registered.iter().position(|known| *known == id);
                    prop_assert_eq!(poller.deregister(DeviceId(id)).is_ok(), place.is_some());
                    if let Some(place) = place {
                        registered.swap_remove(place);
                    }
                }
                Event::Controller(is_share) => poller.set_controller(if is_share {
                    Controller::Share
                } else {
                    Controller::Freebsd
                }),
            }
            // No device is lost or listed twice, and all are asked for the same count, in order.
            let listed: Vec<u32> = poller.devices().iter().map(|id| id.0).collect();
            prop_assert_eq!(&listed, &registered);
            if let Some((_, count)) = asked.first().copied() {
                let expected: Vec<_> = registered.iter().map(|id| (*id, count)).collect();
                prop_assert_eq!(&asked, &expected);
                prop_assert!((1..=20_000).contains(&count));
            }
            bounds_hold(&poller)?;
        }
    }
}
