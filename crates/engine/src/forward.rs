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
    ForwardStart, ForwardedFrom, LinkEvent,
};
use nicpoll_sys::xdp::AttachMode;

use self::path::{PathEnd, Started};
use crate::application::{
    EngineApplication, GrantedSetup, Helpers, KernelSide, ReceiveWish, facts_of, restore, set_up,
};
use crate::device::interface::{EthernetInterface, takes_redirected};
use crate::device::presence::{GonePolicy, Presence, PresenceChange};
use crate::engine::EngineSettings;
use crate::error::EngineError;
use crate::names::Named;
use crate::runner::clock::await_end;

/// How often it is looked whether all frames have left at the end.
const DRAIN_LOOKS: u32 = 20;

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
    /// What to do when an interface is gone.
    pub gone: GonePolicy,
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

/// A forwarder that runs.
pub struct Forward {
    settings: ForwardSettings,
    presences: Vec<Presence>,
    /// `None` when it could not begin again yet.
    running: Option<Started>,
    // Put back last: taking the programs off may take NAPI instances along.
    granted: Grants,
    /// What became of the frames of each interface, and what was told, before it last began again.
    past: Vec<ForwardAccount>,
    past_end: PathEnd,
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
        helpers: &dyn Helpers,
    ) -> Result<Self, EngineError> {
        let options = &settings.engine_options;
        if settings.path == ForwardPath::Xdp && !options.is_empty() {
            return Err(no_engine(options));
        }
        let mut netlink = NetlinkSocket::new();
        let interfaces = named(&mut netlink, &settings.interfaces)?;
        let names = settings.interfaces.iter();
        let presences = names.map(|name| Presence::of(name, settings.gone));
        let mut presences = presences.collect::<Result<Vec<_>, _>>()?;
        let mut notes = forwarding_notes(&interfaces)?;
        notes.extend(filter_notes(settings)?);
        let (mut running, granted, name, path_reason) =
            Self::on(settings, &interfaces, &mut netlink, helpers)?;
        // A veth takes frames once the other end has its program, which may be one of these.
        running.path.look_around(&mut running.classifiers)?;
        if running.path.engine().is_none() {
            presences.iter_mut().for_each(Presence::watch_exit);
        }
        let mut shown = Vec::new();
        let programs = interfaces.iter().zip(&running.classifiers).zip(&granted);
        for ((interface, classifier), granted) in programs {
            let takes_redirected = takes_redirected(&mut netlink, interface.ifindex);
            if name == "xdp" && takes_redirected == Some(false) {
                notes.push(no_exit(interface));
            }
            let mode = classifier.program.mode();
            shown.push(ForwardInterface {
                name: interface.name.clone(),
                program_mode: String::from(mode.map_or("", AttachMode::name)),
                takes_redirected,
                mtu_bytes: interface.mtu_bytes,
                kernel_side: facts_of(granted.as_deref()),
            });
        }
        notes.extend(running.path.notes());
        let start = ForwardStart {
            schema: String::from(FORWARD_SCHEMA),
            origin,
            path: String::from(name),
            path_reason,
            engine: running.path.engine(),
            interfaces: shown,
            notes,
        };
        Ok(Forward {
            settings: settings.clone(),
            presences,
            running: Some(running),
            granted,
            past: vec![ForwardAccount::sum(std::iter::empty()); interfaces.len()],
            past_end: PathEnd::default(),
            start,
            began: Instant::now(),
            last: (0.0, ForwardCounts::default()),
        })
    }

    /// Starts on the path that was asked for, or on the fastest that works here: what was changed of the kernel's side,
    /// which path, and why this one.
    fn on(
        settings: &ForwardSettings,
        interfaces: &[EthernetInterface],
        netlink: &mut NetlinkSocket,
        helpers: &dyn Helpers,
    ) -> Result<(Started, Grants, &'static str, String), EngineError> {
        let by_xdp = |reason: &str| {
            // No thread of an engine is there that the kernel's would have to keep off.
            let granted = granted(settings, helpers, &[])?;
            let started = xdp_path::start(interfaces)?;
            Ok((started, granted, "xdp", String::from(reason)))
        };
        let asked_for = "asked for";
        let reason = match settings.path {
            ForwardPath::User => String::from(asked_for),
            ForwardPath::Xdp => return by_xdp(asked_for),
            ForwardPath::Auto if !settings.engine_options.is_empty() => {
                format!("only the engine has {}", settings.engine_options.join(", "))
            }
            ForwardPath::Auto => match by_xdp("the drivers of all interfaces run XDP programs") {
                // The engine takes less of the kernel. Who has the interface is in its way, too.
                Err(error @ (EngineError::NoDriverProgram(_) | EngineError::Device(_))) => {
                    error.to_string()
                }
                started => return started,
            },
        };
        let engine = &settings.engine;
        let granted = granted(settings, helpers, &engine.cpus)?;
        let started = user_path::start(interfaces, netlink, engine, helpers)?;
        Ok((started, granted, "user", reason))
    }

    /// Where the frames of each interface ended until now.
    fn accounts(&self) -> Result<Vec<ForwardAccount>, EngineError> {
        let Some(running) = &self.running else {
            return Ok(self.past.clone());
        };
        // What has left was seen before.
        let done = running.path.done()?;
        let classifiers = running.classifiers.iter().zip(&done).zip(&self.past);
        classifiers
            .map(|((classifier, done), past)| {
                let now = classifier.account(done)?;
                Ok(ForwardAccount::sum([past, &now].into_iter()))
            })
            .collect()
    }

    /// Takes no more frames, and lets those on their way come to their ends.
    fn stop(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        for classifier in &mut running.classifiers {
            classifier.program.detach();
        }
        await_end(DRAIN_LOOKS, || {
            self.accounts().is_ok_and(|accounts| {
                let mut accounts = accounts.iter();
                accounts.all(|account| {
                    let waiting = account.lost.last().map(|waiting| waiting.packets);
                    (account.residual_packets, waiting) == (0, Some(0))
                })
            })
        });
    }

    /// Ends what runs, with what it came to.
    fn leave(&mut self) -> Result<(), EngineError> {
        self.stop();
        if let Some(running) = &mut self.running {
            self.past_end = running.path.end().after(&self.past_end);
        }
        self.past = self.accounts()?;
        self.running = None;
        Ok(())
    }

    /// Goes on with an interface that has changed: the programs alone as they are, the engine begins again.
    fn adapt(&mut self, helpers: &dyn Helpers) -> Result<(), EngineError> {
        match &mut self.running {
            Some(running) if running.path.engine().is_none() => {
                running.path.look_around(&mut running.classifiers)
            }
            _ => self.begin_again(helpers),
        }
    }

    /// Begins again with the interfaces that are there now. The kernel forwards meanwhile.
    fn begin_again(&mut self, helpers: &dyn Helpers) -> Result<(), EngineError> {
        self.leave()?;
        self.granted = Vec::new();
        let names = self.presences.iter();
        self.settings.interfaces = names.map(|presence| presence.name.clone()).collect();
        let mut netlink = NetlinkSocket::new();
        let interfaces = named(&mut netlink, &self.settings.interfaces)?;
        let (mut running, granted, ..) =
            Self::on(&self.settings, &interfaces, &mut netlink, helpers)?;
        running.path.look_around(&mut running.classifiers)?;
        (self.running, self.granted) = (Some(running), granted);
        Ok(())
    }
}

