//! iperf 2's text and iperf3's JSON.

use std::collections::HashMap;

use nicpoll_model::FileError;
use serde_json::{Deserializer, Value};

use crate::cursor::Cursor;
use crate::formats::run::{MeasuredQuantity, ToolRun, error};
use crate::lines::iperf;
use crate::lines::seen::{IperfLine, Lines, Seen};

/// The lines with one id in brackets.
#[derive(Debug, Default)]
struct TestStream {
    id: String,
    lines: Lines<IperfLine>,
    report: Option<IperfLine>,
    awaits_report: bool,
}

/// The streams of one test.
#[derive(Debug, Default)]
struct IperfTest {
    line: usize,
    streams: Vec<TestStream>,
    /// Index in `streams` by id.
    by_id: HashMap<String, usize>,
    /// Number of streams that have their last line.
    over: usize,
    has_figures: bool,
    is_connected: bool,
    is_udp_client: bool,
}

/// Whether the text has figures of iperf 2. iperf3's text looks similar, but says Bitrate.
pub fn looks_like_iperf2(text: &str) -> bool {
    text.lines()
        .any(|line| line.starts_with("[ ID] Interval") || iperf::begins_figures(line))
}

/// Returns each test as a run; payload in bit/s.
pub fn parse_iperf2(text: &str) -> Result<Vec<ToolRun>, FileError> {
    let mut tests: Vec<IperfTest> = Vec::new();
    let mut test = IperfTest::default();
    let mut is_udp_client = false;
    for (index, text) in text.lines().enumerate() {
        let at = index + 1;
        if text.contains("Bitrate") {
            let message = "this is iperf3's text, which leaves figures out; run iperf3 with -J";
            return Err(error(at, message));
        }
        if let Some(banner) = iperf::banner(&mut Cursor::new(text.as_bytes(), 0)) {
            is_udp_client = banner.is_udp && !banner.is_server;
            if test.has_figures {
                tests.push(std::mem::take(&mut test));
            }
        }
        match iperf::as_it_stands(text) {
            Some(Seen::Connected(connected)) => {
                if test.is_over() {
                    tests.push(std::mem::take(&mut test));
                }
                test.stream(&connected.id, at);
                test.is_connected = true;
            }
            Some(Seen::Report(id)) => test.stream(&id, at).awaits_report = true,
            Some(Seen::Interval(line)) => {
                if test.ends_before(&line) {
                    tests.push(std::mem::take(&mut test));
                }
                test.add(*line, at);
            }
            None if iperf::begins_figures(text) => {
                return Err(error(
                    at,
                    "expected '[ID] start-end sec transfer rate' with a rate such as '9.4 Mbits/sec'",
                ));
            }
            _ => continue,
        }
        test.is_udp_client |= is_udp_client;
    }
    tests.push(test);
    Ok(tests.iter().filter_map(IperfTest::run).collect())
}

impl TestStream {
    fn is_sum(&self) -> bool {
        self.id.starts_with("SUM")
    }

    /// Whether its last line is that of the whole test.
    fn is_over(&self) -> bool {
        self.lines
            .whole()
            .is_some_and(|at| at + 1 == self.lines.len())
    }

    /// The line of the whole test, and the others.
    fn divided(&self) -> (Option<&IperfLine>, &[IperfLine]) {
        match self.lines.split_last() {
            Some((last, others)) if self.is_over() => (Some(last), others),
            _ => (None, &self.lines),
        }
    }

    /// The rates of the intervals, without a final partial one.
    fn series(&self) -> Vec<f64> {
        let (_, lines) = self.divided();
        let length = |line: &IperfLine| line.end - line.start;
        let first = lines.first().map_or(0.0, length);
        let whole = lines.iter().filter(|line| length(line) > first / 2.0);
        whole.map(|line| line.bits_per_second).collect()
    }
}

impl IperfTest {
    fn stream(&mut self, id: &str, line: usize) -> &mut TestStream {
        if self.streams.is_empty() {
            self.line = line;
        }
        let next = self.streams.len();
        let index = *self.by_id.entry(String::from(id)).or_insert(next);
        if index == next {
            self.streams.push(TestStream {
                id: String::from(id),
                ..TestStream::default()
            });
        }
        &mut self.streams[index]
    }

    fn add(&mut self, line: IperfLine, at: usize) {
        let stream = self.stream(&line.id.clone(), at);
        if std::mem::take(&mut stream.awaits_report) {
            stream.report = Some(line);
            return;
        }
        let was_over = stream.is_over();
        stream.lines.add(line);
        let is_over = stream.is_over();
        self.over = self.over + usize::from(is_over) - usize::from(was_over);
        self.has_figures = true;
    }

    /// Whether all streams have their last line; another connection then starts another test.
    fn is_over(&self) -> bool {
        !self.streams.is_empty() && self.over == self.streams.len()
    }

    /// Whether a line must belong to another test because its stream starts again. If a text has no connection
    /// lines, each summary line is a test.
    fn ends_before(&self, line: &IperfLine) -> bool {
        let stream = self.by_id.get(&line.id).map(|at| &self.streams[*at]);
        let Some(stream) = stream.filter(|it| !it.awaits_report && line.start == 0.0) else {
            return false;
        };
        let has_intervals = stream.lines.len() > 1;
        stream.is_over() && (has_intervals || !self.is_connected)
    }

