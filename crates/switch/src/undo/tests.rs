use super::*;
use crate::moderation::Moderation;

fn change(knob: Knob, before: u64, written: u64) -> Change {
    Change {
        knob,
        before: Value::Number(before),
        written: Value::Number(written),
    }
}

fn write(knob: Knob, value: u64) -> Step {
    Step::Write(knob, Value::Number(value))
}

#[test]
fn polling_comes_to_rest_before_the_old_values_are_written() {
    let (device, napi) = (Scope::Device, Scope::Napi(300));
    let changes = [
        change(Knob::Feature(String::from("rx-gro")), 0, 1),
        change(Knob::DeferHardIrqs(device), 1, 1000),
        change(Knob::DeferHardIrqs(napi), 7, 1000),
        change(Knob::GroFlushTimeout(device), 20_000, 200_000),
        change(Knob::GroFlushTimeout(napi), 900_000, 200_000),
    ];
    let wanted = [
        write(Knob::DeferHardIrqs(device), 0),
        write(Knob::GroFlushTimeout(device), 0),
        write(Knob::DeferHardIrqs(napi), 0),
        write(Knob::GroFlushTimeout(napi), 0),
        // The longest of all that may be running.
        Step::Wait(Duration::from_nanos(900_000) + TIMER_LATENCY),
        write(Knob::DeferHardIrqs(device), 1),
        write(Knob::GroFlushTimeout(device), 20_000),
        write(Knob::DeferHardIrqs(napi), 7),
        write(Knob::GroFlushTimeout(napi), 900_000),
        write(Knob::Feature(String::from("rx-gro")), 0),
    ];
    assert_eq!(steps_back(&changes), wanted);
}

#[test]
fn a_thread_leaves_and_enters_the_deadline_class_while_it_may_use_every_cpu() {
    let cpus = Change {
        knob: Knob::ThreadCpus(40),
        before: Value::Cpus(vec![0, 1]),
        written: Value::Cpus(vec![1]),
    };
    let policy = |before| Change {
        knob: Knob::ThreadPolicy(40),
        before: Value::Policy(before),
        written: Value::Policy(Policy::Fair { nice: -5 }),
    };
    let deadline = Policy::Deadline {
        runtime_ns: 1,
        deadline_ns: 2,
        period_ns: 2,
    };
    for (before, cpus_at) in [(Policy::Fair { nice: 0 }, 1), (deadline, 0)] {
        let steps = steps_back(&[policy(before), cpus.clone()]);
        let at = steps
            .iter()
            .position(|step| matches!(step, Step::Write(Knob::ThreadCpus(_), _)));
        assert_eq!(at, Some(cpus_at), "{before:?}");
        assert_eq!(steps.len(), 2);
    }
}

#[test]
fn the_driver_stops_moving_the_numbers_before_they_are_written() {
    let adaptive = Knob::Moderation(Moderation::AdaptiveRx);
    let usecs = Knob::Moderation(Moderation::RxUsecs);
    let changes = [change(adaptive.clone(), 1, 0), change(usecs.clone(), 3, 50)];
    let wanted = [
        write(adaptive.clone(), 0),
        write(usecs, 3),
        write(adaptive, 1),
    ];
    assert_eq!(steps_back(&changes), wanted);
}

#[test]
fn features_go_back_in_the_opposite_order_and_down_comes_last() {
    let feature = |name: &str| Knob::Feature(String::from(name));
    let changes = [
        change(Knob::Up, 0, 1),
        change(feature("a"), 0, 1),
        change(feature("b"), 1, 0),
    ];
    let wanted = [
        write(feature("b"), 1),
        write(feature("a"), 0),
        write(Knob::Up, 0),
    ];
    assert_eq!(steps_back(&changes), wanted);
}

#[test]
fn instances_with_values_of_their_own_are_told_from_those_that_follow_the_interface() {
    let device = change(Knob::DeferHardIrqs(Scope::Device), 1, 9);
    let follows = change(Knob::DeferHardIrqs(Scope::Napi(300)), 1, 9);
    let own = change(Knob::DeferHardIrqs(Scope::Napi(300)), 7, 9);
    assert!(!has_values_of_instances(&[device.clone(), follows.clone()]));
    assert!(has_values_of_instances(&[device, own]));
    // Without the interface's own value nothing else puts it back.
    assert!(has_values_of_instances(&[follows]));
}
