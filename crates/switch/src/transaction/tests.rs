//! All or nothing, against a small model of the kernel: killed at any write and then restored, every value is as before
//! and every interrupt unmasked.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::kernel::{Interface, Napi};
use crate::knob::{Scope, ScopedKnob, table};
use crate::plan::tests::card;
use crate::plan::{self, InterfaceFacts};
use crate::request::{InterfacePart, KnobValues, Order};

/// A running timer, and the empty polls that keep it running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Masked {
    countdown: u64,
    armed_ns: u64,
}

/// A model of one interface. Reads and writes behave as the kernel's, above all those of the deferral.
#[derive(Clone, Debug)]
struct Model {
    values: BTreeMap<ScopedKnob, u64>,
    masked: BTreeMap<u32, Masked>,
    /// Writes left until the process is killed.
    writes_left: Option<u32>,
}

impl Model {
    /// Receives packets: if a timer is set, the interrupt is masked and the countdown starts.
    fn traffic(&mut self) {
        for id in self.napi_ids() {
            let scope = Scope::Napi(id);
            let countdown = self.values[&ScopedKnob::new(&table::DEFER_HARD_IRQS, scope)];
            let armed_ns = self.values[&ScopedKnob::new(&table::GRO_FLUSH_TIMEOUT, scope)];
            if countdown > 0 && armed_ns > 0 {
                let masked = Masked {
                    countdown,
                    armed_ns,
                };
                self.masked.insert(id, masked);
            }
        }
    }

    fn napi_ids(&self) -> Vec<u32> {
        let ids = self
            .values
            .keys()
            .filter(|knob| *knob.row() == table::DEFER_HARD_IRQS);
        ids.filter_map(ScopedKnob::napi_id).collect()
    }

    fn facts(&self, asked: &KnobValues, part: &InterfacePart) -> InterfaceFacts {
        let own = self
            .values
            .iter()
            .filter(|(knob, _)| knob.scope() == Scope::Device);
        let values = own.map(|(knob, number)| (knob.clone(), Value::Number(*number)));
        let of = |row, id| self.values[&ScopedKnob::of_napi(row, id)];
        let napi = |id: u32| Napi {
            id,
            defer_hard_irqs: Some(of(&table::DEFER_HARD_IRQS, id) as u32),
            gro_flush_timeout_ns: Some(of(&table::GRO_FLUSH_TIMEOUT, id)),
            irq_suspend_timeout_ns: Some(of(&table::IRQ_SUSPEND_TIMEOUT, id)),
            threaded: Some(of(&table::THREADED, id) as u32),
            ..Napi::default()
        };
        let mut facts = card();
        facts.link.interface = target().interface;
        facts.asked = Order {
            target: target(),
            part: part.clone(),
            values: asked.clone(),
        };
        facts.values = values.collect();
        facts.napis = Some(self.napi_ids().into_iter().map(napi).collect());
        facts
    }
}

impl Kernel for Model {
    fn read(&mut self, _: &Target, knob: &ScopedKnob) -> Result<Option<Value>, SwitchError> {
        Ok(self.values.get(knob).map(|&value| Value::Number(value)))
    }

    fn write(&mut self, _: &Target, knob: &ScopedKnob, value: &Value) -> Result<(), SwitchError> {
        if let Some(left) = &mut self.writes_left {
            if *left == 0 {
                return Err(SwitchError::of_io("writing")(io::Error::other("killed")));
            }
            *left -= 1;
        }
        let number = value.number().unwrap();
        self.values.insert(knob.clone(), number);
        for id in self.napi_ids() {
            for row in [
                &table::THREADED,
                &table::DEFER_HARD_IRQS,
                &table::GRO_FLUSH_TIMEOUT,
            ] {
                let own = ScopedKnob::of_napi(row, id);
                if own.of_device().as_ref() == Some(knob) {
                    self.values.insert(own, number);
                }
            }
        }
        Ok(())
    }

    /// Fires one timer if it is due, and finds nothing to poll.
    fn wait(&mut self, time: Duration) {
        let values = &self.values;
        self.masked.retain(|&id, masked| {
            if u128::from(masked.armed_ns) > time.as_nanos() {
                return true;
            }
            let timeout = values[&ScopedKnob::of_napi(&table::GRO_FLUSH_TIMEOUT, id)];
            let goes_on = masked.countdown > 0 && timeout > 0;
            masked.countdown = masked.countdown.saturating_sub(1);
            masked.armed_ns = timeout;
            goes_on
        });
    }
}

