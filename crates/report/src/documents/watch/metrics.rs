//! An interval of a watch as OpenMetrics text, for Prometheus.
//!
//! One table has all metrics. Counters are totals and never fall while a watch runs; what was not counted is absent.

use std::fmt::Write as _;

use nicpoll_model::{WatchInterface, WatchSample};

use super::tables::BUCKETS;

/// A family of metrics.
struct Metric {
    /// Without the end `_total` that a counter's samples have.
    name: &'static str,
    kind: &'static str,
    /// The name ends with it; empty for none.
    unit: &'static str,
    help: &'static str,
    points: fn(&WatchSample) -> Vec<MetricPoint>,
}

/// The end of a sample's name, its labels, and its value.
type MetricPoint = (&'static str, Vec<(&'static str, String)>, f64);

const METRICS: [Metric; 8] = [
    Metric {
        name: "nicpoll_packets",
        kind: "counter",
        unit: "packets",
        help: "Packets of an interface since it was made, as the kernel counts.",
        points: |sample| flows(sample, |it| [it.rx.total_packets, it.tx.total_packets]),
    },
    Metric {
        name: "nicpoll_bytes",
        kind: "counter",
        unit: "bytes",
        help: "Bytes of an interface since it was made, with Ethernet headers.",
        points: |sample| flows(sample, |it| [it.rx.total_bytes, it.tx.total_bytes]),
    },
    Metric {
        name: "nicpoll_polls",
        kind: "counter",
        unit: "polls",
        help: "Calls of the poll functions of an interface's NAPI instances.",
        points: polls,
    },
    Metric {
        name: "nicpoll_packets_per_poll",
        kind: "histogram",
        unit: "",
        help: "Packets that a poll took.",
        points: packets_per_poll,
    },
    Metric {
        name: "nicpoll_discipline",
        kind: "gauge",
        unit: "",
        help: "1 for how the interface learned of packets in the last interval.",
        points: discipline,
    },
    Metric {
        name: "nicpoll_dropped_packets",
        kind: "counter",
        unit: "packets",
        help: "Packets that the network namespace dropped, by place; backlog is the machine's.",
        points: drops,
    },
    Metric {
        name: "nicpoll_cpu_seconds",
        kind: "counter",
        unit: "seconds",
        help: "Time of a CPU by state, exact to the event.",
        points: cpu,
    },
    Metric {
        name: "nicpoll_interrupts",
        kind: "counter",
        unit: "interrupts",
        help: "Interrupts and soft interrupts of the machine since boot.",
        points: interrupts,
    },
];

