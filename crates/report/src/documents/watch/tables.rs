//! An interval of a watch as tables, and these as text.
//!
//! A missing figure is never shown as 0, and what is left out is said to be.

use nicpoll_model::{CpuSource, WatchDrops, WatchFlow, WatchInterface, WatchSample, WatchStart};

use nicpoll_model::numbers::{MISSING, count, figure, figure_or_missing};

use crate::text::aligned_lines;

/// Buckets of packets a poll: the greatest of each, and its name.
const BUCKETS: [(u32, &str); 9] = [
    (0, "0"),
    (1, "1"),
    (3, "2-3"),
    (7, "4-7"),
    (15, "8-15"),
    (31, "16-31"),
    (63, "32-63"),
    (64, "64"),
    (u32::MAX, "more"),
];

/// What interface rates are shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchScale {
    /// Bits a second.
    Bits,
    /// Bytes a second.
    Bytes,
    /// Packets a second.
    Packets,
}

impl WatchScale {
    /// All, in the order in which a key goes through them.
    pub const ALL: [WatchScale; 3] = [WatchScale::Bits, WatchScale::Bytes, WatchScale::Packets];

    /// As options name it.
    pub fn name(self) -> &'static str {
        match self {
            WatchScale::Bits => "bits",
            WatchScale::Bytes => "bytes",
            WatchScale::Packets => "packets",
        }
    }

    /// The one after it.
    pub fn next(self) -> WatchScale {
        match self {
            WatchScale::Bits => WatchScale::Bytes,
            WatchScale::Bytes => WatchScale::Packets,
            WatchScale::Packets => WatchScale::Bits,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            WatchScale::Bits => "bit",
            WatchScale::Bytes => "B",
            WatchScale::Packets => "p",
        }
    }

    /// Now, peak and total of a flow.
    fn figures(self, flow: &WatchFlow) -> [String; 3] {
        let (rate, peak, total) = match self {
            WatchScale::Packets => (
                flow.packets_per_second,
                flow.peak_packets_per_second,
                flow.total_packets as f64,
            ),
            WatchScale::Bits | WatchScale::Bytes => {
                let factor = if self == WatchScale::Bits { 8.0 } else { 1.0 };
                let scaled = |rate: Option<f64>| rate.map(|rate| factor * rate);
                (
                    scaled(flow.bytes_per_second),
                    scaled(flow.peak_bytes_per_second),
                    factor * flow.total_bytes as f64,
                )
            }
        };
        let rate_text = |rate: Option<f64>| {
            let text = |rate| format!("{}{}/s", prefixed(rate), self.unit());
            rate.map_or_else(|| String::from(MISSING), text)
        };
        [
            rate_text(rate),
            rate_text(peak),
            format!("{}{}", prefixed(total), self.unit()),
        ]
    }
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchTable {
    /// What it is about.
    pub title: String,
    /// A word over each column.
    pub head: Vec<&'static str>,
    /// Columns from here on are figures.
    pub figures_from: usize,
    /// As many words in each as in the head.
    pub rows: Vec<Vec<String>>,
}

/// An interval as tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchTables {
    /// Rates of the interfaces: a row for each.
    pub traffic: WatchTable,
    /// Packets and polls of the interfaces: a row for each.
    pub polls: WatchTable,
    /// How many packets polls took: a row for each interface that polled.
    pub histogram: WatchTable,
    /// CPU time by state: a row for each core.
    pub cpu: WatchTable,
    /// Interrupts, the most frequent first.
    pub interrupts: WatchTable,
    /// Places where packets were dropped, or that cannot be read.
    pub drops: WatchTable,
    /// Counters that moved.
    pub protocols: WatchTable,
    /// What watching takes.
    pub cost: String,
}

impl WatchTables {
    /// The tables of an interval.
    pub fn new(sample: &WatchSample, scale: WatchScale, storm_threshold: u64) -> Self {
        let interfaces = sample.interfaces.as_deref();
        WatchTables {
            traffic: traffic(interfaces, scale),
            polls: polls(interfaces.unwrap_or_default()),
            histogram: histogram(interfaces.unwrap_or_default()),
            cpu: cpu(sample),
            interrupts: interrupts(sample, storm_threshold),
            drops: drops(&sample.drops),
            protocols: protocols(sample),
            cost: cost(sample),
        }
    }

    /// All tables, in the order of the text.
    pub fn all(&self) -> [&WatchTable; 7] {
        [
            &self.traffic,
            &self.polls,
            &self.histogram,
            &self.cpu,
            &self.interrupts,
            &self.drops,
            &self.protocols,
        ]
    }
}

