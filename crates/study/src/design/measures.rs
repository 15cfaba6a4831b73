//! The metrics by which a workload is compared, fixed by its kind before the first trial.
//!
//! Traffic that goes as fast as it can is judged by its rate, requests at a rate by their median round trip, one-way
//! traffic at a rate by the share that arrives and by its CPU time. A comparison may ask for other measures.

use nicpoll_lab::{Traffic, WorkloadRequest};
use nicpoll_model::{Measure, Metric, WorkUnit, WorkloadFacts};

/// Returns the metrics of a workload. The first one of a measure represents it.
pub(crate) fn metrics<'a>(workload: impl Into<Traffic<'a>>) -> Vec<Metric> {
    let workload = workload.into();
    use Metric::*;
    let request = workload.request;
    let unit = request.workload().unit();
    let mut metrics = vec![rate(unit)];
    match unit {
        WorkUnit::Bytes => {}
        WorkUnit::Datagrams => {
            metrics.extend(is_paced(request).then_some(DeliveredRatio));
            metrics.push(LossRatio);
            let is_udp = matches!(request, WorkloadRequest::Udp(_));
            metrics.extend(is_udp.then_some(OneWayDelayP50Ns));
            let has_jitter = is_udp || matches!(request, WorkloadRequest::Command(_));
            metrics.extend(has_jitter.then_some(JitterSeconds));
        }
        WorkUnit::Transactions => {
            metrics.extend([RoundTripP50Ns, RoundTripP99Ns, RoundTripP999Ns]);
        }
    }
    // CPU time includes that of background traffic.
    let is_alone = workload.options.background.is_empty();
    metrics.extend(is_alone.then_some(match unit {
        WorkUnit::Bytes => CpuNsPerByte,
        WorkUnit::Datagrams | WorkUnit::Transactions => CpuNsPerPacket,
    }));
    metrics.extend([CpuBusy, ContextSwitchesPerSecond]);
    metrics
}

/// The metrics that get a verdict unless a comparison asks for others, the most important first.
pub(crate) fn judged_by_kind<'a>(workload: impl Into<Traffic<'a>>) -> Vec<Metric> {
    let workload = workload.into();
    let measures: &[Measure] = match workload.request.workload().unit() {
        _ if !is_paced(workload.request) => &[Measure::Rate],
        WorkUnit::Bytes => &[Measure::Rate, Measure::Cost],
        WorkUnit::Datagrams => &[Measure::Delivery, Measure::Cost],
        WorkUnit::Transactions => &[Measure::RoundTrip],
    };
    judged_by(measures, &metrics(workload))
}

/// Returns the metrics that represent measures, as far as the workload has them.
pub(crate) fn judged_by(measures: &[Measure], metrics: &[Metric]) -> Vec<Metric> {
    let of = |measure: &Measure| metrics.iter().find(|it| it.measure() == *measure).copied();
    measures.iter().filter_map(of).collect()
}

/// The metrics that get a verdict under a workload of a stored study by its kind.
pub(crate) fn judged_of(facts: &WorkloadFacts) -> Vec<Metric> {
    match facts.judged.is_empty() {
        true => vec![rate(facts.unit)],
        false => facts.judged.clone(),
    }
}

/// The metric of the rate.
pub(crate) fn rate(unit: WorkUnit) -> Metric {
    match unit {
        WorkUnit::Bytes | WorkUnit::Datagrams => Metric::DeliveredBitsPerSecond,
        WorkUnit::Transactions => Metric::TransactionsPerSecond,
    }
}

/// Returns whether it is sent at a rate, not as fast as it goes.
fn is_paced(request: &WorkloadRequest) -> bool {
    request.asked_per_second().is_some() || matches!(request, WorkloadRequest::Replay(_))
}

#[cfg(test)]
mod tests {
    use nicpoll_stats::order::Seed;
    use nicpoll_testkit::assert_has;

