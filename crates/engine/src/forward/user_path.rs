//! Forwarding by the polled engine: the XDP program gives it the frames that can be forwarded, with the kernel's route, and
//! the engine decides when they are sent, and how many at a time.

use std::sync::Arc;

use netlink_socket2::NetlinkSocket;
use nicpoll_model::engine::EngineFacts;
use nicpoll_sys::xdp::XdpSocket;

use crate::application::Helpers;
use crate::device::interface::{EthernetInterface, link_of};
use crate::device::port::Port;
use crate::device::xdp::{FRAMES_MAX, config, open_sockets};
use crate::engine::{EngineSettings, Engines, polling_by_cpu, polling_of_all};
use crate::error::EngineError;
use crate::forward::classifier::{Classifier, ClassifierResult, TAKES};
use crate::forward::exits::{Leftovers, Router, Ways};
use crate::forward::path::{Path, PathEnd, Started, keep_fresh};
use crate::knob_socket::KnobServer;
use crate::runner::PortRunner;

/// The engine that forwards.
struct UserPath {
    // Declared first: nobody asks an engine that has ended.
    knobs: Option<KnobServer>,
    engines: Option<Engines<Router>>,
    ended: Vec<PortRunner<Router>>,
    interfaces: usize,
    ways: Arc<Ways>,
    facts: EngineFacts,
}

/// Opens every queue, starts the engine and attaches the programs.
///
/// # Errors
/// When an interface has a program of somebody else's, or a queue cannot be had.
pub(super) fn start(
    interfaces: &[EthernetInterface],
    netlink: &mut NetlinkSocket,
    settings: &EngineSettings,
    helpers: &dyn Helpers,
) -> Result<Started, EngineError> {
    let indices: Vec<u32> = interfaces.iter().map(|it| it.ifindex).collect();
    let (mut classifiers, mut all_next_hops) = (Vec::new(), Vec::new());
    let mut sockets = Vec::new();
    for interface in interfaces {
        let (mut classifier, next_hops) = Classifier::load(interface, TAKES, &indices)?;
        for exit in indices.iter().copied().enumerate() {
            classifier.set_exit(exit, true)?;
        }
        let config = config(&interface.name, FRAMES_MAX, FRAMES_MAX)?;
        sockets.push(open_sockets(&interface.name, config, |queue, socket| {
            classifier.program.serve(queue, socket)
        })?);
        classifiers.push(classifier);
        all_next_hops.push(next_hops);
    }
    let freshness = keep_fresh(all_next_hops)?;
    let (ways, ports) = ports(interfaces, sockets, Leftovers::open(netlink).ok())?;
    let engines = Engines::start(settings, ports, helpers)?;
    let (knobs, _) = engines.serve_knobs(&interfaces[0].name)?;
    let path = UserPath {
        knobs,
        facts: engines.facts(&settings.runner),
        engines: Some(engines),
        ended: Vec::new(),
        interfaces: interfaces.len(),
        ways,
    };
    // Last: whatever the programs take finds its socket.
    for (interface, classifier) in interfaces.iter().zip(&mut classifiers) {
        classifier.program.attach(interface.ifindex)?;
    }
    Ok(Started {
        path: Box::new(path),
        classifiers,
        _freshness: freshness,
    })
}

/// A port for each receive queue, and where their frames go.
fn ports(
    interfaces: &[EthernetInterface],
    mut sockets: Vec<Vec<XdpSocket>>,
    leftovers: Option<Leftovers>,
) -> Result<(Arc<Ways>, Vec<Port<Router>>), EngineError> {
    let of_interface = sockets.iter_mut().map(|queues| {
        let halves = queues.iter_mut().filter_map(|queue| queue.sending.take());
        halves.collect()
    });
    let ways = Arc::new(Ways::new(of_interface.collect(), leftovers));
    let mut ports = Vec::new();
    for (place, queues) in sockets.into_iter().enumerate() {
        for (queue, socket) in queues.into_iter().enumerate() {
            let (link, _) = link_of(&interfaces[place].name)?;
            let router = Router::new(place, queue, Arc::clone(&ways));
            ports.push(router.port(socket, link));
        }
    }
    Ok((ways, ports))
}

/// What each port of a runner did, by the place of its interface.
fn done_of(runner: &PortRunner<Router>) -> Vec<(usize, ClassifierResult)> {
    let ports = runner.ports().iter().map(|port| {
        let (drops, mut done) = (port.drops(), port.input.done);
        done.lost.ring_full = drops.ring_full;
        done.lost.no_memory = drops.no_memory;
        done.lost.waiting = u64::from(port.queue.waiting());
        (port.input.interface, done)
    });
    ports.collect()
}

impl Path for UserPath {
    /// From the engine while it runs, and from what it left after that.
    fn done(&self) -> Result<Vec<ClassifierResult>, EngineError> {
        let by_cpu = match &self.engines {
            Some(engines) => engines.ask(|runner| done_of(runner))?,
            None => self.ended.iter().map(done_of).collect(),
        };
        let mut done = vec![ClassifierResult::default(); self.interfaces];
        for (place, more) in by_cpu.iter().flatten() {
            done[*place].add(more);
        }
        Ok(done)
    }

    fn engine(&self) -> Option<EngineFacts> {
        Some(self.facts.clone())
    }

    fn notes(&self) -> Vec<String> {
        vec![match &self.ways.leftovers {
            Some(leftovers) => format!(
                "Frames whose exit goes away while they wait go back to the kernel by the interface {}.",
                leftovers.name
            ),
            None => String::from(
                "The kernel has no TAP interfaces (/dev/net/tun), so frames whose exit goes away while they wait are \
                 lost.",
            ),
        }]
    }

    fn end(&mut self) -> PathEnd {
        self.knobs = None;
        if let Some(engines) = self.engines.take() {
            self.ended = engines.end().unwrap_or_default();
            // What became of the interfaces since the last check counts, too.
            self.ended.iter_mut().for_each(PortRunner::check_ports);
        }
        let ports = || self.ended.iter().flat_map(PortRunner::ports);
        PathEnd {
            link_loss_events: Some(ports().map(|port| port.watch.losses).sum()),
            mtu_changes: Some(ports().map(|port| port.watch.mtu_changes).sum()),
            polling: polling_of_all(&self.ended),
            polling_by_cpu: polling_by_cpu(&self.facts.cpus, &self.ended),
        }
    }
}