fn target() -> Target {
    Target {
        netns_inode: 7,
        interface: Interface {
            ifindex: 2,
            name: String::from("em0"),
            device_id: Some(1),
            ..Interface::default()
        },
    }
}

fn journal() -> (tempfile::TempDir, Journal) {
    let home = tempfile::tempdir().unwrap();
    let journal = Journal::at(home.path().join("state"));
    (home, journal)
}

/// The id of a process that has ended.
fn owner() -> Owner {
    Owner {
        pid: 4_194_304,
        start_time_ticks: 1,
    }
}

/// The records on disk.
fn bytes_of(journal: &Journal) -> Vec<Vec<u8>> {
    let paths = journal.paths().unwrap().into_iter();
    paths.map(|path| std::fs::read(path).unwrap()).collect()
}

/// All steps of a command, from locking the interface to settling the change.
fn set(
    journal: &Journal,
    kernel: &mut Model,
    request: &KnobValues,
    part: &InterfacePart,
) -> Result<(), SwitchError> {
    let writes = plan::settings(&kernel.facts(request, part)).unwrap();
    let mut transaction = Held::begin(journal, owner(), None, &[target()], &[])?;
    transaction.write(kernel, &writes)?;
    transaction.settle()
}

fn the_record(journal: &Journal) -> Entry {
    journal.take(&target(), |_| ()).unwrap()
}

/// All steps of a later process that recovers.
fn restore_all(journal: &Journal, kernel: &mut Model) -> Result<(), SwitchError> {
    let entry = the_record(journal);
    let changes = entry.record().all_changes();
    undo::restore(kernel, &target(), &changes)?;
    entry.close()
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(20_000), 0..1_000_000u64]
}

fn models() -> impl Strategy<Value = Model> {
    let device = (value(), value(), 0..2u64, value());
    let napis = prop::collection::vec((value(), value(), 0..2u64, value()), 1..4);
    (device, napis).prop_map(|(device, napis)| {
        let mut values = BTreeMap::from([(ScopedKnob::of_interface(&table::RX_USECS), device.3)]);
        let scopes = [(Scope::Device, device)].into_iter().chain(
            napis
                .into_iter()
                .enumerate()
                .map(|(index, napi)| (Scope::Napi(300 + index as u32), napi)),
        );
        for (scope, (count, timeout, threaded, suspend)) in scopes {
            values.insert(ScopedKnob::new(&table::DEFER_HARD_IRQS, scope), count);
            values.insert(ScopedKnob::new(&table::GRO_FLUSH_TIMEOUT, scope), timeout);
            values.insert(ScopedKnob::new(&table::THREADED, scope), threaded);
            if let Scope::Napi(id) = scope {
                values.insert(
                    ScopedKnob::of_napi(&table::IRQ_SUSPEND_TIMEOUT, id),
                    suspend,
                );
            }
        }
        Model {
            values,
            masked: BTreeMap::new(),
            writes_left: None,
        }
    })
}

fn requests() -> impl Strategy<Value = KnobValues> {
    (
        prop::option::of(0..=i32::MAX as u32),
        prop::option::of(value()),
        prop::option::of(0..2u32),
        prop::option::of(value()),
        prop::option::of(0..1000u32),
    )
        .prop_map(|(count, timeout, threaded, suspend, usecs)| {
            let asked = [
                (&table::DEFER_HARD_IRQS, count.map(u64::from)),
                (&table::GRO_FLUSH_TIMEOUT, timeout),
                (&table::THREADED, threaded.map(u64::from)),
                (&table::IRQ_SUSPEND_TIMEOUT, suspend),
                (&table::RX_USECS, usecs.map(u64::from)),
            ];
            let asked = asked.into_iter().filter_map(|(row, to)| Some((row, to?)));
            asked.fold(KnobValues::new(), |values, (row, to)| values.with(row, to))
        })
}

fn parts() -> impl Strategy<Value = InterfacePart> {
    prop_oneof![
        Just(InterfacePart::Whole),
        Just(InterfacePart::Napis(vec![300]))
    ]
}

/// A NAPI may stay masked after restoring only if its own old values poll by a timer.
fn is_at_rest(kernel: &Model) -> bool {
    kernel.masked.keys().all(|&id| {
        let scope = Scope::Napi(id);
        kernel.values[&ScopedKnob::new(&table::DEFER_HARD_IRQS, scope)] > 0
            && kernel.values[&ScopedKnob::new(&table::GRO_FLUSH_TIMEOUT, scope)] > 0
    })
}

