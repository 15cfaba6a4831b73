//! Forwarding by the polled engine: the XDP program gives it the frames that can be forwarded, with the kernel's route, and
//! the engine decides when they are sent, and how many at a time.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use netlink_socket2::NetlinkSocket;
use nicpoll_model::engine::{EngineFacts, ForwardAccount, Lost};
use nicpoll_sys::xdp::{AttachMode, XdpSocket};

use crate::device::interface::Interface;
use crate::device::port::AnyPort;
use crate::device::xdp::{FRAMES_MAX, open_sockets};
use crate::engine::{EngineSettings, Engines, polling_by_cpu, polling_of_all};
use crate::error::EngineError;
use crate::forward::classifier::{Classifier, Verdict};
use crate::forward::exits::{Exits, Leftovers, Router, Ways};
use crate::forward::path::{Freshness, Path, PathEnd};
use crate::knob_socket::KnobServer;
use crate::names::Named;
use crate::runner::PortRunner;
use crate::runner::charge::CpuAccounts;

/// How often it is looked whether the rings are empty at the end, and the pause between.
const DRAIN_LOOKS: u32 = 20;
const DRAIN_PAUSE: Duration = Duration::from_millis(5);

/// The programs, and the engine that forwards.
pub(super) struct UserPath {
    // Declared first: nobody asks an engine that has ended, and the engine ends before the programs leave.
    knobs: Option<KnobServer>,
    engines: Option<Engines<Router>>,
    ended: Vec<PortRunner<Router>>,
    classifiers: Vec<(Classifier, AttachMode)>,
    _freshness: Freshness,
    ways: Arc<Ways>,
    facts: EngineFacts,
}

/// What one interface's sockets know.
#[derive(Clone, Copy, Default)]
struct Known {
    forwarded: u64,
    given_back: u64,
    lost: Lost,
}

impl UserPath {
    /// Opens every queue, attaches the programs and starts the engine.
    ///
    /// # Errors
    /// When an interface has a program of somebody else's, or a queue cannot be had.
    pub(super) fn start(
        interfaces: &[Interface],
        socket: &mut NetlinkSocket,
        settings: &EngineSettings,
        accounts: &dyn CpuAccounts,
    ) -> Result<Self, EngineError> {
        let (mut classifiers, sockets) = prepared(interfaces)?;
        let next_hops = classifiers
            .iter_mut()
            .filter_map(Classifier::take_next_hops);
        let freshness = Freshness::start(next_hops.collect())?;
        let (ways, ports) = ports(sockets, Leftovers::open(socket).ok());
        let engines = Engines::start(settings, ports, accounts)?;
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
        let facts = EngineFacts {
            discipline: String::from(runner.drive.name()),
            hz: runner.hz,
            controller: String::from(runner.controller.name()),
            storm_threshold_passes: runner.storm_threshold,
            cpus: engines.iter().map(|(cpu, _)| cpu).collect(),
            scheduling: String::from(engines.scheduling().name()),
        };
        Ok(UserPath {
            knobs: Some(knobs),
            engines: Some(engines),
            ended: Vec::new(),
            classifiers: attached?,
            _freshness: freshness,
            ways,
            facts,
        })
    }

    /// By interface, from the engine while it runs, and from what it left after that.
    fn known(&self) -> Result<Vec<Known>, EngineError> {
        let mut known = vec![Known::default(); self.classifiers.len()];
        let Some(engines) = &self.engines else {
            add_known(&mut known, &self.ended);
            return Ok(known);
        };
        let places = known.len();
        let by_cpu = engines.ask(move |runner| {
            let mut known = vec![Known::default(); places];
            add_known(&mut known, std::slice::from_ref(runner));
            known
        });
        for of_cpu in by_cpu? {
            for (known, more) in known.iter_mut().zip(of_cpu) {
                known.add(&more);
            }
        }
        Ok(known)
    }
}

/// A program for each interface, and its sockets by receive queue.
fn prepared(
    interfaces: &[Interface],
) -> Result<(Vec<Classifier>, Vec<Vec<XdpSocket>>), EngineError> {
    let indices: Vec<u32> = interfaces.iter().map(|it| it.ifindex).collect();
    let (mut classifiers, mut sockets) = (Vec::new(), Vec::new());
    for interface in interfaces {
        let mut classifier = Classifier::load(interface, Verdict::Take, &indices)?;
        for (place, ifindex) in indices.iter().enumerate() {
            classifier.set_exit((place, *ifindex), true)?;
        }
        let name = &interface.name;
        sockets.push(open_sockets(
            name,
            FRAMES_MAX,
            FRAMES_MAX,
            |queue, socket| classifier.serve(queue, socket),
        )?);
        classifiers.push(classifier);
    }
    Ok((classifiers, sockets))
}

/// A port for each receive queue, and where their frames go.
fn ports(
    mut sockets: Vec<Vec<XdpSocket>>,
    leftovers: Option<Leftovers>,
) -> (Arc<Ways>, Vec<AnyPort<Router>>) {
    let of_interface = sockets.iter_mut().map(|queues| {
        let halves = queues.iter_mut().filter_map(XdpSocket::take_send_half);
        halves.collect()
    });
    let exits = Exits::new(of_interface.collect());
    let ways = Arc::new(Ways { exits, leftovers });
    let mut ports = Vec::new();
    for (interface, queues) in sockets.into_iter().enumerate() {
        for (queue, socket) in queues.into_iter().enumerate() {
            ports.push(Router::port(socket, interface, queue, Arc::clone(&ways)));
        }
    }
    (ways, ports)
}

impl Known {
    fn add(&mut self, more: &Known) {
        self.forwarded += more.forwarded;
        self.given_back += more.given_back;
        self.lost.add(&more.lost);
    }
}

fn add_known(known: &mut [Known], runners: &[PortRunner<Router>]) {
    for port in runners.iter().flat_map(PortRunner::ports) {
        let (drops, routed) = (port.drops(), port.input().routed());
        known[port.input().interface()].add(&Known {
            forwarded: routed.forwarded,
            given_back: routed.given_back,
            lost: Lost {
                ring_full: drops.ring_full,
                no_memory: drops.no_memory,
                exit_refused: routed.exit_refused,
                exit_full: routed.exit_full,
                waiting: u64::from(port.waiting()),
            },
        });
    }
}

impl Path for UserPath {
    fn program_modes(&self) -> Vec<&'static str> {
        let modes = self.classifiers.iter().map(|(_, mode)| *mode);
        modes.map(AttachMode::name).collect()
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
                    seen.passed(known.given_back),
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

    fn notes(&self) -> Vec<String> {
        vec![match &self.ways.leftovers {
            Some(leftovers) => format!(
                "Frames whose exit goes away while they wait go back to the kernel by the interface {}.",
                leftovers.name()
            ),
            None => String::from(
                "The kernel has no TAP interfaces (/dev/net/tun), so frames whose exit goes away while they wait are \
                 lost.",
            ),
        }]
    }

    fn end(&self) -> PathEnd {
        let ports = || self.ended.iter().flat_map(PortRunner::ports);
        PathEnd {
            link_loss_events: Some(ports().map(|port| port.link().losses()).sum()),
            mtu_changes: Some(ports().map(|port| port.link().mtu_changes()).sum()),
            polling: polling_of_all(&self.ended),
            polling_by_cpu: polling_by_cpu(&self.facts.cpus, &self.ended),
        }
    }
}
