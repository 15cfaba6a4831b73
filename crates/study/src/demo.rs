//! The built-in study: does polling pay, and under which traffic?
//!
//! veth has a receive NAPI only while GRO is on at that end, and packets go through it only while the
//! sending end has no TSO (kernel: veth_xmit, veth_skb_is_eligible_for_gro). `interrupt` and `polling`
//! both need both, so that between them only the discipline differs; `default` is the link as it
//! comes up and has neither.

mod help;

use std::collections::BTreeMap;
use std::time::Duration;

use nicpoll_iperf::{TcpWorkload, UdpWorkload};
use nicpoll_model::ComparisonName;
use nicpoll_switch::knob::table::{GRO, TSO};
use nicpoll_switch::{Request, Setting, Values};
use nicpoll_traffic::rr::RrWorkload;
use thiserror::Error;

use crate::design::{Design, Evidence, NamedSetting, NamedWorkload, Versus};
use crate::workload::WorkloadRequest;

pub use help::{ABOUT, EXAMPLES};

/// Large enough that datagrams are not lost for want of buffer while the receiver is preempted: what
/// is studied is the path to the socket.
pub const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// The receiver's NAPI, woken by each arrival.
pub const INTERRUPT: &str = "interrupt";
/// The receiver's NAPI, woken by a timer.
pub const POLLING: &str = "polling";
/// The link as it comes up.
pub const DEFAULT: &str = "default";

/// A setting that the demo does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no setting '{name}'; known are {DEFAULT}, {INTERRUPT}, {POLLING}")]
pub struct UnknownSetting {
    name: String,
}

/// The name of one of the demo's settings, if it is one.
pub fn setting_name(name: &str) -> Result<String, UnknownSetting> {
    let name = String::from(name);
    if [DEFAULT, INTERRUPT, POLLING].contains(&name.as_str()) {
        return Ok(name);
    }
    Err(UnknownSetting { name })
}

/// A workload that the demo does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no workload '{name}'; known are {known}")]
pub struct UnknownWorkload {
    name: String,
    known: String,
}

/// The workloads of a quick demo: one that many packets decide, and one that each packet's delay does.
pub const QUICK_WORKLOADS: [&str; 2] = ["udp64", "rr"];

/// The workloads by what they say about polling, the least first: UDP with large datagrams does what TCP
/// and small ones do between them.
const BY_IMPORTANCE: [&str; 4] = ["udp1470", "tcp", "rr", "udp64"];

/// The demo's design, for a period of polling.
pub fn design(period: Duration) -> Design {
    let references = [INTERRUPT, DEFAULT];
    Design {
        workloads: workloads(),
        settings: settings(period),
        contrasts: references
            .map(|reference| versus(POLLING, reference))
            .to_vec(),
        // Against the default go before those against interrupts, which differ in the discipline alone.
        drop_order: drop_order(&[versus(POLLING, DEFAULT), versus(POLLING, INTERRUPT)]),
    }
}

/// A design with the one comparison in which the settings differ in the discipline alone.
pub fn polling_against_interrupt(design: Design) -> Design {
    let contrast = versus(POLLING, INTERRUPT);
    let settings = design.settings.into_iter();
    Design {
        settings: settings
            .filter(|setting| setting.name() != DEFAULT)
            .collect(),
        drop_order: drop_order(std::slice::from_ref(&contrast)),
        contrasts: vec![contrast],
        ..design
    }
}

/// A design that compares a setting with itself under two labels: whatever differs is the instrument's.
pub fn null(design: Design, setting: &str) -> Design {
    let labelled = |label: u32| {
        let own = design.settings.iter().filter(|own| own.name() == setting);
        own.cloned().map(move |mut own| {
            own.setting.name = format!("{setting}-{label}");
            own.noun = format!("the same {} again", own.noun);
            own
        })
    };
    let contrast = versus(&format!("{setting}-2"), &format!("{setting}-1"));
    Design {
        settings: labelled(1).chain(labelled(2)).collect(),
        drop_order: drop_order(std::slice::from_ref(&contrast)),
        contrasts: vec![contrast],
        workloads: design.workloads,
    }
}

fn versus(setting: &str, reference: &str) -> Versus {
    Versus {
        setting: String::from(setting),
        reference: String::from(reference),
    }
}

/// Each contrast under every workload before the next contrast.
fn drop_order(contrasts: &[Versus]) -> Vec<ComparisonName> {
    let of = |versus: &Versus| {
        let Versus { setting, reference } = versus.clone();
        BY_IMPORTANCE.map(move |workload| ComparisonName {
            workload: String::from(workload),
            setting: setting.clone(),
            reference: reference.clone(),
        })
    };
    contrasts.iter().flat_map(of).collect()
}

