//! Transcripts as found in web pages and mails, modelled on published ones: what a reader that goes line by
//! line misses, and what must not be guessed.
//!
//! In `servers.txt` ids differ between ends and ports are the same, so the text says which ends belong
//! together; a host's line of CPU states belongs to both directions that ran at the same time; one is spoilt by
//! a redraw. In `thinclients.txt` netblast is quoted, glued and out of order, and prints an error rate of 0;
//! netreceive's clock is in another year. In `glued.txt` a bare prompt names no host, and nothing states the
//! setting: neither is guessed.

use std::fmt::Write as _;
use std::fs;

use nicpoll_import::{Correction, read_transcripts};
use nicpoll_model::{Imported, ImportedFigure, ImportedTrial, Origin, SourcePlace};
use nicpoll_testkit::golden_cases;

type Files = [(String, String)];

fn read(files: &Files, map: &[&str]) -> Imported {
    let corrections: Vec<Correction> = map.iter().map(|it| it.parse().unwrap()).collect();
    let imported = read_transcripts(files, &corrections, &Origin::default()).unwrap();
    every_figure_stands_where_it_says(&imported, files);
    imported
}

/// Checks that every figure is where its place says.
fn every_figure_stands_where_it_says(imported: &Imported, files: &Files) {
    let figures = imported.trials.iter().flat_map(|it| &it.figures);
    let places = figures.map(|it| it.place);
    let places = places.chain(imported.readings.iter().map(|it| it.place));
    for place in places.chain(imported.unplaced.iter().map(|it| it.place)) {
        let text = &files[place.file as usize].1;
        let (start, end) = (place.start_byte as usize, place.end_byte as usize);
        assert!(start < end && end <= text.len(), "{place:?}");
        let line = 1 + text[..start].matches('\n').count();
        assert_eq!(line, place.line as usize, "{place:?}");
    }
}

#[test]
fn a_table_of_variables_and_what_commands_set_are_facts_of_a_host_where_there_is_no_test() {
    let text = "| sysctl | default | mine |\n|---|---|---|\n| net.core.netdev_budget | 300 | 600 |\n\
        | `net.core.rmem_max` | - | 16777216 |\n| net.ipv4.tcp_rmem | - | 4096 87380  6291456 |\n| the rest | 1 | 2 |\n\na# sysctl -w net.core.busy_poll=50\n";
    let imported = read(&[(String::from("blog.md"), String::from(text))], &[]);
    let told = imported.readings.iter();
    let told: Vec<_> = told
        .map(|it| (&*it.name, &*it.value, it.place.line))
        .collect();
    let wanted = [
        ("net.core.netdev_budget, default", "300", 3),
        ("net.core.netdev_budget, mine", "600", 3),
        ("net.core.rmem_max", "16777216", 4),
        ("net.ipv4.tcp_rmem", "4096 87380  6291456", 5),
        ("set: net.core.busy_poll", "50", 8),
    ];
    assert_eq!(told, wanted);
    assert!(imported.trials.is_empty());
}

fn lines(places: &[SourcePlace]) -> Vec<u32> {
    places.iter().map(|it| it.line).collect()
}

fn of_figure(figure: &ImportedFigure) -> String {
    let since = figure.since.map(|it| format!(" since line {}", it.line));
    let side = figure.side.map(|it| format!("{it:?}"));
    format!(
        "  {} {} = {} ({:?}, line {}{}): {}",
        side.as_deref().unwrap_or("?"),
        figure.name,
        figure.value,
        figure.basis,
        figure.place.line,
        since.unwrap_or_default(),
        figure.printed
    )
}

fn of_trial(trial: &ImportedTrial) -> String {
    let name = |host: &Option<String>| host.clone().unwrap_or_else(|| String::from("?"));
    let mut text = format!(
        "test {}, {} {}, {} ({:?}), {} to {} ({:?}), line {}, again {:?}\n  {:?} {} in {:?} s, sent {}",
        trial.test,
        trial.tool,
        trial.workload,
        trial.setting,
        trial.setting_basis,
        name(&trial.sender),
        name(&trial.receiver),
        trial.pairing,
        trial.place.line,
        lines(&trial.quoted_again),
        trial.value,
        trial.quantity,
        trial.duration_seconds,
        trial.is_sent
    );
    let series = trial.series.iter();
    let series: Vec<_> = series
        .map(|it| (it.start_seconds, it.end_seconds, it.value))
        .collect();
    if !series.is_empty() {
        write!(text, "\n  {series:?}").unwrap();
    }
    let figures = trial.figures.iter().map(of_figure);
    let more: Vec<String> = figures
        .chain(trial.notes.iter().map(|it| format!("  {it}")))
        .collect();
    text + "\n" + &more.join("\n")
}

