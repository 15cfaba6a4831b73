//! Forwarding between interfaces as the kernel's routes say: a router's fast path, with the kernel as its slow one.
//!
//! An XDP program at each interface says of each frame whether nothing is left to do but to send it on, and leaves all
//! others to the kernel: what is for this host, what has no route or no neighbour yet, what needs fragments or an
//! answer by ICMP.
//!
//! Every frame that came to an interface is forwarded, left to the kernel, lost at a named place, or shown as
//! unaccounted for. Routes and neighbours are the kernel's, a tick of its clock old at most; there is
//! no other table of them. When the program ends, in whatever way, the interfaces are as they were before.

mod classifier;
mod exits;
mod path;
mod user_path;
mod xdp_path;

use std::fs;
use std::time::Instant;

use netlink_socket2::NetlinkSocket;
use nicpoll_model::Origin;
use nicpoll_model::engine::{
    FORWARD_SCHEMA, ForwardAccount, ForwardCounts, ForwardEnd, ForwardInterface, ForwardInterval,
    ForwardStart, ForwardedFrom, KernelSideFacts,
};

use self::path::{Path, PathEnd};
use self::user_path::UserPath;
use self::xdp_path::XdpPath;
use crate::application::{EngineApplication, GrantedSetup, Helpers, KernelSide, ReceiveWish};
use crate::device::interface::{Interface, takes_redirected};
use crate::engine::EngineSettings;
use crate::error::EngineError;
use crate::names::Named;

/// What is forwarded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardSettings {
    /// The interfaces, in the network namespace of the calling thread; two at least.
    pub interfaces: Vec<String>,
    /// Who forwards.
    pub path: ForwardPath,
    /// How the engine runs, where it is the engine that forwards.
    pub engine: EngineSettings,
    /// The options by which somebody said how the engine is to run. They have no effect on a path without one, so none
    /// is taken then.
    pub engine_options: Vec<&'static str>,
    /// What is asked of the kernel's side at each interface.
    pub kernel_side: KernelSide,
    /// CPUs for the kernel's threads, where it is to have any; none: those that the engine leaves free.
    pub kernel_cpus: Vec<u32>,
    /// What the kernel's packet filter has for forwarded packets, in words. They do not come to it.
    pub filters: Vec<String>,
    /// Forward past those all the same.
    pub past_filters: bool,
}

impl ForwardSettings {
    fn check_engine_options(&self) -> Result<(), EngineError> {
        if self.path == ForwardPath::Xdp && !self.engine_options.is_empty() {
            return Err(EngineError::NoEngine {
                options: self.engine_options.clone(),
            });
        }
        Ok(())
    }
}

/// Who forwards, chosen by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardPath {
    /// The fastest that works here.
    #[default]
    Auto,
    /// The XDP program itself.
    Xdp,
    /// The engine, in user space.
    User,
}

impl Named for ForwardPath {
    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        let names = [
            (ForwardPath::Auto, "auto"),
            (ForwardPath::Xdp, "xdp"),
            (ForwardPath::User, "user"),
        ];
        names.into_iter()
    }
}

/// What was changed of the kernel's side, for each interface where something was.
type Grants = Vec<Option<Box<dyn GrantedSetup>>>;

/// The path that was taken.
struct Taken {
    path: Box<dyn Path>,
    granted: Grants,
    name: &'static str,
    /// Why this one.
    reason: String,
}

/// A forwarder that runs.
pub struct Forward {
    path: Box<dyn Path>,
    // Put back last: taking the programs off may take NAPI instances along.
    granted: Grants,
    start: ForwardStart,
    began: Instant,
    last: (f64, ForwardCounts),
}