/// What a watch begins with: what it cannot see. Nothing when it sees all.
pub fn render_watch_start(start: &WatchStart) -> String {
    let lines = start.unseen.iter();
    lines
        .map(|unseen| format!("not seen: {}: {}\n", unseen.what, unseen.why))
        .collect()
}

/// An interval as text, with an empty line at its end.
pub fn render_watch_text(sample: &WatchSample, scale: WatchScale, storm_threshold: u64) -> String {
    let tables = WatchTables::new(sample, scale, storm_threshold);
    let mut text = format!(
        "== {:.1} s, the last {:.2} s ==\n",
        sample.elapsed_seconds, sample.seconds
    );
    for table in tables.all() {
        write_table(&mut text, table);
    }
    text.push_str(&tables.cost);
    text.push_str("\n\n");
    text
}

fn write_table(text: &mut String, table: &WatchTable) {
    text.push_str(&table.title);
    text.push('\n');
    if table.rows.is_empty() {
        text.push_str("  none\n");
        return;
    }
    let head = table.head.iter().map(ToString::to_string).collect();
    let lines: Vec<Vec<String>> = [head].into_iter().chain(table.rows.clone()).collect();
    for line in aligned_lines(&lines, table.figures_from).lines() {
        text.push_str(&format!("  {}\n", line.trim_end()));
    }
}

/// Three figures with a decimal prefix before the unit: `1.23 M`.
fn prefixed(value: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.into_iter().find(|(scale, _)| value >= *scale) {
        Some((scale, prefix)) => format!("{} {prefix}", figure(value / scale)),
        None => format!("{} ", figure(value)),
    }
}

fn traffic(interfaces: Option<&[WatchInterface]>, scale: WatchScale) -> WatchTable {
    let row = |interface: &WatchInterface| {
        let flows = [&interface.rx, &interface.tx].map(|flow| scale.figures(flow));
        let name = std::iter::once(interface.name.clone());
        name.chain(flows.into_iter().flatten()).collect()
    };
    WatchTable {
        title: match interfaces {
            Some(_) => String::from("interfaces"),
            None => String::from("interfaces (could not be listed)"),
        },
        head: vec![
            "name",
            "in now",
            "in peak",
            "in total",
            "out now",
            "out peak",
            "out total",
        ],
        figures_from: 1,
        rows: interfaces.unwrap_or_default().iter().map(row).collect(),
    }
}

fn polls(interfaces: &[WatchInterface]) -> WatchTable {
    let row = |interface: &WatchInterface| {
        let discipline = interface
            .discipline
            .map(|discipline| discipline.to_string());
        vec![
            interface.name.clone(),
            discipline.unwrap_or_else(|| String::from(MISSING)),
            figure_or_missing(interface.rx.packets_per_second),
            figure_or_missing(interface.tx.packets_per_second),
            figure_or_missing(interface.polls_per_second),
            figure_or_missing(interface.packets_per_poll),
        ]
    };
    WatchTable {
        title: String::from("packets and polls"),
        head: vec![
            "name",
            "discipline",
            "in packets/s",
            "out packets/s",
            "polls/s",
            "packets/poll",
        ],
        figures_from: 2,
        rows: interfaces.iter().map(row).collect(),
    }
}

fn histogram(interfaces: &[WatchInterface]) -> WatchTable {
    let row = |interface: &WatchInterface| {
        let work = interface.packets_histogram.as_deref()?;
        let polls: u64 = work.iter().map(|(_, polls)| polls).sum();
        let mut from = 0;
        let shares = BUCKETS.iter().map(|&(to, _)| {
            let inside = work
                .iter()
                .filter(|(packets, _)| (from..=to).contains(packets));
            let share = inside.map(|(_, polls)| polls).sum::<u64>() as f64 / polls as f64;
            from = to.saturating_add(1);
            percent(share)
        });
        let row: Vec<String> = std::iter::once(interface.name.clone())
            .chain(shares)
            .collect();
        (polls > 0).then_some(row)
    };
    let names = BUCKETS.iter().map(|(_, name)| *name);
    WatchTable {
        title: String::from("packets of a poll, % of polls"),
        head: std::iter::once("name").chain(names).collect(),
        figures_from: 1,
        rows: interfaces.iter().filter_map(row).collect(),
    }
}