    fn run(&self) -> Option<ToolRun> {
        let mut run = ToolRun::new(self.line, MeasuredQuantity::BitsPerSecond);
        let parts = self.streams.iter().filter(|it| !it.lines.is_empty());
        let parts: Vec<&TestStream> = match parts.clone().find(|it| it.is_sum()) {
            Some(sum) => vec![sum],
            None => parts.collect(),
        };
        let own = self.streams.iter().filter(|it| !it.is_sum());
        let reports: Option<Vec<&IperfLine>> = own.map(|it| it.report.as_ref()).collect();
        let reports = reports.filter(|reports| !reports.is_empty());
        let totals: Option<Vec<&IperfLine>> = parts.iter().map(|it| it.divided().0).collect();
        run.is_sent = self.is_udp_client && reports.is_none();
        if let [one] = parts[..] {
            run.series = one.series();
        }
        let totals = reports.or(totals).filter(|totals| !totals.is_empty());
        if let Some(totals) = totals {
            let sum: f64 = totals.iter().map(|line| line.bits_per_second).sum();
            run.value = Some(sum).filter(|sum| sum.is_finite());
            let counts = totals.iter().map(|line| line.datagrams);
            let counts: Option<Vec<[f64; 2]>> = counts.collect();
            let of = |index: usize| counts.iter().flatten().map(|it| it[index]).sum::<f64>();
            run.loss_ratio = (of(1) > 0.0).then(|| of(0) / of(1)).filter(|it| *it <= 1.0);
            if let [one] = totals[..] {
                run.jitter_seconds = one.jitter_seconds;
            }
        }
        (run.value.is_some() || !run.series.is_empty()).then_some(run)
    }
}

/// Whether the text begins with an object, or an array of objects.
pub fn looks_like_iperf3(text: &str) -> bool {
    let text = text.trim_start();
    let of_array = text.strip_prefix('[').map(str::trim_start);
    of_array.unwrap_or(text).starts_with('{')
}

/// Returns each object as a run; delivered payload in bit/s. Objects follow each other or form an array; all
/// runs of an array have the line of its start.
pub fn parse_iperf3(text: &str) -> Result<Vec<ToolRun>, FileError> {
    let mut runs = Vec::new();
    let mut objects = Deserializer::from_str(text).into_iter::<Value>();
    let (mut line, mut counted) = (1, 0);
    loop {
        let end = objects.byte_offset();
        let rest = text.get(end..).unwrap_or_default();
        let from = end + (rest.len() - rest.trim_start().len());
        let since = &text.as_bytes()[counted..from];
        line += since.iter().filter(|byte| **byte == b'\n').count();
        counted = from;
        match objects.next() {
            None => return Ok(runs),
            Some(Ok(Value::Array(objects))) => {
                for object in &objects {
                    runs.push(run(line, object)?);
                }
            }
            Some(Ok(object)) => runs.push(run(line, &object)?),
            Some(Err(why)) => return Err(error(why.line().max(1), format!("not JSON: {why}"))),
        }
    }
}

fn run(line: usize, object: &Value) -> Result<ToolRun, FileError> {
    if let Some(why) = object["error"].as_str() {
        let message = format!("the run that begins here failed: {why}; leave it out, or repeat it");
        return Err(error(line, message));
    }
    if !object["end"].is_object() || !object["intervals"].is_array() {
        let message = "this JSON is not that of iperf3 -J, which has 'intervals' and 'end'";
        return Err(error(line, message));
    }
    let end = &object["end"];
    let mut run = ToolRun::new(line, MeasuredQuantity::BitsPerSecond);
    let lost = figure(&end["sum"]["lost_percent"]).map(|percent| percent / 100.0);
    run.loss_ratio = lost.filter(|share| *share <= 1.0);
    run.jitter_seconds = figure(&end["sum"]["jitter_ms"]).map(|ms| ms / 1e3);
    let of = |sum: &str| figure(&end[sum]["bits_per_second"]);
    // Old releases have one sum for datagrams: what was sent, and the share lost.
    let sent = of("sum_sent").or_else(|| of("sum"));
    // A server that sent has no receiver figures and states 0.
    let received = of("sum_received").filter(|it| *it > 0.0 || sent.is_none());
    run.is_sent = received.is_none() && run.loss_ratio.is_none();
    run.value = received.or_else(|| Some(sent? * (1.0 - run.loss_ratio.unwrap_or(0.0))));
    run.series = intervals(&object["intervals"]);
    Ok(run)
}

fn figure(value: &Value) -> Option<f64> {
    value.as_f64().filter(|it| it.is_finite() && *it >= 0.0)
}

/// The rates of the intervals, without those omitted by -O and a final partial one.
fn intervals(intervals: &Value) -> Vec<f64> {
    let sums = intervals
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| &it["sum"]);
    let counted = sums.filter(|sum| sum["omitted"].as_bool() != Some(true));
    let counted: Vec<(f64, f64)> = counted
        .filter_map(|sum| Some((figure(&sum["seconds"])?, figure(&sum["bits_per_second"])?)))
        .collect();
    let first = counted.first().map_or(0.0, |(seconds, _)| *seconds);
    let whole = counted.iter().filter(|(seconds, _)| *seconds > first / 2.0);
    whole.map(|(_, rate)| *rate).collect()
}
