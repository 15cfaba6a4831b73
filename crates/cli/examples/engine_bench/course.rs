//! The course of contenders: at the end of a link, or as a router between two.
//!
//! An XDP program at the receiver drops every frame behind a router, the same way for every contender.

use std::fs;
use std::path::Path;

use anyhow::Result;
use nicpoll_lab::{Topology, TopologyKind, Veth};
use nicpoll_model::Side;
use nicpoll_observe::{AttachedXdp, XdpMode};
use nicpoll_switch::Control;
use nicpoll_switch::knob::table;
use nicpoll_sys::netns::{NetNamespace, NetnsThread};

/// Place of a row's contenders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the receiving end.
    End,
    /// In the middle: frames that arrive at em0 are for a host behind em1.
    Middle,
}

/// The namespaces.
pub struct Course {
    // Dropped first: the program leaves before its interface.
    _drops: Option<AttachedXdp>,
    router: Option<NetnsThread<()>>,
    veth: Veth,
}

impl Course {
    /// Makes the namespaces. The contender's interface has a NAPI that packets go through.
    pub fn build(place: Place) -> Result<Self> {
        let course = match place {
            Place::End => Course {
                _drops: None,
                router: None,
                veth: Veth::build()?,
            },
            Place::Middle => Course::routed()?,
        };
        set_features(course.contender(), |feature| feature == "rx-gro", true)?;
        // A veth with any TSO gives packets to the per-CPU backlog, past its other end's NAPI. Long datagrams are cut
        // up before the link, so a receiver always sees single packets.
        let is_segmentation =
            |feature: &str| table::TSO.stands_for(feature) || feature == "tx-udp-segmentation";
        set_features(course.sender(), is_segmentation, false)?;
        Ok(course)
    }

    fn routed() -> Result<Self> {
        let veth = Veth::of(&Topology {
            kind: TopologyKind::Router,
            ..Topology::default()
        })?;
        let link = veth.link();
        let router = link.router().and_then(|end| end.namespace.as_ref());
        let router = router.map(NetNamespace::try_clone).transpose()?;
        let router = router.map(|namespace| NetnsThread::enter(namespace, || ()));
        let router = router.transpose()?;
        let hosts = [Side::Sender, Side::Receiver].map(|side| veth.inside(side));
        for host in hosts.into_iter().chain(&router) {
            host.run(|()| route_ipv4_only())??;
        }
        let drops = veth.inside(Side::Receiver).run(|()| drop_all("em0"))??;
        Ok(Course {
            _drops: Some(drops),
            router,
            veth,
        })
    }

    /// Returns the namespace of the feeder.
    pub fn sender(&self) -> &NetnsThread<()> {
        self.veth.inside(Side::Sender)
    }

    /// Returns the namespace of contenders.
    pub fn contender(&self) -> &NetnsThread<()> {
        match &self.router {
            Some(router) => router,
            None => self.veth.inside(Side::Receiver),
        }
    }

    /// Returns the namespace at the end of frames' path.
    pub fn receiver(&self) -> &NetnsThread<()> {
        self.veth.inside(Side::Receiver)
    }
}

/// Turns off IPv6 and reverse path checks: the links carry IPv4 only.
fn route_ipv4_only() -> Result<()> {
    for interface in ["all", "em0", "em1"] {
        for (setting, value) in [
            (format!("ipv4/conf/{interface}/rp_filter"), "0"),
            (format!("ipv6/conf/{interface}/disable_ipv6"), "1"),
        ] {
            let path = Path::new("/proc/sys/net").join(setting);
            // A kernel may lack IPv6, and a host em1.
            if path.exists() {
                fs::write(path, value)?;
            }
        }
    }
    Ok(())
}

fn drop_all(interface: &str) -> Result<AttachedXdp> {
    let object = concat!(env!("CARGO_MANIFEST_DIR"), "/../observe/bpf/xdp_drop.bpf.o");
    let ifindex = Control::new().interface(interface)?.ifindex;
    let mode = XdpMode::Native;
    Ok(AttachedXdp::of_file(
        Path::new(object),
        "drop_all_frames",
        ifindex,
        mode,
    )?)
}

fn set_features(host: &NetnsThread<()>, chosen: fn(&str) -> bool, is_on: bool) -> Result<()> {
    host.run(move |()| -> Result<()> {
        let mut control = Control::new();
        let ifindex = control.interface("em0")?.ifindex;
        let known = control.features(ifindex)?.active.into_keys();
        let wanted = known.filter(|name| chosen(name)).map(|name| (name, is_on));
        control.set_features(ifindex, &wanted.collect())?;
        Ok(())
    })?
}
