//! What iperf 2 prints: text of 2.0 and of 2.1, of either side, with or without intervals, streams and `-e`.
//!
//! A line of figures is `[ID] start-end sec transfer rate ...`. Of the lines of a stream the last that starts at 0 and
//! reaches to the end is the whole test; the others are its intervals. `[SUM]` takes the place of the streams. A UDP
//! client's `Server Report` says what arrived, and takes the place of what was sent.

use nicpoll_model::FileError;

use crate::{Quantity, Run, error, rate};

/// A line of figures.
#[derive(Clone, Debug, Default)]
struct Line {
    start: f64,
    end: f64,
    bits_per_second: f64,
    jitter_seconds: Option<f64>,
    /// Lost, and all that were sent.
    datagrams: Option<[f64; 2]>,
}

/// The lines with one number in brackets.
#[derive(Debug)]
struct Stream {
    id: String,
    lines: Vec<Line>,
    report: Option<Line>,
    awaits_report: bool,
    is_connected: bool,
}

/// The streams of one test.
#[derive(Debug, Default)]
struct Test {
    line: usize,
    streams: Vec<Stream>,
    is_udp_client: bool,
}

/// Whether a line of figures is there. iperf3's text looks alike, and says Bitrate.
pub fn looks_so(text: &str) -> bool {
    text.lines().any(|line| {
        line.starts_with("[ ID] Interval")
            || bracketed(line).is_some_and(|(_, rest)| times(rest).is_some())
    })
}

/// Each test is a run: payload, bits a second.
pub fn parse(text: &str) -> Result<Vec<Run>, FileError> {
    let mut tests: Vec<Test> = Vec::new();
    let mut test = Test::default();
    let mut is_udp_client = false;
    for (index, text) in text.lines().enumerate() {
        let at = index + 1;
        if text.contains("Bitrate") {
            let message = "this is iperf3's text, which leaves figures out; run iperf3 with -J";
            return Err(error(at, message));
        }
        if text.starts_with("Client connecting to") || text.starts_with("Server listening on") {
            is_udp_client = text.starts_with("Client") && text.contains("UDP");
            if test.streams.iter().any(Stream::has_figures) {
                tests.push(std::mem::take(&mut test));
            }
        }
        let Some((id, rest)) = bracketed(text) else {
            continue;
        };
        if rest.contains(" connected with ") {
            if test.is_over() {
                tests.push(std::mem::take(&mut test));
            }
            test.stream(id, at).is_connected = true;
        } else if rest.trim() == "Server Report:" {
            test.stream(id, at).awaits_report = true;
        } else if let Some((start, end, figures)) = times(rest) {
            if figures.trim_end().ends_with("received out-of-order") {
                continue;
            }
            let line = line(start, end, figures).ok_or_else(|| {
                error(at, "expected '[ID] start-end sec transfer rate' with a rate such as '9.4 Mbits/sec'")
            })?;
            if test.ends_before(id, &line) {
                tests.push(std::mem::take(&mut test));
            }
            test.stream(id, at).add(line);
        }
        test.is_udp_client |= is_udp_client;
    }
    tests.push(test);
    Ok(tests.iter().filter_map(Test::run).collect())
}

/// What stands in brackets at the beginning of a line, and what follows.
fn bracketed(line: &str) -> Option<(&str, &str)> {
    let (id, rest) = line.strip_prefix('[')?.split_once(']')?;
    Some((id.trim(), rest))
}

/// Beginning and end of an interval, and what follows.
fn times(rest: &str) -> Option<(f64, f64, &str)> {
    let (times, figures) = rest.split_once(" sec ")?;
    let (start, end) = times.split_once('-')?;
    Some((rate(start.trim())?, rate(end.trim())?, figures))
}

fn line(start: f64, end: f64, figures: &str) -> Option<Line> {
    // Transfer with its unit, the rate with its unit; then what a receiver knows.
    let mut words = figures.split_whitespace();
    let (_, _, number, unit) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (_, rest) = figures.split_once(unit)?;
    Some(Line {
        start,
        end,
        bits_per_second: bits_per_second(number, unit)?,
        jitter_seconds: jitter(rest),
        datagrams: datagrams(rest),
    })
}