proptest! {
    #[test]
    fn what_was_set_and_set_again_is_put_back_exactly(
        model in models(), first in requests(), second in requests(), part in parts()
    ) {
        let (home, journal) = journal();
        let mut kernel = model.clone();
        for request in [&first, &second] {
            set(&journal, &mut kernel, request, &part).unwrap();
            kernel.traffic();
        }
        restore_all(&journal, &mut kernel).unwrap();
        prop_assert_eq!(&kernel.values, &model.values);
        prop_assert!(is_at_rest(&kernel));
        prop_assert!(!home.path().join("state").exists());
    }

    #[test]
    fn a_kill_at_any_write_leaves_what_was_there_before_that_command(
        model in models(), first in requests(), second in requests(), part in parts(),
        killed_at in 0..12u32, again_at in 0..12u32
    ) {
        let (_home, journal) = journal();
        let mut kernel = model.clone();
        set(&journal, &mut kernel, &first, &part).unwrap();
        let standing = kernel.values.clone();
        kernel.writes_left = Some(killed_at);
        let finished = set(&journal, &mut kernel, &second, &part).is_ok();
        kernel.traffic();
        // The next process is killed, too, and the one after that gets through.
        for writes_left in [Some(again_at), None] {
            kernel.writes_left = writes_left;
            let _ = undo_attempt(the_record(&journal), &target(), &mut kernel);
        }
        if !finished {
            prop_assert_eq!(&kernel.values, &standing);
            prop_assert!(is_at_rest(&kernel));
        }
        restore_all(&journal, &mut kernel).unwrap();
        prop_assert_eq!(&kernel.values, &model.values);
        prop_assert!(is_at_rest(&kernel));
    }

    /// A record that was read back, with any values in it: nothing is written but what it says, and zeros.
    #[test]
    fn only_what_is_recorded_is_written(model in models(), request in requests(), part in parts()) {
        let (_home, journal) = journal();
        let mut kernel = model.clone();
        set(&journal, &mut kernel, &request, &part).unwrap();
        let changes = the_record(&journal).record().all_changes();
        let steps = undo::steps_back(&changes);
        for step in steps {
            if let undo::UndoStep::Write(knob, value) = step {
                let change = changes.iter().find(|change| change.knob == knob);
                let is_zero_of_a_pair = value == Value::Number(0)
                    && knob.is_deferral()
                    && changes.iter().any(|c| c.knob.scope() == knob.scope());
                prop_assert!(
                    change.is_some_and(|change| change.before == value) || is_zero_of_a_pair
                );
            }
        }
    }
}

proptest! {
    // Each case syncs files to disk.
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Two settings that take turns, killed at any write: the record of before the first turn puts everything back.
    #[test]
    fn a_kill_at_any_turn_leaves_what_was_there(
        model in models(), standing in requests(), other in requests(), part in parts(),
        turns in 0..5u32, killed_at in 0..12u32
    ) {
        let (_home, journal) = journal();
        let mut kernel = model.clone();
        set(&journal, &mut kernel, &standing, &part).unwrap();
        let before = kernel.values.clone();
        let writes = plan::settings(&kernel.facts(&other, &part)).unwrap();
        let mut transaction = Held::begin(&journal, owner(), None, &[target()], &[]).unwrap();
        transaction.record(&writes).unwrap();
        let recorded = bytes_of(&journal);
        for turn in 0..turns {
            if turn == turns - 1 {
                kernel.writes_left = Some(killed_at);
            }
            let turned = if turn % 2 == 0 {
                transaction.carry_out(&mut kernel, &writes)
            } else {
                transaction.take_back(&mut kernel, &writes)
            };
            let is_last = turn == turns - 1;
            prop_assert!(turned.is_ok() || is_last, "{turned:?}");
            if turned.is_ok() && turn % 2 == 1 {
                prop_assert_eq!(&kernel.values, &before);
                prop_assert!(is_at_rest(&kernel));
            }
            kernel.traffic();
        }
        prop_assert_eq!(bytes_of(&journal), recorded);
        transaction.leave();
        kernel.writes_left = None;
        undo_attempt(the_record(&journal), &target(), &mut kernel).unwrap();
        prop_assert_eq!(&kernel.values, &before);
        prop_assert!(is_at_rest(&kernel));
    }
}
