//! Forwarding by the polled engine: the XDP program gives it what can be forwarded, and it looks up the route, changes the
//! headers and sends.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use netlink_socket2::NetlinkSocket;
use nicpoll_core::Knob;
use nicpoll_model::engine::EngineFacts;
use nicpoll_model::forward::{ForwardAccount, Lost};
use nicpoll_model::sink::SinkVariable;
use nicpoll_sys::xdp::AttachMode;

use super::board::{Board, ForwardPort};
use super::classifier::{Classifier, Verdict};
use super::tables::{Follower, has_rules};
use super::{Path, PathEnd};
use crate::charge::NoAccounts;
use crate::engines::{EngineSettings, Engines, knob_of_all};
use crate::error::EngineError;
use crate::interface::Interface;
use crate::knob_socket::KnobServer;
use crate::port::Port;
use crate::runner::PortRunner;
use crate::xdp_port::{FRAMES_MAX, open_sockets};

/// How often it is looked whether the rings are empty at the end, and the pause between.
const DRAIN_LOOKS: u32 = 20;
const DRAIN_PAUSE: Duration = Duration::from_millis(5);

/// The programs, and the engine that forwards.
pub(super) struct UserPath {
    // Declared first: nobody asks an engine that has ended, and the engine ends before the programs leave.
    knobs: Option<KnobServer>,
    engines: Option<Engines<ForwardPort>>,
    ended: Vec<PortRunner<ForwardPort>>,
    classifiers: Vec<(Classifier, AttachMode)>,
    _follower: Follower,
    facts: EngineFacts,
}

/// What one interface's sockets and the board know.
#[derive(Clone, Copy, Default)]
struct Known {
    forwarded: u64,
    lost: Lost,
}

impl UserPath {
    /// Opens every queue, attaches the programs and starts the engine.
    ///
    /// # Errors
    /// When an interface has a program of somebody else's, a queue cannot be had, or packets are routed by rules that are
    /// not the kernel's own.
    pub(super) fn start(
        interfaces: &[Interface],
        socket: &mut NetlinkSocket,
        settings: &EngineSettings,
    ) -> Result<Self, EngineError> {
        let failed = |doing: &str| {
            let doing = String::from(doing);
            move |source| EngineError::Thread { doing, source }
        };
        if has_rules(socket).map_err(failed("asking for the rules of routing"))? {
            return Err(EngineError::RoutingRules);
        }
        let indices: Vec<u32> = interfaces.iter().map(|it| it.ifindex).collect();
        let (follower, newest) =
            Follower::start(indices.clone()).map_err(failed("reading the kernel's routes"))?;
        let (mut classifiers, mut sockets) = (Vec::new(), Vec::new());
        for (place, interface) in interfaces.iter().enumerate() {
            let mut classifier = Classifier::load(interface, Verdict::Take)?;
            for exit in &indices {
                classifier.set_exit(*exit, true)?;
            }
            let name = &interface.name;
            let opened = open_sockets(name, FRAMES_MAX, FRAMES_MAX, |queue, socket| {
                classifier.serve(queue, socket)
            })?;
            sockets.extend(opened.into_iter().map(|socket| (place, socket)));
            classifiers.push(classifier);
        }
        let wake_ups: Result<Vec<_>, _> = sockets
            .iter()
            .map(|(_, socket)| socket.as_fd().try_clone_to_owned())
            .collect();
        let wake_ups = wake_ups.map_err(failed("opening AF_XDP sockets"))?;
        let board = Arc::new(Mutex::new(Board::new(sockets, newest)));
        let ports = wake_ups.into_iter().enumerate();
        let ports = ports.map(|(queue, fd)| ForwardPort::new(Arc::clone(&board), queue, fd));
        let engines = Engines::start(settings, ports.collect(), &NoAccounts)?;
        let knobs = engines.serve_knobs(&interfaces[0].name)?;
        // Last: whatever the programs take finds its socket.
        let attached: Result<Vec<_>, EngineError> = classifiers
            .into_iter()
            .zip(interfaces)
            .map(|(mut classifier, interface)| {
                let mode = classifier.attach(interface)?;
                Ok((classifier, mode))
            })
            .collect();
        let runner = settings.runner;
        let scheduling = engines.iter().map(|(_, engine)| engine.scheduling().name());
        let facts = EngineFacts {
            discipline: String::from(runner.drive.name()),
            hz: runner.hz,
            controller: String::from(runner.controller.name()),
            storm_threshold_passes: runner.storm_threshold,
            cpus: settings.cpus.clone(),
            scheduling: scheduling.last().map(String::from).unwrap_or_default(),
        };
        Ok(UserPath {
            knobs: Some(knobs),
            engines: Some(engines),
            ended: Vec::new(),
            classifiers: attached?,
            _follower: follower,
            facts,
        })
    }