    use crate::design::file::StudyFile;
    use crate::design::file::tests::{TWO, assert_refused};

    const PACED: &str =
        r#"traffic = { kind = "udp", payload_bytes = 200, packets_per_second = 20000 }"#;

    /// The measures that get a verdict, and the size of the family.
    fn judged(text: &str) -> (Vec<&'static str>, u32) {
        let plan = StudyFile::parse(text).unwrap().plan(Seed(1)).unwrap().plan;
        let metrics = plan.drop_order.iter().flat_map(|it| &it.metrics);
        (
            metrics.map(|it| it.name()).collect(),
            plan.family_comparisons,
        )
    }

    #[test]
    fn the_kind_of_traffic_decides_what_gets_a_verdict() {
        let cases = r#"
        { kind = "udp", payload_bytes = 64 } | delivered_bits_per_second
        { kind = "tcp" } | delivered_bits_per_second
        { kind = "netrate", payload_bytes = 64 } | delivered_bits_per_second
        { kind = "rr" } | transactions_per_second
        { kind = "rr", requests_per_second = 200 } | round_trip_p50_ns
        { kind = "udp", payload_bytes = 64, packets_per_second = 9 } | delivered_ratio cpu_ns_per_packet
        { kind = "pulses", payload_bytes = 64, packets_per_pulse = 9 } | delivered_ratio cpu_ns_per_packet
        "#;
        for case in cases.lines().filter(|line| !line.trim().is_empty()) {
            let (traffic, wanted) = case.split_once('|').unwrap();
            let text = TWO.replace(PACED, &format!("traffic = {traffic}"));
            let (found, family) = judged(&text);
            assert_eq!(found.join(" "), wanted.trim(), "{traffic}");
            assert_eq!(family as usize, found.len(), "{traffic}");
        }
        // A flood's CPU time is not divided by a session's requests.
        let flood = r#"beside = [{ traffic = { kind = "netrate", payload_bytes = 64 } }]"#;
        let session = r#"traffic = { kind = "rr", requests_per_second = 200 }"#;
        let cost = "[[compare]]\nreference = \"short\"\nmeasure = [\"round trip\", \"cost\"]\n";
        for (beside, wanted) in [(flood, "cpu_busy"), ("", "cpu_ns_per_packet")] {
            let text = TWO.replace(PACED, &format!("{session}\n{beside}")) + cost;
            assert_eq!(judged(&text), (vec!["round_trip_p50_ns", wanted], 2));
        }
    }

    #[test]
    fn a_comparison_may_ask_for_other_measures() {
        let with =
            |asked: &str| format!("{TWO}[[compare]]\nreference = \"short\"\nmeasure = {asked}\n");
        assert_eq!(judged(&with("\"rate\"")).0, ["delivered_bits_per_second"]);
        let three = judged(&with("[\"delay\", \"cost\", \"loss\"]"));
        let metrics = vec!["one_way_delay_p50_ns", "cpu_ns_per_packet", "loss_ratio"];
        assert_eq!(three, (metrics, 3));
        let cases = r#"
        14 | no workload of this study measures a round trip; theirs are rate, cost, delay, delivery, loss | ["cost"] | "round trip"
        14 | 'speed' is no measure | ["cost"] | "speed"
        14 | did you mean 'cost' | ["cost"] | "costs"
        14 | stands twice | ["cost"] | ["cost", "cost"]
        14 | each with a verdict of its own; here it has 4 | ["cost"] | ["cost", "loss", "rate", "delay"]
        14 | a comparison has 1 to 3 measures | ["cost"] | []
        14 | such as "cost" | ["cost"] | 5
        "#;
        assert_refused(&with("[\"cost\"]"), cases);
        let blast = with("\"delay\"").replace(
            PACED,
            r#"traffic = { kind = "netrate", payload_bytes = 64 }"#,
        );
        let error = StudyFile::parse(&blast).unwrap_err();
        assert_has(&error.message, "theirs are rate, cost, loss");
    }
}
