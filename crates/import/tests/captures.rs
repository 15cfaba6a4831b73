//! Output of tools, and what is parsed from it: whole captures of iperf 2.1.8 and iperf3 3.12 over loopback;
//! for other tools, the layout of iperf 2.0, and torn output, small texts.

use std::fs;

use nicpoll_import::{ResultFormat, ToolRun};
use nicpoll_model::RoundTripQuantiles;
use nicpoll_testkit::golden_cases;

fn line(run: &ToolRun) -> String {
    let round_trip = Some(run.round_trip).filter(|it| *it != RoundTripQuantiles::default());
    format!(
        "line {}: {:?} {}, sent {}, loss {:?}, jitter {:?}, series {:?}, {round_trip:?}\n",
        run.line,
        run.value,
        run.quantity.name(),
        run.is_sent,
        run.loss_ratio,
        run.jitter_seconds,
        run.series
    )
}

/// What is parsed from a column of a text.
fn read(text: &str, column: usize) -> String {
    let format = ResultFormat::of(text);
    match format.read(text, column) {
        Ok(runs) => format!(
            "{}\n{}",
            format.word,
            runs.iter().map(line).collect::<String>()
        ),
        Err(error) => error.to_string(),
    }
}

#[test]
fn captures_are_read_as_recorded() {
    golden_cases("tests/captures/recorded.txt", |file, _| {
        let text = fs::read_to_string(format!("tests/captures/{file}")).unwrap();
        read(&text, 1)
    });
}

#[test]
fn small_texts_are_read_as_recorded() {
    golden_cases("tests/captures/small.txt", |name, text| {
        let column = name
            .strip_prefix("column ")
            .and_then(|it| it.split(' ').next());
        read(text, column.map_or(1, |it| it.parse().unwrap()))
    });
}

#[test]
fn runs_of_iperf3_may_follow_one_another() {
    let one = include_str!("captures/iperf3_tcp.json");
    let lines = one.lines().count();
    let read = |text: &str| ResultFormat::of(text).read(text, 1).unwrap();
    let runs = read(&format!("{one}\n{one}{one}"));
    let at: Vec<usize> = runs.iter().map(|run| run.line).collect();
    assert_eq!(at, [1, lines + 2, 2 * lines + 2]);
    let values = |runs: &[ToolRun]| runs.iter().map(|run| run.value).collect::<Vec<_>>();
    let array = read(&format!("[\n{one},{one}]"));
    assert_eq!(values(&array), values(&runs[..2]));
}

#[test]
fn each_format_has_a_word_of_its_own() {
    for format in &nicpoll_import::RESULT_FORMATS {
        let named = ResultFormat::named(format.word).map(|it| it.name);
        assert_eq!(named, Some(format.name));
    }
    assert!(ResultFormat::named("ttcp").is_none());
}
