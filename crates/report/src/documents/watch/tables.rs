//! An interval of a watch as tables, and these as text.
//!
//! A missing figure is never shown as 0, and omissions are stated.

use nicpoll_model::numbers::{MISSING, count, figure, figure_or_missing};
use nicpoll_model::{
    CpuSource, WatchCost, WatchDrops, WatchFlow, WatchInterface, WatchInterrupt, WatchSample,
    WatchStart,
};

use crate::fields::{cells, filled};
use crate::text::aligned_lines;

/// Upper bound of each bucket of packets a poll.
pub(super) const BUCKETS: [u32; 9] = [0, 1, 3, 7, 15, 31, 63, 64, u32::MAX];

/// Unit of interface rates.
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
    /// All units, in the order of the key that changes them.
    pub const ALL: [WatchScale; 3] = [WatchScale::Bits, WatchScale::Bytes, WatchScale::Packets];

    /// Returns its name in options.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns the next unit.
    pub fn next(self) -> WatchScale {
        WatchScale::ALL[(self as usize + 1) % WatchScale::ALL.len()]
    }

    /// Returns its name in options, and its unit.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            WatchScale::Bits => ("bits", "bit"),
            WatchScale::Bytes => ("bytes", "B"),
            WatchScale::Packets => ("packets", "p"),
        }
    }

    /// Formats current rate, peak and total of a flow.
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
        let unit = self.names().1;
        let a_second = |rate: Option<f64>| {
            let text = rate.map(|rate| format!("{}{unit}/s", prefixed(rate)));
            text.unwrap_or(String::from(MISSING))
        };
        let total = format!("{}{unit}", prefixed(total));
        [a_second(rate), a_second(peak), total]
    }
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchTable {
    /// What it is about.
    pub title: String,
    /// The columns' heads.
    pub head: Vec<&'static str>,
    /// Index of the first column of figures.
    pub figures_from: usize,
    /// Rows with as many cells as the head.
    pub rows: Vec<Vec<String>>,
}

