//! The demo: the study of `studies/demo.toml`, and what its options make of it.

mod help;

use std::time::Duration;

use nicpoll_iperf::UdpWorkload;
use thiserror::Error;

use crate::design::{Design, NamedSetting, UnknownWorkload, Versus};
use crate::file::StudyFile;
use crate::ready::READY;
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

/// The workloads of a quick demo: one that many packets decide, and one that each packet's delay does.
pub const QUICK_WORKLOADS: [&str; 2] = ["udp64", "rr"];

/// The demo as its study file has it.
pub(crate) fn file() -> StudyFile {
    let (_, text) = READY[0];
    StudyFile::parse(text).expect("the program's own file is read by its tests")
}

/// The demo's design, for a period of polling.
pub fn design(period: Duration) -> Design {
    file().design.with_period(period)
}

/// A design with the one comparison in which the settings differ in the discipline alone.
pub fn polling_against_interrupt(design: Design) -> Design {
    let contrast = versus(POLLING, INTERRUPT);
    let drop_order = design.drop_order_of(std::slice::from_ref(&contrast));
    let settings = design.settings.into_iter();
    Design {
        settings: settings
            .filter(|setting| setting.name() != DEFAULT)
            .collect(),
        drop_order,
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
        topology: design.topology.clone(),
        settings: labelled(1).chain(labelled(2)).collect(),
        drop_order: design.drop_order_of(std::slice::from_ref(&contrast)),
        contrasts: vec![contrast],
        question: String::from("Is a setting unlike itself?"),
        factors: Vec::new(),
        workloads: design.workloads,
    }
}

fn versus(setting: &str, reference: &str) -> Versus {
    Versus {
        setting: String::from(setting),
        reference: String::from(reference),
    }
}

/// The name of one of the demo's workloads, if it is one.
pub fn workload_name(name: &str) -> Result<String, UnknownWorkload> {
    let name = String::from(name);
    file()
        .design
        .with_workloads(std::slice::from_ref(&name))
        .map(|_| name)
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
    design(period).settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_design_is_data_and_its_names_fit_together() {
        let design = design(Duration::from_micros(100));
        assert!(
            design
                .timed()
                .all(|setting| setting.period_ns() == Some(100_000))
        );
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
