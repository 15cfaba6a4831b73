//! Describes a design to the simulator, so that a prediction can be shown next to each measurement.
//!
//! Traffic that the simulator would run differently is left out. Of a setting only the receiver's discipline and its
//! period are simulated.

use nicpoll_iperf::UdpWorkload;
use nicpoll_lab::{Refused, Topology, TopologyKind, WorkloadRequest};
use nicpoll_model::Protocol;
use nicpoll_model::line::IpVersion;
use nicpoll_model::sim::ToSimulate;
use nicpoll_traffic::netrate::NetrateWorkload;
use nicpoll_traffic::rr::RrWorkload;

use crate::design::{Design, Evidence, NamedWorkload};

/// The refusal of a design that cannot be simulated.
const NOTHING_TO_SIMULATE: &str = "\
nothing of this study can be simulated: the simulator knows UDP one way, and request and response of one client over \
UDP, over one link without shaping, under settings whose NAPI is woken by each arrival or by a timer; leave out \
--simulate";

impl Design {
    /// Returns every workload under every setting that the simulator can run.
    ///
    /// # Errors
    /// When it can run none.
    pub fn to_simulate(&self) -> Result<Vec<ToSimulate>, Refused> {
        let mut all = Vec::new();
        for workload in self.workloads.iter().filter(|_| is_plain(&self.topology)) {
            let Some(traffic) = traffic(workload) else {
                continue;
            };
            for setting in &self.settings {
                let period_ns = match setting.evidence {
                    Evidence::Polls => None,
                    Evidence::Rounds { period_ns } => Some(period_ns),
                    Evidence::AsItIs | Evidence::NoNapi => continue,
                };
                all.push(ToSimulate {
                    workload: workload.name.clone(),
                    traffic: traffic.clone(),
                    setting: String::from(setting.name()),
                    period_ns,
                });
            }
        }
        match all.is_empty() {
            true => Err(Refused(String::from(NOTHING_TO_SIMULATE))),
            false => Ok(all),
        }
    }
}

/// Returns whether the topology is a pair with one unshaped link.
fn is_plain(topology: &Topology) -> bool {
    topology.kind == TopologyKind::Pair
        && topology.links() == 1
        && topology.rate.is_none()
        && !topology.impairs()
}

/// Returns a workload in the simulator's notation.
fn traffic(workload: &NamedWorkload) -> Option<String> {
    let options = &workload.options;
    // A share of a knee has no rate yet.
    let is_open = workload
        .load
        .as_ref()
        .is_some_and(|load| load.asked_per_second.is_none());
    if options.both_ways || !options.background.is_empty() || is_open {
        return None;
    }
    let words = match &workload.request {
        WorkloadRequest::Udp(UdpWorkload {
            payload_bytes,
            packets_per_second: Some(rate),
            ..
        }) => {
            let bits_per_second = rate.get().checked_mul(8 * u64::from(*payload_bytes))?;
            format!("iperf-udp:rate={bits_per_second}:payload={payload_bytes}")
        }
        WorkloadRequest::Udp(UdpWorkload { payload_bytes, .. })
        | WorkloadRequest::Netrate(NetrateWorkload { payload_bytes }) => {
            format!("netblast:payload={payload_bytes}")
        }
        WorkloadRequest::Rr(rr) if is_one_client(rr) => String::from("rr:payload=64"),
        _ => return None,
    };
    Some(match options.ip {
        IpVersion::V4 => words,
        IpVersion::V6 => words + ":ip=6",
    })
}

fn is_one_client(rr: &RrWorkload) -> bool {
    rr.clients() == 1 && rr.requests_per_second.is_none() && rr.protocol() == Protocol::Udp
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::demo;
    use crate::design::file::StudyFile;
    use crate::design::file::tests::TWO;
    use std::time::Duration;

    #[test]
    fn the_demo_is_simulated_where_a_napi_receives_datagrams() {
        let rows = demo::design(Duration::from_micros(50))
            .to_simulate()
            .unwrap();
        let words = |row: &ToSimulate| {
            let ToSimulate {
                workload,
                traffic,
                setting,
                period_ns,
            } = row;
            format!("{workload} {traffic} {setting} {period_ns:?}")
        };
        let words: Vec<String> = rows.iter().map(words).collect();
        assert_eq!(
            words,
            [
                "udp1470 netblast:payload=1470 interrupt None",
                "udp1470 netblast:payload=1470 polling Some(50000)",
                "udp64 netblast:payload=64 interrupt None",
                "udp64 netblast:payload=64 polling Some(50000)",
                "rr rr:payload=64 interrupt None",
                "rr rr:payload=64 polling Some(50000)",
            ]
        );
    }

    #[test]
    fn what_the_simulator_would_run_as_something_else_is_left_out() {
        let of = |text: &str| StudyFile::parse(text).unwrap().design.to_simulate();
        let file = format!("blocks = 3\n{TWO}ip = \"v6\"\n");
        let rows = of(&file).unwrap();
        assert_eq!(rows[0].traffic, "iperf-udp:rate=32000000:payload=200:ip=6");
        let periods: Vec<_> = rows.iter().map(|row| row.period_ns).collect();
        assert_eq!(periods, [Some(50_000), Some(1_000_000)]);
        for (find, replace) in [
            ("ip = \"v6\"", "both_ways = true"),
            ("ip = \"v6\"", "beside = [{ traffic = { kind = \"tcp\" } }]"),
            (
                "kind = \"udp\", payload_bytes = 200, packets_per_second = 20000",
                "kind = \"tcp\"",
            ),
            (
                "kind = \"udp\", payload_bytes = 200, packets_per_second = 20000",
                "kind = \"rr\", clients = 4",
            ),
            (
                "blocks = 3",
                "blocks = 3\ntopology = { rate = \"100mbit\" }",
            ),
        ] {
            let text = file.replacen(find, replace, 1);
            assert_ne!(text, file);
            let why = of(&text).unwrap_err().to_string();
            assert!(why.starts_with("nothing of this study"), "{replace}: {why}");
        }
    }
}