fn cpu(sample: &WatchSample) -> WatchTable {
    let source = match sample.cpu_source {
        CpuSource::Exact => "exact",
        CpuSource::TickSampled => "tick-sampled: what keeps step with the clock tick is misjudged",
    };
    let row = |states: &nicpoll_model::CpuStates| {
        let shares = [
            states.user,
            states.nice,
            states.system,
            states.irq,
            states.softirq,
            states.idle,
            states.steal,
        ];
        let core = std::iter::once(states.core.to_string());
        core.chain(shares.map(percent)).collect()
    };
    WatchTable {
        title: format!(
            "CPU, % ({source}); {} context switches/s",
            figure(sample.context_switches_per_second)
        ),
        head: vec![
            "core", "user", "nice", "system", "irq", "softirq", "idle", "steal",
        ],
        figures_from: 1,
        rows: sample.cpu.iter().map(row).collect(),
    }
}

/// A share in percent with one decimal; what would round to 0 and is not shows as `<0.1`.
fn percent(share: f64) -> String {
    let percents = 100.0 * share;
    if !percents.is_finite() {
        return String::from(MISSING);
    }
    if percents > 0.0 && percents < 0.05 {
        return String::from("<0.1");
    }
    format!("{:.1}", percents.max(0.0))
}

fn interrupts(sample: &WatchSample, storm_threshold: u64) -> WatchTable {
    let Some(lines) = &sample.interrupts else {
        return WatchTable {
            title: String::from("interrupts (could not be read)"),
            head: Vec::new(),
            figures_from: 0,
            rows: Vec::new(),
        };
    };
    let mut lines: Vec<_> = lines.iter().collect();
    let rate = |line: &nicpoll_model::WatchInterrupt| line.interrupts_per_second.unwrap_or(0.0);
    lines.sort_by(|one, other| rate(other).total_cmp(&rate(one)));
    let row = |line: &nicpoll_model::WatchInterrupt| {
        vec![
            format!("{} {}", line.irq, served(&line.description)),
            count(line.total_interrupts),
            figure_or_missing(line.interrupts_per_second),
            String::from(match line.is_storm {
                Some(true) => "STORM",
                Some(false) => "no",
                None => MISSING,
            }),
        ]
    };
    let looked_for = if storm_threshold == 0 {
        String::from("storms are not looked for")
    } else {
        let threshold = count(storm_threshold);
        format!("storm: {threshold} entries back to back, approximated")
    };
    WatchTable {
        title: format!("interrupts ({looked_for})"),
        head: vec!["source", "since boot", "per second", "storm"],
        figures_from: 1,
        rows: lines.into_iter().map(row).collect(),
    }
}

/// Whom an interrupt is for: what stands after its controller and trigger, or all when nothing does.
fn served(description: &str) -> &str {
    let ends = ["edge", "level", "fasteoi"].map(|trigger| {
        let at = description.find(&format!("{trigger} "))?;
        Some(at + trigger.len())
    });
    let end = ends.into_iter().flatten().min().unwrap_or(0);
    description[end..].trim_start()
}

fn drops(drops: &[WatchDrops]) -> WatchTable {
    let row = |drops: &WatchDrops| {
        vec![
            String::from(drops.place.name()),
            drops.packets.map_or_else(|| String::from(MISSING), count),
            figure_or_missing(drops.packets_per_second),
        ]
    };
    let is_shown = |drops: &&WatchDrops| drops.packets != Some(0);
    WatchTable {
        title: String::from("dropped packets (places without any left out)"),
        head: vec!["place", "since start", "per second"],
        figures_from: 1,
        rows: drops.iter().filter(is_shown).map(row).collect(),
    }
}

fn protocols(sample: &WatchSample) -> WatchTable {
    let moved = sample.protocols.iter().filter(|counter| counter.events > 0);
    let rows = moved.map(|counter| {
        vec![
            counter.name.clone(),
            count(counter.events),
            figure(counter.events_per_second),
        ]
    });
    WatchTable {
        title: String::from("IP and UDP (counters that did not move left out)"),
        head: vec!["counter", "since start", "per second"],
        figures_from: 1,
        rows: rows.collect(),
    }
}

fn cost(sample: &WatchSample) -> String {
    let cost = &sample.cost;
    let bpf = match cost.bpf_cpu_ratio {
        Some(ratio) => format!("{} % in its BPF programs", figure(100.0 * ratio)),
        None => String::from("no BPF programs were timed"),
    };
    format!(
        "watching takes {} % of one core, and {bpf}",
        figure(100.0 * cost.process_cpu_ratio)
    )
}