/// Renders an interval as OpenMetrics text.
pub fn render_watch_metrics(sample: &WatchSample) -> String {
    let mut text = String::new();
    for metric in &METRICS {
        let Metric { name, kind, .. } = metric;
        let unit = match metric.unit {
            "" => String::new(),
            unit => format!("# UNIT {name} {unit}\n"),
        };
        let help = metric.help;
        text.push_str(&format!(
            "# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n"
        ));
        for (end, labels, value) in (metric.points)(sample) {
            let labels = labels.iter();
            let labels = labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
            let labels = labels.collect::<Vec<_>>().join(",");
            writeln!(text, "{name}{end}{{{labels}}} {value}").expect("a String takes all");
        }
    }
    text + "# EOF\n"
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

/// A counter's sample, with two labels.
fn total(labels: [(&'static str, &str); 2], count: u64) -> MetricPoint {
    let labels = labels.map(|(label, value)| (label, String::from(value)));
    ("_total", labels.into(), count as f64)
}

fn interfaces(sample: &WatchSample) -> impl Iterator<Item = (&str, &WatchInterface)> {
    let interfaces = sample.interfaces.iter().flatten();
    interfaces.map(|interface| (interface.name.as_str(), interface))
}

fn flows(sample: &WatchSample, counts: fn(&WatchInterface) -> [u64; 2]) -> Vec<MetricPoint> {
    let points = interfaces(sample).flat_map(|(name, interface)| {
        let counts = ["rx", "tx"].into_iter().zip(counts(interface));
        counts.map(move |(way, count)| total([("interface", name), ("direction", way)], count))
    });
    points.collect()
}

fn polls(sample: &WatchSample) -> Vec<MetricPoint> {
    let points = interfaces(sample).flat_map(|(name, interface)| {
        let by_cpu = interface.polls.iter().flat_map(|polls| &polls.polls_by_cpu);
        by_cpu.map(move |(cpu, polls)| {
            total([("interface", name), ("cpu", &cpu.to_string())], *polls)
        })
    });
    points.collect()
}

fn packets_per_poll(sample: &WatchSample) -> Vec<MetricPoint> {
    let mut points = Vec::new();
    for (name, interface) in interfaces(sample) {
        let Some(polls) = &interface.polls else {
            continue;
        };
        let own = || vec![("interface", String::from(name))];
        let up_to = |most: u32| {
            let work = polls.packets_histogram.iter();
            let below = work.filter(|(packets, _)| *packets <= most);
            below.map(|(_, polls)| polls).sum::<u64>() as f64
        };
        points.extend(BUCKETS.map(|most| {
            let bound = match most {
                u32::MAX => String::from("+Inf"),
                most => format!("{most}.0"),
            };
            let labels = [own(), vec![("le", bound)]].concat();
            ("_bucket", labels, up_to(most))
        }));
        points.push(("_sum", own(), polls.packets as f64));
        points.push(("_count", own(), up_to(u32::MAX)));
    }
    points
}

fn discipline(sample: &WatchSample) -> Vec<MetricPoint> {
    let points = interfaces(sample).filter_map(|(name, interface)| {
        let labels = [
            ("interface", String::from(name)),
            ("discipline", interface.discipline?.to_string()),
        ];
        Some(("", labels.into(), 1.0))
    });
    points.collect()
}

fn drops(sample: &WatchSample) -> Vec<MetricPoint> {
    let points = sample.drops.iter().filter_map(|drops| {
        let labels = vec![("place", String::from(drops.place.key()))];
        Some(("_total", labels, drops.packets? as f64))
    });
    points.collect()
}

fn cpu(sample: &WatchSample) -> Vec<MetricPoint> {
    let points = sample.cpu_times.iter().flatten().flat_map(|times| {
        let states = times.states().into_iter();
        states.map(|(state, ns)| {
            let labels = [("cpu", times.core.to_string()), ("state", state.into())];
            ("_total", labels.into(), ns as f64 / 1e9)
        })
    });
    points.collect()
}

fn interrupts(sample: &WatchSample) -> Vec<MetricPoint> {
    let lines = sample.interrupts.iter().flatten();
    let points = lines.map(|line| {
        let labels = [("irq", &*line.irq), ("description", &*line.description)];
        total(labels, line.total_interrupts)
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dashboard_asks_for_all_metrics_and_for_no_others() {
        let text = include_str!("../../../../../packaging/grafana/nicpoll.json");
        let dashboard: serde_json::Value = serde_json::from_str(text).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let targets = panels
            .iter()
            .flat_map(|it| it["targets"].as_array().unwrap());
        let asked: Vec<&str> = targets.map(|it| it["expr"].as_str().unwrap()).collect();
        assert!(asked.len() >= panels.len());
        let words = asked
            .iter()
            .flat_map(|it| it.split(|it: char| !is_name(it)));
        let mut words: Vec<&str> = words.filter(|word| word.starts_with("nicpoll_")).collect();
        words.sort_unstable();
        words.dedup();
        let ends = |metric: &Metric| match metric.kind {
            "counter" => &["_total"][..],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        for metric in &METRICS {
            let names: Vec<String> = ends(metric)
                .iter()
                .map(|it| format!("{}{it}", metric.name))
                .collect();
            let before = words.len();
            words.retain(|word| !names.iter().any(|name| name == word));
            assert!(words.len() < before, "no panel shows {}", metric.name);
        }
        assert_eq!(words, Vec::<&str>::new(), "no such metrics");
    }

    fn is_name(it: char) -> bool {
        it.is_ascii_alphanumeric() || it == '_'
    }

    #[test]
    fn a_units_name_ends_a_metrics_and_values_of_labels_are_escaped() {
        for metric in &METRICS {
            assert!(metric.name.ends_with(metric.unit), "{}", metric.name);
        }
        assert_eq!(escaped("a\\\"\nb"), "a\\\\\\\"\\nb");
    }
}