impl Forward {
    /// Starts to forward.
    ///
    /// # Errors
    /// When an interface cannot be had, the kernel forwards nothing, packets would pass by a filter, or there is no engine
    /// for the options of one. Nothing is left at the interfaces then.
    pub fn start(
        settings: &ForwardSettings,
        origin: Origin,
        helpers: &Helpers,
    ) -> Result<Self, EngineError> {
        settings.check_engine_options()?;
        let mut socket = NetlinkSocket::new();
        let interfaces = named(&mut socket, &settings.interfaces)?;
        let mut notes = forwarding_notes(&interfaces)?;
        notes.extend(filter_notes(settings)?);
        let Taken {
            path,
            granted,
            name,
            reason,
        } = Self::on(settings, &interfaces, &mut socket, helpers)?;
        let takers: Vec<Option<bool>> = interfaces
            .iter()
            .map(|interface| takes_redirected(&mut socket, interface.ifindex))
            .collect();
        if name == "xdp" {
            let exits = interfaces.iter().zip(&takers);
            let closed = exits.filter(|(_, takes)| **takes == Some(false));
            notes.extend(closed.map(|(interface, _)| no_exit(interface)));
        }
        notes.extend(path.notes());
        let modes = path.program_modes();
        let shown = interfaces.iter().zip(modes).zip(&takers).zip(&granted);
        let start = ForwardStart {
            schema: String::from(FORWARD_SCHEMA),
            origin,
            path: String::from(name),
            path_reason: reason,
            engine: path.engine(),
            interfaces: shown
                .map(|(((interface, mode), takes), granted)| ForwardInterface {
                    name: interface.name.clone(),
                    program_mode: String::from(mode),
                    takes_redirected: *takes,
                    mtu_bytes: interface.mtu_bytes,
                    kernel_side: granted
                        .as_ref()
                        .map_or_else(KernelSideFacts::as_is, |granted| granted.facts()),
                })
                .collect(),
            notes,
        };
        Ok(Forward {
            path,
            granted,
            start,
            began: Instant::now(),
            last: (0.0, ForwardCounts::default()),
        })
    }

    /// Starts on the path that was asked for, or on the fastest that works here.
    fn on(
        settings: &ForwardSettings,
        interfaces: &[Interface],
        socket: &mut NetlinkSocket,
        helpers: &Helpers,
    ) -> Result<Taken, EngineError> {
        let asked_for = || String::from("asked for");
        let by_xdp = |reason| {
            // No thread of an engine is there that the kernel's would have to keep off.
            let granted = granted(settings, helpers, &[])?;
            Ok(Taken {
                path: Box::new(XdpPath::start(interfaces)?),
                granted,
                name: "xdp",
                reason,
            })
        };
        let reason = match settings.path {
            ForwardPath::User => asked_for(),
            ForwardPath::Xdp => return by_xdp(asked_for()),
            ForwardPath::Auto if !settings.engine_options.is_empty() => {
                format!("only the engine has {}", settings.engine_options.join(", "))
            }
            ForwardPath::Auto => {
                let reason = "the drivers of all interfaces run XDP programs";
                match by_xdp(String::from(reason)) {
                    Err(error @ EngineError::NoDriverProgram { .. }) => error.to_string(),
                    started => return started,
                }
            }
        };
        let engine = &settings.engine;
        let granted = granted(settings, helpers, &engine.cpus)?;
        let path = UserPath::start(interfaces, socket, engine, helpers.accounts)?;
        Ok(Taken {
            path: Box::new(path),
            granted,
            name: "user",
            reason,
        })
    }
}

impl EngineApplication for Forward {
    type Start = ForwardStart;
    type Interval = ForwardInterval;
    type End = ForwardEnd;

    fn facts(&self) -> &ForwardStart {
        &self.start
    }

    fn interval(&mut self) -> Result<ForwardInterval, EngineError> {
        self.path.look_around()?;
        let accounts = self.path.accounts()?;
        let counts = ForwardAccount::sum(accounts.iter()).counts();
        let now = (self.began.elapsed().as_secs_f64(), counts);
        let (start_seconds, before) = std::mem::replace(&mut self.last, now);
        Ok(ForwardInterval {
            start_seconds,
            end_seconds: now.0,
            counts: counts.since(&before),
        })
    }

    fn end(mut self, signal: Option<i32>) -> Result<ForwardEnd, EngineError> {
        let duration_seconds = self.began.elapsed().as_secs_f64();
        self.path.stop();
        let accounts = self.path.accounts()?;
        let PathEnd {
            link_loss_events,
            mtu_changes,
            polling,
            polling_by_cpu,
        } = self.path.end();
        drop(self.path);
        put_back(self.granted, &self.start.interfaces)?;
        let names = self.start.interfaces.into_iter();
        Ok(ForwardEnd {
            duration_seconds,
            account: ForwardAccount::sum(accounts.iter()),
            interfaces: names
                .zip(accounts)
                .map(|(interface, account)| ForwardedFrom {
                    name: interface.name,
                    account,
                })
                .collect(),
            link_loss_events,
            mtu_changes,
            polling,
            polling_by_cpu,
            ended_by_signal: signal,
        })
    }
}