/// The demo's traffic.
pub fn workloads() -> Vec<NamedWorkload> {
    let named = |name: &str, description: &str, request| NamedWorkload {
        name: String::from(name),
        description: String::from(description),
        request,
    };
    vec![
        named(
            "tcp",
            "one TCP stream, one way, as fast as it goes",
            WorkloadRequest::Tcp(TcpWorkload {}),
        ),
        named(
            "udp1470",
            "UDP with 1470 bytes of payload, as fast as one sender goes",
            udp(1470),
        ),
        named(
            "udp64",
            "UDP with 64 bytes of payload, as fast as one sender goes",
            udp(64),
        ),
        named(
            "rr",
            "request and response over UDP, 64 bytes each, one at a time",
            WorkloadRequest::Rr(RrWorkload {
                receive_buffer_bytes: Some(RECEIVE_BUFFER_BYTES),
            }),
        ),
    ]
}

/// The name of one of the demo's workloads, if it is one.
pub fn workload_name(name: &str) -> Result<String, UnknownWorkload> {
    let names: Vec<String> = workloads()
        .into_iter()
        .map(|workload| workload.name)
        .collect();
    if names.iter().any(|known| known == name) {
        return Ok(String::from(name));
    }
    Err(UnknownWorkload {
        name: String::from(name),
        known: names.join(", "),
    })
}

/// One UDP stream, as fast as one sender goes.
pub fn udp(payload_bytes: u16) -> WorkloadRequest {
    WorkloadRequest::Udp(UdpWorkload {
        payload_bytes,
        packets_per_second: None,
        receive_buffer_bytes: Some(RECEIVE_BUFFER_BYTES),
    })
}

/// The demo's settings, for a period of polling.
pub fn settings(period: Duration) -> Vec<NamedSetting> {
    let period_ns = period.as_nanos() as u64;
    let with_napi = Values::new().with(&GRO, 1);
    let by_timer = Values::polling(period_ns).with(&GRO, 1);
    let hosts = |receiver: Values| {
        let sender = Values::new().with(&TSO, 0);
        BTreeMap::from(
            [("sender", sender), ("receiver", receiver)]
                .map(|(host, set)| (String::from(host), Request::of(crate::INTERFACE, set))),
        )
    };
    let named = |name: &str, noun: &str, description: &str, hosts, evidence| NamedSetting {
        setting: Setting {
            name: String::from(name),
            description: String::from(description),
            hosts,
        },
        noun: String::from(noun),
        evidence,
    };
    vec![
        named(
            DEFAULT,
            "the default",
            "the veth link as it comes up: no receive NAPI, packets go through the per-CPU backlog",
            BTreeMap::new(),
            Evidence::NoNapi,
        ),
        named(
            INTERRUPT,
            "interrupts",
            "the receiver's NAPI, woken by each arrival that finds it idle",
            hosts(with_napi),
            Evidence::Polls,
        ),
        named(
            POLLING,
            "polling",
            "the receiver's NAPI, woken by a timer; arrivals wake nothing (NAPI interrupt deferral)",
            hosts(by_timer),
            Evidence::Rounds { period_ns },
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_design_is_data_and_its_names_fit_together() {
        let design = design(Duration::from_micros(200));
        let json = serde_json::to_string(&design).unwrap();
        assert_eq!(serde_json::from_str::<Design>(&json).unwrap(), design);
        for Versus { setting, reference } in &design.contrasts {
            assert!(design.setting(setting).is_some() && design.setting(reference).is_some());
        }
        assert_eq!(design.drop_order.len(), 2 * design.workloads.len());
        for comparison in &design.drop_order {
            assert!(design.workload(&comparison.workload).is_some());
        }
    }

    #[test]
    fn an_unknown_workload_is_refused_with_those_that_there_are() {
        assert_eq!(workload_name("rr").unwrap(), "rr");
        let error = workload_name("sctp").unwrap_err().to_string();
        assert!(
            error.ends_with("known are tcp, udp1470, udp64, rr"),
            "{error}"
        );
    }

    #[test]
    fn settings_say_what_they_write() {
        let facts = settings(Duration::from_micros(200))[2].facts();
        let writes: Vec<String> = facts
            .writes
            .iter()
            .map(|(side, name, value)| format!("{side}: {name} {value}"))
            .collect();
        assert_eq!(
            writes,
            [
                "sender: tx-tcp*-segmentation (TSO) off",
                "receiver: rx-gro (GRO) on",
                "receiver: napi_defer_hard_irqs 2147483647",
                "receiver: gro_flush_timeout calibrated in warm-up to one round in 200000 ns",
            ]
        );
    }
}
