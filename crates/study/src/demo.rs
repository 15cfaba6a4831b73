//! The built-in study: does polling pay, and under which traffic?
//!
//! veth has a receive NAPI only while GRO is on at that end, and packets go through it only while the
//! sending end has no TSO (kernel: veth_xmit, veth_skb_is_eligible_for_gro). `interrupt` and `polling`
//! both need both, so that between them only the discipline differs; `default` is the link as it
//! comes up and has neither.

use std::collections::BTreeMap;
use std::time::Duration;

use nicpoll_iperf::{TcpWorkload, UdpWorkload};
use nicpoll_switch::knob::table::{GRO, TSO};
use nicpoll_switch::{Request, Setting, Values};
use nicpoll_traffic::rr::RrWorkload;
use thiserror::Error;

use crate::design::{Dearest, Design, Evidence, NamedSetting, NamedWorkload, Versus};
use crate::workload::WorkloadRequest;

/// Large enough that datagrams are not lost for want of buffer while the receiver is preempted: what
/// is studied is the path to the socket.
pub const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// The receiver's NAPI, woken by each arrival.
pub const INTERRUPT: &str = "interrupt";
/// The receiver's NAPI, woken by a timer.
pub const POLLING: &str = "polling";
/// The link as it comes up.
pub const DEFAULT: &str = "default";

/// A workload that the demo does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no workload '{name}'; known are {known}")]
pub struct UnknownWorkload {
    name: String,
    known: String,
}

/// The demo's design, for a period of polling.
pub fn design(period: Duration) -> Design {
    Design {
        workloads: workloads(),
        settings: settings(period),
        contrasts: [INTERRUPT, DEFAULT]
            .map(|reference| Versus {
                setting: String::from(POLLING),
                reference: String::from(reference),
            })
            .to_vec(),
        // Counting polls costs most at one poll a packet, and accounting for CPU time at one interrupt
        // a packet.
        dearest: Dearest {
            workload: udp(64),
            setting: String::from(INTERRUPT),
        },
    }
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
        assert!(design.setting(&design.dearest.setting).is_some());
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