impl WatchTable {
    /// Makes a table; bars separate the names of its columns.
    fn new(
        title: impl Into<String>,
        head: &'static str,
        figures_from: usize,
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Self {
        WatchTable {
            title: title.into(),
            head: head.split('|').collect(),
            figures_from,
            rows: rows.collect(),
        }
    }
}

/// Returns an interval as tables, in the order of the text: rates of the interfaces, packets and polls, packets per
/// poll, CPU time, interrupts, drops, protocol counters.
pub fn tables(sample: &WatchSample, scale: WatchScale, storm_threshold: u64) -> [WatchTable; 7] {
    let interfaces = sample.interfaces.as_deref().unwrap_or_default();
    [
        traffic(sample, scale),
        polls(interfaces),
        histogram(interfaces),
        cpu(sample),
        interrupts(sample, storm_threshold),
        drops(&sample.drops),
        protocols(sample),
    ]
}

/// Renders what a watch cannot see; empty if it sees all.
pub fn render_watch_start(start: &WatchStart) -> String {
    let lines = start.unseen.iter();
    lines
        .map(|unseen| format!("not seen: {}: {}\n", unseen.what, unseen.why))
        .collect()
}

/// Renders an interval as text, with an empty line at its end.
pub fn render_watch_text(sample: &WatchSample, scale: WatchScale, storm_threshold: u64) -> String {
    let head = "== {elapsed_seconds:.1} s, the last {seconds:.2} s ==\n";
    let mut text = filled(head, sample);
    for table in tables(sample, scale, storm_threshold) {
        write_table(&mut text, &table);
    }
    text + &cost(&sample.cost) + "\n\n"
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

/// Formats three figures with a decimal prefix for the unit: `1.23 M`.
fn prefixed(value: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.into_iter().find(|(scale, _)| value >= *scale) {
        Some((scale, prefix)) => format!("{} {prefix}", figure(value / scale)),
        None => format!("{} ", figure(value)),
    }
}

fn traffic(sample: &WatchSample, scale: WatchScale) -> WatchTable {
    let title = match sample.interfaces {
        Some(_) => "interfaces",
        None => "interfaces (could not be listed)",
    };
    let head = "name|in now|in peak|in total|out now|out peak|out total";
    let interfaces = sample.interfaces.iter().flatten();
    let rows = interfaces.map(|it| {
        [
            std::slice::from_ref(&it.name),
            &scale.figures(&it.rx)[..],
            &scale.figures(&it.tx),
        ]
        .concat()
    });
    WatchTable::new(title, head, 1, rows)
}

fn polls(interfaces: &[WatchInterface]) -> WatchTable {
    let head = "name|discipline|in packets/s|out packets/s|polls/s|packets/poll";
    let rows = interfaces.iter().map(|it| {
        let name = it
            .discipline
            .map_or(MISSING, |discipline| discipline.name());
        let rates = [
            it.rx.packets_per_second,
            it.tx.packets_per_second,
            it.polls_per_second,
            it.packets_per_poll,
        ];
        let names = [it.name.clone(), String::from(name)];
        [&names[..], &rates.map(figure_or_missing)].concat()
    });
    WatchTable::new("packets and polls", head, 2, rows)
}

fn histogram(interfaces: &[WatchInterface]) -> WatchTable {
    let rows = interfaces.iter().filter_map(|interface| {
        let work = interface.packets_histogram.as_deref()?;
        let polls: u64 = work.iter().map(|(_, polls)| polls).sum();
        let mut from = 0;
        let shares = BUCKETS.map(|to| {
            let inside = work.iter();
            let inside = inside.filter(|(packets, _)| (from..=to).contains(packets));
            let share = inside.map(|(_, polls)| polls).sum::<u64>() as f64 / polls as f64;
            from = to.saturating_add(1);
            percent(share)
        });
        (polls > 0).then(|| [std::slice::from_ref(&interface.name), &shares[..]].concat())
    });
    let head = "name|0|1|2-3|4-7|8-15|16-31|32-63|64|more";
    WatchTable::new("packets of a poll, % of polls", head, 1, rows)
}

fn cpu(sample: &WatchSample) -> WatchTable {
    let source = match sample.cpu_source {
        CpuSource::Exact => "exact",
        CpuSource::TickSampled => "tick-sampled: what keeps step with the clock tick is misjudged",
    };
    let switches = figure(sample.context_switches_per_second);
    let title = format!("CPU, % ({source}); {switches} context switches/s");
    let head = "core|user|nice|system|irq|softirq|idle|steal";
    let rows = sample.cpu.iter().map(|cpu| {
        let busy = [
            cpu.user_ratio,
            cpu.nice_ratio,
            cpu.system_ratio,
            cpu.irq_ratio,
            cpu.softirq_ratio,
        ];
        let rest = [cpu.idle_ratio, cpu.steal_ratio].map(percent);
        [&[cpu.core.to_string()], &busy.map(percent)[..], &rest].concat()
    });
    WatchTable::new(title, head, 1, rows)
}

/// Formats a share in percent with one decimal; a share that would round to 0 shows as `<0.1`.
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
        return WatchTable::new("interrupts (could not be read)", "", 0, [].into_iter());
    };
    let mut lines: Vec<_> = lines.iter().collect();
    let rate = |line: &WatchInterrupt| line.interrupts_per_second.unwrap_or(0.0);
    lines.sort_by(|one, other| rate(other).total_cmp(&rate(one)));
    let looked_for = match storm_threshold {
        0 => String::from("storms are not looked for"),
        _ => format!(
            "storm: {} entries back to back, approximated",
            count(storm_threshold)
        ),
    };
    let rows = lines.into_iter().map(|line| {
        let storm = match line.is_storm {
            Some(true) => "STORM",
            Some(false) => "no",
            None => MISSING,
        };
        vec![
            format!("{} {}", line.irq, served(&line.description)),
            count(line.total_interrupts),
            figure_or_missing(line.interrupts_per_second),
            String::from(storm),
        ]
    });
    let title = format!("interrupts ({looked_for})");
    WatchTable::new(title, "source|since boot|per second|storm", 1, rows)
}

/// Returns an interrupt's device: the text after controller and trigger, or the whole text without these.
fn served(description: &str) -> &str {
    let ends = ["edge", "level", "fasteoi"].map(|trigger| {
        let at = description.find(&format!("{trigger} "))?;
        Some(at + trigger.len())
    });
    let end = ends.into_iter().flatten().min().unwrap_or(0);
    description[end..].trim_start()
}

fn drops(drops: &[WatchDrops]) -> WatchTable {
    let shown = drops.iter().filter(|drops| drops.packets != Some(0));
    let rows = shown.map(|drops| {
        let place = String::from(drops.place.name());
        let counts = cells(drops, &["{packets}", "{packets_per_second}"]);
        [&[place], &counts[..]].concat()
    });
    let title = "dropped packets (places without any left out)";
    WatchTable::new(title, "place|since start|per second", 1, rows)
}

fn protocols(sample: &WatchSample) -> WatchTable {
    let moved = sample.protocols.iter().filter(|counter| counter.events > 0);
    let rows = moved.map(|counter| cells(counter, &["{name}", "{events}", "{events_per_second}"]));
    let title = "IP and UDP (counters that did not move left out)";
    WatchTable::new(title, "counter|since start|per second", 1, rows)
}

/// Returns the cost of watching.
pub fn cost(cost: &WatchCost) -> String {
    let bpf = match cost.bpf_cpu_ratio {
        Some(_) => "{bpf_cpu_ratio:*100} % in its BPF programs",
        None => "no BPF programs were timed",
    };
    let process = "watching takes {process_cpu_ratio:*100} % of one core, and";
    filled(&format!("{process} {bpf}"), cost)
}
