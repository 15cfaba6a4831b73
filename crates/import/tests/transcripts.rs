//! Transcripts as web pages and mails have them, written after published ones: what a reader that goes line by line
//! does not find, and what must not be guessed.

use nicpoll_import::{Mapping, read_transcripts};
use nicpoll_model::{Imported, ImportedBasis, ImportedTrial, Origin, Side};

fn read_files(texts: &[(&str, &str)], map: &[&str]) -> Imported {
    let owned = |(name, text): &(&str, &str)| (String::from(*name), String::from(*text));
    let files: Vec<(String, String)> = texts.iter().map(owned).collect();
    let mappings: Vec<Mapping> = map.iter().map(|it| it.parse().unwrap()).collect();
    let origin = Origin {
        nicpoll_version: String::from("0"),
        argv: vec![],
        started_at: String::new(),
    };
    let imported = read_transcripts(&files, &mappings, &origin).unwrap();
    every_figure_stands_where_it_says(&imported, texts);
    imported
}

fn read(text: &str) -> Imported {
    read_files(&[("page.txt", text)], &[])
}

/// What must hold of any text.
fn every_figure_stands_where_it_says(imported: &Imported, texts: &[(&str, &str)]) {
    let figures = imported.trials.iter().flat_map(|it| &it.figures);
    let places = figures.map(|it| it.place);
    let places = places.chain(imported.readings.iter().map(|it| it.place));
    for place in places.chain(imported.unplaced.iter().map(|it| it.place)) {
        let text = texts[place.file as usize].1;
        let (start, end) = (place.start_byte as usize, place.end_byte as usize);
        assert!(start < end && end <= text.len(), "{place:?}");
        let line = 1 + text.as_bytes()[..start]
            .iter()
            .filter(|it| **it == b'\n')
            .count();
        assert_eq!(line, place.line as usize, "{place:?}");
    }
}

/// The value of a figure of a side.
fn figure(trial: &ImportedTrial, side: Side, name: &str) -> Option<f64> {
    let mut figures = trial.figures.iter();
    let found = figures.find(|it| it.side == Some(side) && it.name == name);
    found.map(|it| it.value)
}

fn mbits(trial: &ImportedTrial) -> f64 {
    trial.value.unwrap() / 1e6
}

const SERVERS: &str = include_str!("transcripts/servers.txt");

#[test]
fn tests_of_two_hosts_are_found_paired_and_grouped() {
    let imported = read(SERVERS);
    let trials: Vec<_> = imported
        .trials
        .iter()
        .map(|it| {
            let hosts = (
                it.sender.as_deref().unwrap(),
                it.receiver.as_deref().unwrap(),
            );
            (it.workload.as_str(), it.setting.as_str(), hosts, mbits(it))
        })
        .collect();
    let (forth, back) = (("asa633", "poweredge"), ("poweredge", "asa633"));
    assert_eq!(
        trials,
        [
            ("iperf-tcp", "interrupt", forth, 144.0),
            ("iperf-udp-1470", "interrupt", forth, 110.0),
            ("iperf-tcp-both-ways-from-poweredge", "polling", back, 137.0),
            ("iperf-tcp-both-ways-from-asa633", "polling", forth, 84.5),
            ("iperf-tcp", "polling", forth, 170.0),
        ]
    );
    let [tcp, udp, back, forth, _] = &imported.trials[..] else {
        panic!();
    };
    // Ids differ per end, and ports are the same: the text says it.
    assert!(
        [tcp, udp, back, forth]
            .iter()
            .all(|it| it.pairing == ImportedBasis::Said)
    );
    assert_eq!(back.test, forth.test);
    // The client's copy of the report differs in its last digit.
    assert_eq!(
        figure(udp, Side::Receiver, "jitter_seconds"),
        Some(0.015712)
    );
    assert!(
        udp.notes[0].contains("0.015711") && udp.notes[0].contains("line 31"),
        "{:?}",
        udp.notes
    );
    assert_eq!(
        figure(udp, Side::Receiver, "lost_datagrams"),
        Some(560_027.0)
    );
    // Intervals out of order, one of them wrapped within its unit; the last is missing.
    let series: Vec<f64> = tcp.series.iter().map(|it| it.value / 1e6).collect();
    assert_eq!(series, [138.0, 142.0, 144.0, 154.0]);
    // Told again as a comparison under polling: counted once.
    let again: Vec<u32> = tcp.quoted_again.iter().map(|it| it.line).collect();
    assert_eq!(again, [74]);
    // Headings are in prose: settings from them are inferred, those of commands are said.
    assert_eq!(
        (tcp.setting_basis, back.setting_basis),
        (ImportedBasis::Inferred, ImportedBasis::Said)
    );
}

#[test]
fn cpu_lines_go_to_the_nearest_test_and_its_ends_and_spoilt_ones_to_nobody() {
    let imported = read(SERVERS);
    let [tcp, _, back, forth, polled] = &imported.trials[..] else {
        panic!();
    };
    assert_eq!(
        figure(tcp, Side::Sender, "cpu_interrupt_ratio"),
        Some(0.494)
    );
    assert_eq!(
        figure(tcp, Side::Receiver, "cpu_interrupt_ratio"),
        Some(0.569)
    );
    // One line of a host is of both ways that ran at once: it sends one and receives the other.
    assert_eq!(figure(forth, Side::Sender, "cpu_system_ratio"), Some(0.541));
    assert_eq!(
        figure(back, Side::Receiver, "cpu_system_ratio"),
        Some(0.541)
    );
    assert_eq!(figure(polled, Side::Sender, "cpu_system_ratio"), None);
    let cpu = tcp.figures.iter().filter(|it| it.name.starts_with("cpu_"));
    assert!(
        cpu.into_iter()
            .all(|it| it.basis == ImportedBasis::Inferred)
    );
    let unplaced: Vec<_> = imported
        .unplaced
        .iter()
        .map(|it| (it.place.line, it.printed.as_str()))
        .collect();
    assert_eq!(unplaced.len(), 2, "{unplaced:?}");
    assert!(unplaced[0].0 == 17 && unplaced[0].1.contains("9.9% interrupt"));
    assert_eq!(unplaced[1], (74, "22.5 Mbits/sec"));
    let burst = imported
        .readings
        .iter()
        .find(|it| it.name == "kern.polling.burst")
        .unwrap();
    assert_eq!(
        (burst.host.as_deref(), burst.value.as_str()),
        (Some("poweredge"), "5")
    );
}
