//! Forwarding by the XDP program alone: it changes the headers and sends the frame out through the other interface.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use netlink_socket2::NetlinkSocket;
use nicpoll_model::forward::{ForwardAccount, Lost};
use nicpoll_sys::netns::NetNamespace;
use nicpoll_sys::xdp::AttachMode;

use super::Path;
use super::classifier::{Classifier, Seen, Verdict};
use super::freshness::Freshness;
use super::passages::{Left, Passages};
use crate::error::EngineError;
use crate::interface::{Interface, takes_redirected};

/// How often it is looked whether all frames have left at the end, and the pause between.
const DRAIN_LOOKS: u32 = 20;
const DRAIN_PAUSE: Duration = Duration::from_millis(5);

/// The programs at all interfaces.
pub(super) struct XdpPath {
    // Declared first: the programs leave before those that count what they do.
    classifiers: Vec<(Interface, Classifier)>,
    passages: Passages,
    socket: NetlinkSocket,
    _freshness: Freshness,
    /// By interface index: whether it takes frames.
    exits: BTreeMap<u32, bool>,
}

impl XdpPath {
    /// Attaches the programs.
    ///
    /// # Errors
    /// When an interface has a program of somebody else's, or its driver runs none.
    pub(super) fn start(interfaces: &[Interface]) -> Result<Self, EngineError> {
        let names = interfaces.iter();
        let names: Vec<_> = names.map(|i| (i.ifindex, i.name.clone())).collect();
        let namespace = NetNamespace::current().map_err(|source| EngineError::Thread {
            doing: String::from("asking for the network namespace"),
            source,
        })?;
        let passages = Passages::between(&names, namespace.inode() as u32)?;
        let indices: Vec<u32> = names.iter().map(|(ifindex, _)| *ifindex).collect();
        let (mut classifiers, mut next_hops) = (Vec::new(), Vec::new());
        for interface in interfaces {
            let mut classifier = Classifier::load(interface, Verdict::SendOn, &indices)?;
            next_hops.extend(classifier.take_next_hops());
            classifiers.push((interface.clone(), classifier));
        }
        let mut path = XdpPath {
            classifiers,
            passages,
            socket: NetlinkSocket::new(),
            _freshness: Freshness::start(next_hops)?,
            exits: BTreeMap::new(),
        };
        for (interface, classifier) in &mut path.classifiers {
            if classifier.attach(interface)? == AttachMode::Generic {
                return Err(EngineError::NoDriverProgram {
                    interface: interface.name.clone(),
                });
            }
        }
        // Last: a veth takes frames once the other end has its program, which may be one of these.
        path.look_around()?;
        Ok(path)
    }
}

impl Path for XdpPath {
    fn program_modes(&self) -> Vec<&'static str> {
        vec!["driver"; self.classifiers.len()]
    }

    fn accounts(&self) -> Result<Vec<ForwardAccount>, EngineError> {
        // What has left was seen before.
        let left = self.passages.left()?;
        let classifiers = self.classifiers.iter();
        classifiers
            .map(|(interface, classifier)| {
                let left = left.get(&interface.ifindex).copied().unwrap_or_default();
                Ok(account(&classifier.seen()?, left))
            })
            .collect()
    }

    fn look_around(&mut self) -> Result<(), EngineError> {
        let indices: Vec<u32> = self.classifiers.iter().map(|(i, _)| i.ifindex).collect();
        for (place, ifindex) in indices.into_iter().enumerate() {
            // Where the kernel does not say, what an exit does not take is counted as lost.
            let takes = takes_redirected(&mut self.socket, ifindex).unwrap_or(true);
            if self.exits.insert(ifindex, takes) == Some(takes) {
                continue;
            }
            for (_, classifier) in &mut self.classifiers {
                classifier.set_exit((place, ifindex), takes)?;
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        for (_, classifier) in &mut self.classifiers {
            classifier.detach();
        }
        for _ in 0..DRAIN_LOOKS {
            let accounts = self.accounts().unwrap_or_default();
            if accounts.iter().all(|account| account.residual_packets == 0) {
                return;
            }
            thread::sleep(DRAIN_PAUSE);
        }
    }
}

fn account(seen: &Seen, left: Left) -> ForwardAccount {
    let lost = Lost {
        exit_refused: left.refused,
        exit_full: left.lost_at_exit,
        ..Lost::default()
    };
    ForwardAccount::of(seen.frames(), left.sent, seen.passed(0), lost)
}
