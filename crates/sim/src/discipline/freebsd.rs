//! FreeBSD's disciplines: an interrupt thread for each card, or the poller.

use std::sync::Arc;

use nicpoll_core::{Access, Controller, DeviceId, Knob, Poller};

use super::{Method, Options};
use crate::host::HostModel;
use crate::machine::{Freebsd, Node, Setup, machine};
use crate::plan::SimulationError;
use crate::spec::{SpecError, ranged};
use crate::work::per_second;

const NS_PER_SECOND: u64 = 1_000_000_000;
/// What `share` promises (docs/polling.md).
const SHARE_SETTLES_TICKS: u64 = 20;

/// Each interrupt wakes a thread that empties the card.
#[derive(Debug)]
struct Interrupt;

/// The clock's ticks poll the card.
#[derive(Clone, Debug)]
struct Polling {
    /// Written in this order.
    knobs: Vec<(Knob, u32)>,
    controller: Controller,
}

pub(super) fn interrupt(options: &Options<'_>) -> Result<Arc<dyn Method>, SpecError> {
    match options.first() {
        None => Ok(Arc::new(Interrupt)),
        Some((name, _)) => Err(SpecError(format!(
            "freebsd-interrupt has no option '{name}'; numbers of the host have a dot: card.moderation_ns=50us"
        ))),
    }
}

pub(super) fn polling(options: &Options<'_>) -> Result<Arc<dyn Method>, SpecError> {
    let mut knobs = Vec::new();
    let mut controller = Controller::default();
    for &(name, value) in options {
        if name == "controller" {
            controller = Controller::from_name(value).ok_or_else(|| {
                let known = Controller::ALL.map(Controller::name).join(", ");
                SpecError(format!("no such controller: '{value}'; there are {known}"))
            })?;
            continue;
        }
        let writable = |knob: &Knob| knob.access() == Access::ReadWrite;
        let knob = Knob::from_name(name).filter(writable).ok_or_else(|| {
            let names = Knob::ALL
                .iter()
                .filter(|knob| writable(knob))
                .map(|knob| knob.name());
            let known: Vec<_> = names.collect();
            SpecError(format!(
                "freebsd-polling has no option '{name}'; it has controller, {}",
                known.join(", ")
            ))
        })?;
        let value = ranged(name, value, 0, u64::from(u32::MAX))?;
        knobs.push((knob, value as u32));
    }
    Ok(Arc::new(Polling { knobs, controller }))
}

impl Method for Interrupt {
    fn machine(&self, setup: Setup) -> Result<Box<dyn Node>, SimulationError> {
        let discipline = Freebsd::new(None, &setup.host, setup.attachments.len());
        Ok(machine(setup, discipline))
    }
}

impl Method for Polling {
    fn machine(&self, setup: Setup) -> Result<Box<dyn Node>, SimulationError> {
        let cards = setup.attachments.len();
        let poller = self.poller(&setup.host, cards as u32)?;
        let discipline = Freebsd::new(poller, &setup.host, cards);
        Ok(machine(setup, discipline))
    }

    /// `host` has the discipline's numbers.
    fn poller(&self, host: &HostModel, cards: u32) -> Result<Option<Poller>, SimulationError> {
        // A host's range ends long before that of the poller.
        let mut poller = Poller::new(host.cpu.hz as u32).expect("a host's clock ticks");
        for &(knob, value) in &self.knobs {
            let written = poller.write(knob, value);
            written.map_err(|errno| SimulationError::Knob { knob, value, errno })?;
        }
        poller.set_controller(self.controller);
        for card in 0..cards {
            let registered = poller.register(DeviceId(card));
            let _ = registered.expect("the list has room, and no card twice");
        }
        Ok(Some(poller))
    }

    fn with_knob(&self, knob: Knob, value: u32) -> Option<Arc<dyn Method>> {
        let mut changed = self.clone();
        changed.knobs.push((knob, value));
        Some(Arc::new(changed))
    }

    fn waits_for_ticks(&self) -> bool {
        true
    }

    fn looks_per_second(&self, host: &HostModel) -> f64 {
        let Ok(Some(poller)) = self.poller(host, 1) else {
            return 0.0;
        };
        let state = poller.state();
        if state.idle_poll != 0 {
            return per_second(host.card.poll_ns);
        }
        let chunks = u64::from(state.burst_max.div_ceil(state.each_burst));
        let most = per_second(host.cpu.netisr_ns + host.card.poll_ns);
        most.min((host.cpu.hz * chunks) as f64)
    }

    fn climb_ticks(&self, host: &HostModel) -> u64 {
        let Ok(Some(poller)) = self.poller(host, 1) else {
            return 0;
        };
        let state = poller.state();
        match self.controller {
            Controller::Freebsd => {
                let share = NS_PER_SECOND * u64::from(100 - state.user_frac) / 100;
                let packet_ns = host.card.rx_packet_ns + host.network.ipv4_ns;
                let fills = share / host.cpu.hz / packet_ns;
                fills.min(u64::from(state.burst_max - state.burst))
            }
            // Whatever the load was before.
            Controller::Share => SHARE_SETTLES_TICKS,
        }
    }
}
