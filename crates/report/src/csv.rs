//! Studies and live comparisons as CSV (RFC 4180; lines end with a newline alone): for spreadsheets and R.
//!
//! What must hold: a line for each trial or block, a column for each figure, and nothing between the commas where
//! nothing was measured.

use nicpoll_model::ab::{AbBlock, AbCpu, AbSetting, LiveAb};
use nicpoll_model::{CoreSeries, Imported, ImportedTrial, LossPlace, Side, Study, Trial};

/// A column: its name, and what a row has there.
type Column<T> = (&'static str, fn(&T) -> Option<String>);

const TRIAL: [Column<Trial>; 27] = [
    ("sequence", |trial| some(trial.sequence)),
    ("block", |trial| some(trial.block)),
    ("workload", |trial| some(&trial.workload)),
    ("setting", |trial| some(&trial.setting)),
    ("external", |trial| trial.conduct.external.clone()),
    ("failure", |trial| trial.conduct.failure.clone()),
    ("unproven", |trial| trial.conduct.unproven.clone()),
    ("ledger_void", |trial| trial.conduct.ledger_void.clone()),
    ("offered_packets", |trial| {
        trial.figures.as_ref()?.offered_packets.and_then(some)
    }),
    ("delivered_packets", |trial| {
        trial.figures.as_ref()?.delivered_packets.and_then(some)
    }),
    ("delivered_bits_per_second", |trial| {
        some(trial.figures.as_ref()?.delivered_bits_per_second)
    }),
    ("delivered_packets_per_second", |trial| {
        let figures = trial.figures.as_ref()?;
        figures.delivered_packets_per_second.and_then(some)
    }),
    ("loss_ratio", |trial| trial.loss_ratio().and_then(some)),
    ("transactions_per_second", |trial| {
        let trips = trial.figures.as_ref()?.round_trip?;
        some(trips.transactions_per_second)
    }),
    ("round_trip_p50_ns", |trial| {
        some(trial.figures.as_ref()?.round_trip?.quantiles.p50_ns?)
    }),
    ("round_trip_p99_ns", |trial| {
        some(trial.figures.as_ref()?.round_trip?.quantiles.p99_ns?)
    }),
    ("jitter_seconds", |trial| {
        trial.figures.as_ref()?.jitter_seconds.and_then(some)
    }),
    ("one_way_p50_ns", |trial| one_way_ns(trial, 0.5)),
    ("one_way_p99_ns", |trial| one_way_ns(trial, 0.99)),
    ("spinner_cpu_ratio", |trial| {
        some(trial.figures.as_ref()?.spinner?.cpu_ratio)
    }),
    ("rounds_per_second", |trial| {
        trial.figures.as_ref()?.rounds_per_second.and_then(some)
    }),
    ("polls_per_second", |trial| {
        trial.figures.as_ref()?.polls_per_second.and_then(some)
    }),
    ("interrupts_per_second", |trial| {
        trial.figures.as_ref()?.interrupts_per_second.and_then(some)
    }),
    ("context_switches_per_second", |trial| {
        some(trial.figures.as_ref()?.context_switches_per_second)
    }),
    ("packets_per_poll", |trial| {
        trial.figures.as_ref()?.packets_per_poll.and_then(some)
    }),
    ("cpu_busy_ns_per_packet", |trial| {
        let cpu = trial.figures.as_ref()?.cpu.as_ref()?;
        cpu.busy_ns_per_packet.and_then(some)
    }),
    ("cpu_busy_ns_per_byte", |trial| {
        let cpu = trial.figures.as_ref()?.cpu.as_ref()?;
        cpu.busy_ns_per_byte.and_then(some)
    }),
];

fn one_way_ns(trial: &Trial, share: f64) -> Option<String> {
    let delays = trial.figures.as_ref()?.one_way_delays.as_ref()?;
    delays.quantile_ns(share).and_then(some)
}

/// A block of a live comparison.
struct Block {
    pair: usize,
    setting: String,
    is_first: bool,
    set_aside_because: Option<String>,
    block: AbBlock,
}

const BLOCK: [Column<Block>; 25] = [
    ("pair", |row| some(row.pair)),
    ("setting", |row| some(&row.setting)),
    ("is_first_of_pair", |row| some(row.is_first)),
    ("set_aside_because", |row| row.set_aside_because.clone()),
    ("start_seconds", |row| some(row.block.start_seconds)),
    ("left_out_seconds", |row| some(row.block.left_out_seconds)),
    ("seconds", |row| some(row.block.window.seconds)),
    ("rx_packets", |row| some(row.block.window.rx_packets)),
    ("tx_packets", |row| some(row.block.window.tx_packets)),
    ("rx_bytes", |row| some(row.block.window.rx_bytes)),
    ("tx_bytes", |row| some(row.block.window.tx_bytes)),
    ("cpu_busy_seconds", |row| {
        row.block.window.cpu?.busy_seconds().and_then(some)
    }),
    ("cpu_user_seconds", |row| cpu(row, |cpu| cpu.user_seconds)),
    ("cpu_system_seconds", |row| {
        cpu(row, |cpu| cpu.system_seconds)
    }),
    ("cpu_irq_seconds", |row| cpu(row, |cpu| cpu.irq_seconds)),
    ("cpu_softirq_seconds", |row| {
        cpu(row, |cpu| cpu.softirq_seconds)
    }),
    ("cpu_foreign_seconds", |row| {
        cpu(row, |cpu| cpu.foreign_seconds)
    }),
    ("cpu_steal_seconds", |row| cpu(row, |cpu| cpu.steal_seconds)),
    ("interrupts", |row| row.block.interrupts.and_then(some)),
    ("receive_softirqs", |row| {
        row.block.receive_softirqs.and_then(some)
    }),
    ("polls", |row| row.block.polls.and_then(some)),
    ("polled_packets", |row| {
        row.block.polled_packets.and_then(some)
    }),
    ("dropped_packets", |row| {
        let places = LossPlace::ALL.iter();
        let known = places.filter_map(|place| row.block.dropped_packets.at(*place));
        known.reduce(|sum, packets| sum + packets).and_then(some)
    }),
    ("context_switches", |row| {
        row.block.context_switches.and_then(some)
    }),
    ("retransmitted_segments", |row| {
        row.block.retransmitted_segments.and_then(some)
    }),
];

fn cpu(row: &Block, figure: fn(&AbCpu) -> f64) -> Option<String> {
    row.block.window.cpu.as_ref().map(figure).and_then(some)
}

fn some(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// The trials of a study, a line each.
pub fn trials_as_csv(study: &Study) -> String {
    table(&TRIAL, study.trials.iter())
}

/// A step of a trial.
struct Step {
    sequence: u32,
    block: u32,
    workload: String,
    setting: String,
    end_seconds: f64,
    sent_frames: Option<u64>,
    received_bytes: Option<u64>,
    read_datagrams: Option<u64>,
    dropped_frames: Option<u64>,
    dropped_datagrams: Option<u64>,
    polls: Option<u64>,
    busy_core_seconds: Option<f64>,
    interrupt_core_seconds: Option<f64>,
    cut_short_softirqs: Option<u64>,
}

const STEP: [Column<Step>; 14] = [
    ("sequence", |step| some(step.sequence)),
    ("block", |step| some(step.block)),
    ("workload", |step| some(&step.workload)),
    ("setting", |step| some(&step.setting)),
    ("end_seconds", |step| some(step.end_seconds)),
    ("sent_frames", |step| step.sent_frames.and_then(some)),
    ("received_bytes", |step| step.received_bytes.and_then(some)),
    ("read_datagrams", |step| step.read_datagrams.and_then(some)),
    ("dropped_frames", |step| step.dropped_frames.and_then(some)),
    ("dropped_datagrams", |step| {
        step.dropped_datagrams.and_then(some)
    }),
    ("polls", |step| step.polls.and_then(some)),
    ("busy_core_seconds", |step| {
        step.busy_core_seconds.and_then(some)
    }),
    ("interrupt_core_seconds", |step| {
        step.interrupt_core_seconds.and_then(some)
    }),
    ("cut_short_softirqs", |step| {
        step.cut_short_softirqs.and_then(some)
    }),
];

/// The steps of a trial.
fn steps(trial: &Trial) -> Vec<Step> {
    let figures = trial.figures.as_ref();
    let Some(series) = figures.and_then(|figures| figures.series.as_ref()) else {
        return Vec::new();
    };
    let ends = series.end_seconds.iter().enumerate();
    ends.map(|(index, end_seconds)| {
        let of = |counts: Option<&Vec<u64>>| counts?.get(index).copied();
        let of_cores = |read: fn(&CoreSeries) -> &Vec<f64>| {
            let cores = series.cores.iter();
            let seconds = cores.map(|core| read(core).get(index).copied());
            let sum = seconds.sum::<Option<f64>>();
            sum.filter(|_| !series.cores.is_empty())
        };
        Step {
            sequence: trial.sequence,
            block: trial.block,
            workload: trial.workload.clone(),
            setting: trial.setting.clone(),
            end_seconds: *end_seconds,
            sent_frames: of(Some(&series.sent_frames)),
            received_bytes: of(Some(&series.received_bytes)),
            read_datagrams: of(series.read_datagrams.as_ref()),
            dropped_frames: of(Some(&series.dropped_frames)),
            dropped_datagrams: of(series.dropped_datagrams.as_ref()),
            polls: of(series.polls.as_ref()),
            busy_core_seconds: of_cores(|core| &core.busy_seconds),
            interrupt_core_seconds: of_cores(|core| &core.interrupt_seconds),
            cut_short_softirqs: of(series.cut_short_softirqs.as_ref()),
        }
    })
    .collect()
}

/// What passed within the trials of a study, a line for each step.
pub fn series_as_csv(study: &Study) -> String {
    let steps: Vec<Step> = study.trials.iter().flat_map(steps).collect();
    table(&STEP, steps.iter())
}

const IMPORTED: [Column<ImportedTrial>; 18] = [
    ("sequence", |it| some(it.sequence)),
    ("test", |it| some(it.test)),
    ("tool", |it| some(&it.tool)),
    ("workload", |it| some(&it.workload)),
    ("setting", |it| some(&it.setting)),
    ("sender", |it| it.sender.clone()),
    ("receiver", |it| it.receiver.clone()),
    ("quantity", |it| some(&it.quantity)),
    ("value", |it| it.value.and_then(some)),
    ("is_sent", |it| some(it.is_sent)),
    ("duration_seconds", |it| it.duration_seconds.and_then(some)),
    ("loss_ratio", |it| {
        crate::text::imported::loss(it).and_then(some)
    }),
    ("jitter_seconds", |it| {
        of_side(it, Side::Receiver, "jitter_seconds")
    }),
    ("sender_cpu_interrupt_ratio", |it| {
        of_side(it, Side::Sender, "cpu_interrupt_ratio")
    }),
    ("sender_cpu_idle_ratio", |it| {
        of_side(it, Side::Sender, "cpu_idle_ratio")
    }),
    ("receiver_cpu_interrupt_ratio", |it| {
        of_side(it, Side::Receiver, "cpu_interrupt_ratio")
    }),
    ("receiver_cpu_idle_ratio", |it| {
        of_side(it, Side::Receiver, "cpu_idle_ratio")
    }),
    ("line", |it| some(it.place.line)),
];

fn of_side(trial: &ImportedTrial, side: Side, name: &str) -> Option<String> {
    crate::text::imported::value(trial, side, name).and_then(some)
}

/// Imported trials, a line each, in the order of the text.
pub fn imported_as_csv(imported: &Imported) -> String {
    table(&IMPORTED, imported.trials.iter())
}

/// The blocks of a live comparison, a line each, in the order in which they ran.
pub fn blocks_as_csv(compared: &LiveAb) -> String {
    let blocks = compared.pairs.iter().enumerate().flat_map(|(index, pair)| {
        let block = |setting: &AbSetting, block: &AbBlock, is_first| Block {
            pair: index + 1,
            setting: setting.name.clone(),
            is_first,
            set_aside_because: pair.set_aside_because.clone(),
            block: block.clone(),
        };
        let is_judged_first = pair.is_judged_first;
        let mut both = [
            block(&compared.reference, &pair.reference, !is_judged_first),
            block(&compared.judged, &pair.judged, is_judged_first),
        ];
        if is_judged_first {
            both.reverse();
        }
        both
    });
    let blocks: Vec<Block> = blocks.collect();
    table(&BLOCK, blocks.iter())
}

fn table<'a, T: 'a>(columns: &[Column<T>], rows: impl Iterator<Item = &'a T>) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut text = names.join(",");
    text.push('\n');
    for row in rows {
        let fields = columns.iter().map(|(_, value)| value(row));
        let fields: Vec<String> = fields
            .map(|value| quoted(value.unwrap_or_default()))
            .collect();
        text += &fields.join(",");
        text.push('\n');
    }
    text
}

fn quoted(field: String) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_a_field_for_each_column_and_none_where_nothing_was_measured() {
        let text = include_str!("../tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(text).unwrap();
        study.trials.truncate(1);
        let trial = &mut study.trials[0];
        trial.figures = None;
        trial.conduct.failure = Some(String::from("it said \"no\", and ended"));
        let csv = trials_as_csv(&study);
        let [head, line] = csv.lines().collect::<Vec<_>>()[..] else {
            panic!("two lines: {csv}");
        };
        assert!(head.starts_with("sequence,block,workload,setting,"));
        let quoted = "\"it said \"\"no\"\", and ended\"";
        assert!(line.contains(quoted), "{line}");
        let commas = |text: &str| text.matches(',').count();
        assert_eq!(commas(head), commas(&line.replace(quoted, "")));
        assert!(line.ends_with(",,,,"), "{line}");
    }

    #[test]
    fn a_step_of_a_trial_is_a_line() {
        let text = include_str!("../tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(text).unwrap();
        study.trials.retain(|trial| trial.figures.is_some());
        study.trials.truncate(2);
        study.trials[1].figures.as_mut().unwrap().series = None;
        let figures = study.trials[0].figures.as_mut().unwrap();
        let series = figures.series.as_mut().unwrap();
        series.read_datagrams = None;
        let series = series.clone();
        let csv = series_as_csv(&study);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + series.end_seconds.len());
        let fields: Vec<&str> = lines[1].split(',').collect();
        assert_eq!(fields.len(), lines[0].split(',').count());
        assert_eq!(fields[5], series.sent_frames[0].to_string());
        assert_eq!(fields[7], "", "a stream has no datagrams: {}", lines[1]);
        // Both cores together.
        let busy: f64 = fields[11].parse().unwrap();
        assert!(busy > series.cores[0].busy_seconds[0], "{}", lines[1]);
        assert_eq!(fields[13], "0", "{}", lines[1]);
    }

    #[test]
    fn a_live_comparison_has_a_line_for_each_block_in_the_order_of_time() {
        let text = include_str!("../tests/golden/ab.json");
        let mut compared: LiveAb = serde_json::from_str(text).unwrap();
        compared.pairs.truncate(1);
        compared.pairs[0].is_judged_first = true;
        compared.pairs[0].judged.window.cpu = None;
        let csv = blocks_as_csv(&compared);
        let [head, first, second] = csv.lines().collect::<Vec<_>>()[..] else {
            panic!("three lines: {csv}");
        };
        let commas = |text: &str| text.matches(',').count();
        assert_eq!([commas(first), commas(second)], [commas(head); 2]);
        assert!(
            first.starts_with(&format!("1,{},true,", compared.judged.name)),
            "{first}"
        );
        assert!(
            second.starts_with(&format!("1,{},false,", compared.reference.name)),
            "{second}"
        );
        let column = head
            .split(',')
            .position(|name| name == "cpu_busy_seconds")
            .unwrap();
        assert_eq!(first.split(',').nth(column), Some(""));
        assert_ne!(second.split(',').nth(column), Some(""));
    }
}