/// Has the kernel's side be changed at each interface, for an engine on these CPUs.
fn granted(
    settings: &ForwardSettings,
    helpers: &Helpers,
    engine_cpus: &[u32],
) -> Result<Grants, EngineError> {
    let wishes = settings.interfaces.iter().map(|interface| ReceiveWish {
        interface,
        side: settings.kernel_side,
        kernel_cpus: &settings.kernel_cpus,
        engine_cpus,
    });
    wishes.map(|wish| helpers.set_up(&wish)).collect()
}

/// Puts back all of it, whatever fails.
fn put_back(granted: Grants, interfaces: &[ForwardInterface]) -> Result<(), EngineError> {
    let mut outcome = Ok(());
    for (granted, interface) in granted.into_iter().zip(interfaces) {
        let put_back = granted.map_or(Ok(()), |granted| granted.put_back());
        let put_back = put_back.map_err(|source| EngineError::PutBack {
            interface: interface.name.clone(),
            side: interface.kernel_side.name.clone(),
            source,
        });
        outcome = outcome.and(put_back);
    }
    outcome
}

/// What packets pass by.
///
/// # Errors
/// When that was not asked for.
fn filter_notes(settings: &ForwardSettings) -> Result<Vec<String>, EngineError> {
    let filters = &settings.filters;
    if !filters.is_empty() && !settings.past_filters {
        return Err(EngineError::PacketFilter {
            filters: filters.join("; "),
        });
    }
    let note = |filter| format!("Forwarded packets do not come to {filter}.");
    Ok(filters.iter().map(note).collect())
}

fn named(socket: &mut NetlinkSocket, names: &[String]) -> Result<Vec<Interface>, EngineError> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for name in names {
        let interface = Interface::named(socket, name)?;
        let mut others = interfaces.iter();
        if others.any(|other| other.ifindex == interface.ifindex) {
            return Err(EngineError::SameInterface {
                interface: name.clone(),
            });
        }
        interfaces.push(interface);
    }
    Ok(interfaces)
}

/// What the kernel itself does not forward.
///
/// # Errors
/// When that is everything.
fn forwarding_notes(interfaces: &[Interface]) -> Result<Vec<String>, EngineError> {
    let forwarding: Vec<[bool; 2]> = interfaces.iter().map(|it| forwards(&it.name)).collect();
    if forwarding.iter().all(|families| *families == [false; 2]) {
        return Err(EngineError::ForwardingOff);
    }
    let families = [
        ("IPv4", "net.ipv4.ip_forward=1"),
        ("IPv6", "net.ipv6.conf.all.forwarding=1"),
    ];
    let mut notes = Vec::new();
    for (index, (family, remedy)) in families.into_iter().enumerate() {
        let off: Vec<&str> = interfaces
            .iter()
            .zip(&forwarding)
            .filter(|(_, families)| !families[index])
            .map(|(interface, _)| interface.name.as_str())
            .collect();
        if !off.is_empty() {
            notes.push(format!(
                "The kernel does not forward {family} that comes to {}, so neither does this: 'sysctl {remedy}' turns \
                 it on.",
                off.join(", ")
            ));
        }
    }
    Ok(notes)
}

/// Whether the kernel forwards the IPv4 and IPv6 packets that come to an interface. A kernel without a family forwards none.
fn forwards(interface: &str) -> [bool; 2] {
    ["ipv4", "ipv6"].map(|family| {
        let path = format!("/proc/sys/net/{family}/conf/{interface}/forwarding");
        fs::read_to_string(path).is_ok_and(|text| text.trim() != "0")
    })
}

/// Why frames do not leave by an interface, and what to do.
fn no_exit(interface: &Interface) -> String {
    let name = &interface.name;
    if interface.kind == "veth" {
        format!(
            "{name} takes no frames from XDP programs while the other end of the veth has no NAPI; what leaves by it \
             goes through the kernel. 'ethtool -K PEER gro on' at the other end makes one."
        )
    } else {
        format!(
            "The driver of {name} takes no frames from XDP programs; what leaves by it goes through the kernel."
        )
    }
}
