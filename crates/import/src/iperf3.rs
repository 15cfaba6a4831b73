//! What `iperf3 -J` prints: one JSON object a run. Several may follow one another.

use nicpoll_model::FileError;
use serde_json::{Deserializer, Value};

use crate::{Quantity, ToolRun, error};

/// Whether it begins as an object does.
pub fn looks_so(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Each object is a run: payload that was delivered, bits a second.
pub fn parse(text: &str) -> Result<Vec<ToolRun>, FileError> {
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
    let mut run = ToolRun::new(line, Quantity::BitsPerSecond);
    let lost = figure(&end["sum"]["lost_percent"]).map(|percent| percent / 100.0);
    run.loss_ratio = lost.filter(|share| *share <= 1.0);
    run.jitter_seconds = figure(&end["sum"]["jitter_ms"]).map(|ms| ms / 1e3);
    // A server that sent knows of no receiver, and says 0.
    let received = figure(&end["sum_received"]["bits_per_second"]).filter(|it| *it > 0.0);
    let sent = || figure(&end["sum_sent"]["bits_per_second"]);
    // Old releases have one sum for datagrams: what was sent, and which share was lost.
    let summed = || figure(&end["sum"]["bits_per_second"]);
    run.is_sent = received.is_none() && run.loss_ratio.is_none();
    run.value =
        received.or_else(|| Some(sent().or_else(summed)? * (1.0 - run.loss_ratio.unwrap_or(0.0))));
    run.series = intervals(&object["intervals"]);
    Ok(run)
}

fn figure(value: &Value) -> Option<f64> {
    value.as_f64().filter(|it| it.is_finite() && *it >= 0.0)
}

/// The rates of the intervals, without those that -O leaves out and a last one that is cut short.
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
