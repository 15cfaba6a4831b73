use super::*;

fn change(knob: ScopedKnob, before: u64, written: u64) -> Change {
    Change {
        knob,
        before: Value::Number(before),
        written: Value::Number(written),
    }
}

fn write(knob: ScopedKnob, value: u64) -> UndoStep {
    UndoStep::Write(knob, Value::Number(value))
}

#[test]
fn polling_comes_to_rest_before_the_old_values_are_written() {
    let (device, napi) = (Scope::Device, Scope::Napi(300));
    let changes = [
        change(ScopedKnob::of_feature("rx-gro").unwrap(), 0, 1),
        change(ScopedKnob::new(&table::DEFER_HARD_IRQS, device), 1, 1000),
        change(ScopedKnob::new(&table::DEFER_HARD_IRQS, napi), 7, 1000),
        change(
            ScopedKnob::new(&table::GRO_FLUSH_TIMEOUT, device),
            20_000,
            200_000,
        ),
        change(
            ScopedKnob::new(&table::GRO_FLUSH_TIMEOUT, napi),
            900_000,
            200_000,
        ),
    ];
    let wanted = [
        write(ScopedKnob::new(&table::DEFER_HARD_IRQS, device), 0),
        write(ScopedKnob::new(&table::GRO_FLUSH_TIMEOUT, device), 0),
        write(ScopedKnob::new(&table::DEFER_HARD_IRQS, napi), 0),
        write(ScopedKnob::new(&table::GRO_FLUSH_TIMEOUT, napi), 0),
        // The longest of the timers that may be running.
        UndoStep::Wait(Duration::from_nanos(900_000) + TIMER_LATENCY),
        write(ScopedKnob::new(&table::DEFER_HARD_IRQS, device), 1),
        write(ScopedKnob::new(&table::GRO_FLUSH_TIMEOUT, device), 20_000),
        write(ScopedKnob::new(&table::DEFER_HARD_IRQS, napi), 7),
        write(ScopedKnob::new(&table::GRO_FLUSH_TIMEOUT, napi), 900_000),
        write(ScopedKnob::of_feature("rx-gro").unwrap(), 0),
    ];
    assert_eq!(steps_back(&changes), wanted);
}

#[test]
fn a_thread_leaves_and_enters_the_deadline_class_while_it_may_use_every_cpu() {
    let cpus = Change {
        knob: ScopedKnob::of_thread(&table::THREAD_CPUS, 40),
        before: Value::Cpus(vec![0, 1]),
        written: Value::Cpus(vec![1]),
    };
    let policy = |before| Change {
        knob: ScopedKnob::of_thread(&table::THREAD_POLICY, 40),
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
        let at = steps.iter().position(
            |step| matches!(step, UndoStep::Write(knob, _) if *knob.row() == table::THREAD_CPUS),
        );
        assert_eq!(at, Some(cpus_at), "{before:?}");
        assert_eq!(steps.len(), 2);
    }
}

#[test]
fn the_driver_stops_moving_the_numbers_before_they_are_written() {
    let adaptive = ScopedKnob::of_interface(&table::ADAPTIVE_RX);
    let usecs = ScopedKnob::of_interface(&table::RX_USECS);
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
    let feature = |name: &str| ScopedKnob::of_feature(name).unwrap();
    let changes = [
        change(ScopedKnob::of_interface(&table::UP), 0, 1),
        change(feature("tx-tcp-segmentation"), 0, 1),
        change(feature("tx-tcp6-segmentation"), 1, 0),
    ];
    let wanted = [
        write(feature("tx-tcp6-segmentation"), 1),
        write(feature("tx-tcp-segmentation"), 0),
        write(ScopedKnob::of_interface(&table::UP), 0),
    ];
    assert_eq!(steps_back(&changes), wanted);
}

#[test]
fn instances_with_values_of_their_own_are_told_from_those_that_follow_the_interface() {
    let device = change(ScopedKnob::of_interface(&table::DEFER_HARD_IRQS), 1, 9);
    let follows = change(ScopedKnob::of_napi(&table::DEFER_HARD_IRQS, 300), 1, 9);
    let own = change(ScopedKnob::of_napi(&table::DEFER_HARD_IRQS, 300), 7, 9);
    assert!(!has_values_of_instances(&[device.clone(), follows.clone()]));
    assert!(has_values_of_instances(&[device, own]));
    // Without the interface's own value nothing else restores it.
    assert!(has_values_of_instances(&[follows]));
}