    /// By interface, from the engine while it runs, and from what it left after that.
    fn known(&self) -> Result<Vec<Known>, EngineError> {
        let places = self.classifiers.len();
        let Some(engines) = &self.engines else {
            return Ok(known_of(&self.ended, places));
        };
        let known = engines.ask(move |runner| known_of(std::slice::from_ref(runner), places));
        let known = known.map_err(|ended| EngineError::Thread {
            doing: String::from("asking the engine for its counters"),
            source: std::io::Error::other(ended),
        })?;
        Ok(known.into_iter().next().unwrap_or_default())
    }
}

fn known_of(runners: &[PortRunner<ForwardPort>], places: usize) -> Vec<Known> {
    let mut known = vec![Known::default(); places];
    let ports = || runners.iter().flat_map(PortRunner::ports);
    for port in ports() {
        let (drops, known) = (port.drops(), &mut known[port.interface()]);
        known.lost.ring_full += drops.ring_full;
        known.lost.no_memory += drops.no_memory;
        known.lost.waiting += u64::from(port.waiting());
    }
    if let Some(port) = ports().next() {
        for (known, routed) in known.iter_mut().zip(port.board().routed()) {
            known.forwarded = routed.forwarded;
            known.lost.route_gone = routed.route_gone;
            known.lost.exit_full = routed.exit_full;
        }
    }
    known
}

impl Path for UserPath {
    fn program_modes(&self) -> Vec<&'static str> {
        let modes = self.classifiers.iter().map(|(_, mode)| *mode);
        modes
            .map(|mode| match mode {
                AttachMode::Driver => "driver",
                AttachMode::Generic => "generic",
            })
            .collect()
    }

    fn accounts(&self) -> Result<Vec<ForwardAccount>, EngineError> {
        // What has left was seen before.
        let known = self.known()?;
        let classifiers = self.classifiers.iter().zip(known);
        classifiers
            .map(|((classifier, _), known)| {
                let seen = classifier.seen()?;
                Ok(ForwardAccount::of(
                    seen.frames(),
                    known.forwarded,
                    seen.passed,
                    known.lost,
                ))
            })
            .collect()
    }

    fn look_around(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn stop(&mut self) {
        for (classifier, _) in &mut self.classifiers {
            classifier.detach();
        }
        for _ in 0..DRAIN_LOOKS {
            let known = self.known().unwrap_or_default();
            if known.iter().all(|known| known.lost.waiting == 0) {
                break;
            }
            thread::sleep(DRAIN_PAUSE);
        }
        self.knobs = None;
        if let Some(engines) = self.engines.take() {
            self.ended = engines.end().unwrap_or_default();
        }
    }

    fn engine(&self) -> Option<EngineFacts> {
        Some(self.facts.clone())
    }

    fn end(&self) -> PathEnd {
        let losses = |runner: &PortRunner<ForwardPort>| -> u64 {
            runner.ports().iter().map(Port::link_losses).sum()
        };
        let value = |knob: &Knob| SinkVariable {
            name: String::from(knob.name()),
            value: knob_of_all(&self.ended, *knob),
        };
        PathEnd {
            link_loss_events: self.ended.iter().map(losses).sum(),
            polling: Knob::ALL.iter().map(value).collect(),
        }
    }
}