impl EngineApplication for Forward {
    type Start = ForwardStart;
    type Interval = ForwardInterval;
    type End = ForwardEnd;

    fn facts(&self) -> &ForwardStart {
        &self.start
    }

    fn is_over(&self) -> bool {
        self.presences.iter().any(Presence::ends)
    }

    /// While an interface is gone, what would leave by it is the kernel's.
    fn attend(&mut self, helpers: &dyn Helpers) -> Result<Vec<LinkEvent>, EngineError> {
        let mut events = Vec::new();
        for place in 0..self.presences.len() {
            let Some(found) = self.presences[place].look() else {
                continue;
            };
            let outcome = match found.0 {
                // Once for all that are back.
                _ if !self.presences.iter().all(Presence::is_there) => Ok(()),
                PresenceChange::Gone => Ok(()),
                PresenceChange::Back => self.begin_again(helpers),
                PresenceChange::Otherwise => self.adapt(helpers),
            };
            events.extend(self.presences[place].events_of(found, outcome));
        }
        Ok(events)
    }

    fn interval(&mut self) -> Result<ForwardInterval, EngineError> {
        let accounts = self.accounts()?;
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
        self.leave()?;
        let PathEnd {
            link_loss_events,
            mtu_changes,
            polling,
            polling_by_cpu,
        } = self.past_end;
        let accounts = self.past;
        // All of it, whatever fails.
        let granted = self.granted.into_iter().zip(&self.start.interfaces);
        let outcomes: Vec<_> = granted
            .map(|(granted, interface)| restore(granted, &interface.name, &interface.kernel_side))
            .collect();
        outcomes.into_iter().collect::<Result<(), _>>()?;
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
    helpers: &dyn Helpers,
    engine_cpus: &[u32],
) -> Result<Grants, EngineError> {
    let wishes = settings.interfaces.iter().map(|interface| ReceiveWish {
        interface,
        side: settings.kernel_side,
        kernel_cpus: &settings.kernel_cpus,
        engine_cpus,
    });
    wishes.map(|wish| set_up(helpers, &wish)).collect()
}

/// Options of the engine were given for a path that has none.
fn no_engine(options: &[&str]) -> EngineError {
    let those = if options.len() == 1 { "that" } else { "those" };
    EngineError::Usage(format!(
        "only the engine has {}; '--path xdp' forwards without it, so leave {those} out, or give '--path user'",
        options.join(", ")
    ))
}

/// What packets pass by.
///
/// # Errors
/// When that was not asked for.
fn filter_notes(settings: &ForwardSettings) -> Result<Vec<String>, EngineError> {
    let filters = &settings.filters;
    if !filters.is_empty() && !settings.past_filters {
        return Err(EngineError::Failed(format!(
            "the kernel's packet filter has something for packets that are forwarded, and they would not come to it: {}; \
             '--past-filters' forwards them all the same",
            filters.join("; ")
        )));
    }
    let note = |filter| format!("Forwarded packets do not come to {filter}.");
    Ok(filters.iter().map(note).collect())
}

fn named(
    socket: &mut NetlinkSocket,
    names: &[String],
) -> Result<Vec<EthernetInterface>, EngineError> {
    let mut interfaces: Vec<EthernetInterface> = Vec::new();
    for name in names {
        let interface = EthernetInterface::named(socket, name)?;
        if interfaces.iter().any(|it| it.ifindex == interface.ifindex) {
            return Err(EngineError::Usage(format!(
                "interface '{name}' is named twice; a router needs two different ones at least"
            )));
        }
        interfaces.push(interface);
    }
    Ok(interfaces)
}

/// What the kernel itself does not forward.
///
/// # Errors
/// When that is everything.
fn forwarding_notes(interfaces: &[EthernetInterface]) -> Result<Vec<String>, EngineError> {
    let (mut notes, mut forwards_some) = (Vec::new(), false);
    for (family, folder, remedy) in [
        ("IPv4", "ipv4", "net.ipv4.ip_forward=1"),
        ("IPv6", "ipv6", "net.ipv6.conf.all.forwarding=1"),
    ] {
        let names = interfaces.iter().map(|interface| interface.name.as_str());
        let off: Vec<&str> = names.filter(|name| !forwards(folder, name)).collect();
        forwards_some |= off.len() < interfaces.len();
        if !off.is_empty() {
            notes.push(format!(
                "The kernel does not forward {family} that comes to {}, so neither does this: 'sysctl {remedy}' turns \
                 it on.",
                off.join(", ")
            ));
        }
    }
    match forwards_some {
        true => Ok(notes),
        false => Err(EngineError::Failed(String::from(
            "the kernel forwards nothing here, so neither does nicpoll; turn it on with 'sysctl net.ipv4.ip_forward=1' \
             and, for IPv6, 'sysctl net.ipv6.conf.all.forwarding=1'",
        ))),
    }
}

/// Whether the kernel forwards the packets of a family that come to an interface. A kernel without it forwards none.
fn forwards(family: &str, interface: &str) -> bool {
    let path = format!("/proc/sys/net/{family}/conf/{interface}/forwarding");
    fs::read_to_string(path).is_ok_and(|text| text.trim() != "0")
}

/// Why frames do not leave by an interface, and what to do.
fn no_exit(interface: &EthernetInterface) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_option_is_left_out_and_so_are_several() {
        for (options, told) in [
            (&["--hz"][..], ["has --hz;", "leave that out"]),
            (&["--hz", "--set"], ["has --hz, --set;", "leave those out"]),
        ] {
            let text = no_engine(options).to_string();
            assert!(told.iter().all(|words| text.contains(words)), "{text}");
        }
    }
}