/// A rate in bits a second: bits by thousands, bytes by 1024.
fn bits_per_second(number: &str, unit: &str) -> Option<f64> {
    let unit = unit.strip_suffix("/sec")?;
    let power = |prefix: &str| {
        ["", "K", "M", "G", "T", "P"]
            .iter()
            .position(|it| *it == prefix)
    };
    if let Some(prefix) = unit.strip_suffix("bits") {
        rate(number)?;
        // The nearest number to the one that is printed, which a product need not be.
        return rate(&format!("{number}e{}", 3 * power(prefix)?));
    }
    let power = power(unit.strip_suffix("Bytes")?)?;
    Some(rate(number)? * 1024f64.powi(power as i32) * 8.0).filter(|rate| rate.is_finite())
}

fn jitter(rest: &str) -> Option<f64> {
    let (ms, _) = rest.split_once(" ms")?;
    Some(rate(ms.trim())? / 1e3)
}

fn datagrams(rest: &str) -> Option<[f64; 2]> {
    let counts = rest.split_once(" ms").map_or(rest, |(_, counts)| counts);
    let (counts, _) = counts.split_once('(')?;
    let (lost, all) = counts.split_once('/')?;
    Some([rate(lost.trim())?, rate(all.trim())?])
}

impl Stream {
    fn has_figures(&self) -> bool {
        !self.lines.is_empty()
    }

    fn is_sum(&self) -> bool {
        self.id.starts_with("SUM")
    }

    fn add(&mut self, line: Line) {
        if std::mem::take(&mut self.awaits_report) {
            self.report = Some(line);
        } else {
            self.lines.push(line);
        }
    }

    /// The line of the whole test, and the others.
    fn divided(&self) -> (Option<&Line>, &[Line]) {
        let Some((last, others)) = self.lines.split_last() else {
            return (None, &[]);
        };
        let reaches = others.iter().all(|it| it.end <= last.end);
        match last.start == 0.0 && reaches {
            true => (Some(last), others),
            false => (None, &self.lines),
        }
    }

    /// The rates of the intervals, without a last one that is cut short.
    fn series(&self) -> Vec<f64> {
        let (_, lines) = self.divided();
        let length = |line: &Line| line.end - line.start;
        let first = lines.first().map_or(0.0, length);
        let whole = lines.iter().filter(|line| length(line) > first / 2.0);
        whole.map(|line| line.bits_per_second).collect()
    }
}

impl Test {
    fn stream(&mut self, id: &str, line: usize) -> &mut Stream {
        if self.streams.is_empty() {
            self.line = line;
        }
        let known = self.streams.iter().position(|stream| stream.id == id);
        let index = known.unwrap_or_else(|| {
            self.streams.push(Stream {
                id: String::from(id),
                lines: Vec::new(),
                report: None,
                awaits_report: false,
                is_connected: false,
            });
            self.streams.len() - 1
        });
        &mut self.streams[index]
    }

    /// Whether all of its streams have their last line, so that another connection is another test's.
    fn is_over(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(|it| it.divided().0.is_some())
    }

    /// Whether a line can only be another test's: its stream starts anew. Where lines were picked out of a text,
    /// without those of the connections, each is a test.
    fn ends_before(&self, id: &str, line: &Line) -> bool {
        let stream = self.streams.iter().find(|stream| stream.id == id);
        let Some(stream) = stream.filter(|it| !it.awaits_report && line.start == 0.0) else {
            return false;
        };
        let has_intervals = stream.lines.len() > 1;
        let is_over = stream.divided().0.is_some() && stream.has_figures();
        is_over && (has_intervals || !self.streams.iter().any(|it| it.is_connected))
    }

    fn run(&self) -> Option<Run> {
        let mut run = Run::new(self.line, Quantity::BitsPerSecond);
        let sum = self
            .streams
            .iter()
            .find(|it| it.is_sum() && it.has_figures());
        let parts: Vec<&Stream> = match sum {
            Some(sum) => vec![sum],
            None => self.streams.iter().filter(|it| it.has_figures()).collect(),
        };
        let own = self.streams.iter().filter(|it| !it.is_sum());
        let reports: Option<Vec<&Line>> = own.map(|it| it.report.as_ref()).collect();
        let reports = reports.filter(|reports| !reports.is_empty());
        let totals: Option<Vec<&Line>> = parts.iter().map(|it| it.divided().0).collect();
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