/// The whole study, a few lines per trial.
fn told(imported: &Imported) -> String {
    let trials = imported.trials.iter().map(of_trial);
    let readings = imported.readings.iter().map(|it| {
        format!(
            "read {:?} {} = {}, cumulative {}, near {:?}, line {}",
            it.host, it.name, it.value, it.is_cumulative, it.near_trial, it.place.line
        )
    });
    let unplaced = imported.unplaced.iter();
    let unplaced = unplaced.map(|it| {
        format!(
            "unplaced, line {}: {}: {}",
            it.place.line, it.printed, it.reason
        )
    });
    let all: Vec<String> = trials.chain(readings).chain(unplaced).collect();
    all.join("\n")
}

#[test]
fn transcripts_are_read_as_recorded() {
    golden_cases("tests/transcripts/recorded.txt", |file, _| {
        let text = fs::read_to_string(format!("tests/transcripts/{file}")).unwrap();
        told(&read(&[(String::from(file), text)], &[]))
    });
}

/// A line `%file` starts another file; `%map` gives the corrections.
#[test]
fn small_texts_are_read_as_recorded() {
    golden_cases("tests/transcripts/small.txt", |_, text| {
        let mut files = Vec::new();
        let mut map = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some(corrections) = line.strip_prefix("%map ") {
                map = corrections.split_whitespace().collect();
            } else if let Some(name) = line.strip_prefix("%file ") {
                files.push((String::from(name.trim_end()), String::new()));
            } else {
                if files.is_empty() {
                    files.push((String::from("page.txt"), String::new()));
                }
                files.last_mut().unwrap().1 += line;
            }
        }
        told(&read(&files, &map))
    });
}

#[test]
fn what_makes_a_naive_search_slow_is_read() {
    // A search that starts at each character takes minutes for these: gaps, digits, and rows of unclosed
    // brackets.
    for piece in [
        "[",
        "[ 3] 0.0-",
        "interrupt total rate ",
        "1 ",
        "9",
        " \n",
        "#",
        "| a | 1 Mb/s |\n|--|--|\n",
        "start: 1.0 ",
    ] {
        let text = piece.repeat((1 << 16) / piece.len());
        read(&[(String::from("page.txt"), text)], &[]);
    }
}

#[test]
fn the_output_of_iperf3s_server_is_one_test() {
    let read_end = |end: &str| {
        let text = format!(
            "root@oak:~# iperf3 -s\n-----------\nServer listening on 5201\n-----------\n\
            Accepted connection from 192.0.2.8, port 20112\n\
            [  5] local 192.0.2.7 port 5201 connected to 192.0.2.8 port 20113\n\
            [ ID] Interval           Transfer     Bandwidth\n\
            [  5]   0.00-1.00   sec   112 MBytes   940 Mbits/sec\n\
            [  5]   1.00-2.00   sec   112 MBytes   940 Mbits/sec\n- - - - - -\n{end}"
        );
        let imported = read(&[(String::from("a.txt"), text)], &[]);
        let [trial] = &imported.trials[..] else {
            panic!("{:?}", imported.trials);
        };
        let ends = [trial.sender.clone(), trial.receiver.clone()];
        (ends.map(Option::unwrap), trial.value, trial.series.len())
    };
    let sent = "[  5]   0.00-2.00   sec   225 MBytes   944 Mbits/sec    0             sender\n";
    let received =
        "[  5]   0.00-2.00   sec   224 MBytes   940 Mbits/sec                  receiver\n";
    let nothing = "[  5]   0.00-2.00   sec  0.00 Bytes  0.00 bits/sec                  ";
    let there = ["192.0.2.8", "oak"].map(String::from);
    let back = ["oak", "192.0.2.8"].map(String::from);
    let all = [
        (format!("{nothing}sender\n{received}"), &there, 940e6),
        (format!("{sent}{received}"), &there, 940e6),
        (format!("{sent}{nothing}receiver\n"), &back, 944e6),
    ];
    for (end, ends, value) in all {
        assert_eq!(read_end(&end), (ends.clone(), Some(value), 2), "{end}");
    }
}
