//! Transcripts as web pages and mails have them, written after published ones: what a reader that goes line by line
//! does not find, and what must not be guessed.

use nicpoll_import::{Correction, read_transcripts};
use nicpoll_model::{Imported, ImportedBasis, ImportedTrial, Origin, Side};

fn read_files(texts: &[(&str, &str)], map: &[&str]) -> Imported {
    let owned = |(name, text): &(&str, &str)| (String::from(*name), String::from(*text));
    let files: Vec<(String, String)> = texts.iter().map(owned).collect();
    let corrections: Vec<Correction> = map.iter().map(|it| it.parse().unwrap()).collect();
    let imported = read_transcripts(&files, &corrections, &Origin::default()).unwrap();
    if files.iter().all(|(_, text)| text.len() < 1 << 16) {
        every_figure_stands_where_it_says(&imported, texts);
    }
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
        let line = 1 + text[..start].matches('\n').count();
        assert_eq!(line, place.line as usize, "{place:?}");
    }
}

/// The value of a figure of a side.
fn figure(trial: &ImportedTrial, side: Side, name: &str) -> Option<f64> {
    let mut figures = trial.figures.iter();
    let found = figures.find(|it| it.side == Some(side) && it.name == name);
    found.map(|it| it.value)
}

/// A side of a trial has this figure.
fn has(trial: &ImportedTrial, side: Side, name: &str, value: f64) {
    assert_eq!(figure(trial, side, name), Some(value), "{name}");
}

fn mbits(trial: &ImportedTrial) -> f64 {
    trial.value.unwrap() / 1e6
}

/// The line of each figure without a place, and how it is printed.
fn unplaced(imported: &Imported) -> Vec<(u32, &str)> {
    let unplaced = imported.unplaced.iter();
    let unplaced = unplaced.map(|it| (it.place.line, it.printed.as_str()));
    unplaced.collect()
}

/// Something of each trial.
fn of_each<'a, T>(imported: &'a Imported, of: impl FnMut(&'a ImportedTrial) -> T) -> Vec<T> {
    imported.trials.iter().map(of).collect()
}

const SERVERS: &str = include_str!("transcripts/servers.txt");

#[test]
fn tests_of_two_hosts_are_found_paired_and_grouped() {
    let imported = read(SERVERS);
    let trials = of_each(&imported, |it| {
        let hosts = (
            it.sender.as_deref().unwrap(),
            it.receiver.as_deref().unwrap(),
        );
        (it.workload.as_str(), it.setting.as_str(), hosts, mbits(it))
    });
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
    let mut all = [tcp, udp, back, forth].into_iter();
    assert!(all.all(|it| it.pairing == ImportedBasis::Said));
    assert_eq!(back.test, forth.test);
    // The client's copy of the report differs in its last digit.
    has(udp, Side::Receiver, "jitter_seconds", 0.015712);
    assert!(
        udp.notes[0].contains("0.015711") && udp.notes[0].contains("line 31"),
        "{:?}",
        udp.notes
    );
    has(udp, Side::Receiver, "lost_datagrams", 560_027.0);
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
    has(tcp, Side::Sender, "cpu_interrupt_ratio", 0.494);
    has(tcp, Side::Receiver, "cpu_interrupt_ratio", 0.569);
    // One line of a host is of both ways that ran at once: it sends one and receives the other.
    has(forth, Side::Sender, "cpu_system_ratio", 0.541);
    has(back, Side::Receiver, "cpu_system_ratio", 0.541);
    assert_eq!(figure(polled, Side::Sender, "cpu_system_ratio"), None);
    let mut cpu = tcp.figures.iter().filter(|it| it.name.starts_with("cpu_"));
    assert!(cpu.all(|it| it.basis == ImportedBasis::Inferred));
    let unplaced = unplaced(&imported);
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

const CLIENTS: &str = include_str!("transcripts/thinclients.txt");

#[test]
fn netblast_is_read_quoted_glued_out_of_order_and_with_its_error_rate_of_0() {
    let imported = read(CLIENTS);
    let runs = of_each(&imported, |it| {
        let sent = figure(it, Side::Sender, "sent_packets").unwrap();
        (
            it.workload.as_str(),
            it.setting.as_str(),
            it.setting_basis,
            sent,
        )
    });
    let inferred = ImportedBasis::Inferred;
    assert_eq!(
        runs,
        [
            // Before the command that switches polling on, it was off: that follows.
            ("netblast-1470", "interrupt", inferred, 403_121.0),
            ("netblast-1470", "interrupt", inferred, 402_469.0),
            ("netblast-1470", "interrupt", inferred, 402_361.0),
            // What stood between angle brackets is lost: the bits of PC2's options say that it polls.
            ("netblast-64", "polling", ImportedBasis::Said, 460_011.0),
        ]
    );
    let [first, _, third, last] = &imported.trials[..] else {
        panic!();
    };
    assert_eq!(
        (first.sender.as_deref(), first.receiver.as_deref()),
        (Some("PC1"), Some("PC2"))
    );
    has(first, Side::Sender, "frame_bits_per_second", 81e6);
    assert!((first.value.unwrap() - 403_121.0 / 60.040_011).abs() < 0.01);
    assert!((third.duration_seconds.unwrap() - 60.04).abs() < 1e-6);
    has(first, Side::Receiver, "cpu_interrupt_ratio", 0.893);
    // What arrived is what netreceive counted, on a clock that stands in another year.
    assert_eq!(
        (last.value, last.is_sent, last.pairing),
        (Some(35_040.0), false, inferred)
    );
    assert!(
        last.notes.iter().any(|it| it.contains("integer division")),
        "{:?}",
        last.notes
    );
    has(last, Side::Sender, "send_errors", 4_706_483.0);
    assert_eq!(imported.unplaced, []);
}

#[test]
fn counters_and_screens_of_hosts_are_kept_beside_the_trials() {
    let imported = read(CLIENTS);
    let value = |name: &str| {
        let it = imported.readings.iter().find(|it| it.name == name)?;
        assert_eq!((it.host.as_deref(), it.near_trial), (Some("PC2"), Some(1)));
        Some((it.value.as_str(), it.is_cumulative))
    };
    for (name, expected, is_cumulative) in [
        ("vr0 in: peak", "81.250 Mb/s", false),
        // The rate has fallen by then: it is named for what it is.
        ("vr0 in: at the moment of the screen", "0.004 Mb/s", false),
        ("udp: datagrams received", "1610767", true),
        ("udp: dropped due to full socket buffers", "18614", true),
        ("udp: datagrams output", "1", true),
        (
            "interrupts irq10: sis0 uhci0+",
            "80635 at 457 a second",
            true,
        ),
        ("interrupts cpu0: timer", "15828222 at 207 a second", true),
    ] {
        assert_eq!(value(name), Some((expected, is_cumulative)), "{name}");
    }
    // A line that is left out is not 0.
    assert_eq!(value("udp: with bad checksum"), None);
}

#[test]
fn glued_wrapped_and_full_width_text_without_spaces_is_read() {
    let imported = read(include_str!("transcripts/glued.txt"));
    let trials = of_each(&imported, |it| {
        (it.workload.as_str(), mbits(it), it.place.line)
    });
    assert_eq!(
        trials,
        [
            ("iperf-udp-1470", 70.5, 1),
            ("iperf-tcp", 94.1, 1),
            ("iperf-tcp", 94.8, 5)
        ]
    );
    let [udp, tcp, _] = &imported.trials[..] else {
        panic!();
    };
    has(udp, Side::Receiver, "lost_datagrams", 27.0);
    has(udp, Side::Sender, "sent_datagrams", 359_938.0);
    // -f m prints sizes so.
    has(tcp, Side::Sender, "tcp_window_bytes", 0.03 * 1_048_576.0);
    // A bare prompt names no host, and nothing says the setting: neither is guessed.
    assert_eq!(
        (tcp.setting.as_str(), tcp.sender.as_deref()),
        ("not-said", Some("10.0.0.1"))
    );
}

#[test]
fn tables_count_what_is_not_told_elsewhere_and_need_a_setting() {
    let imported = read(include_str!("transcripts/tables.txt"));
    let trials = of_each(&imported, |it| {
        (it.workload.as_str(), it.setting.as_str(), it.value.unwrap())
    });
    assert_eq!(
        trials,
        [
            ("iperf-tcp", "interrupt", 144e6),
            ("iperf-tcp", "polling", 170e6),
            ("table-udp-mbit-s", "interrupt", 110e6),
            ("table-udp-mbit-s", "polling", 277e6),
            ("table-64-b", "interrupt", 7244.0),
            ("table-64-b", "polling", 70_500.0),
        ]
    );
    assert_eq!(imported.trials[0].quoted_again.len(), 1);
    assert_eq!(imported.trials[1].quoted_again.len(), 1);
    assert_eq!(unplaced(&imported), [(18, "12 Kpps")]);
}

#[test]
fn linux_forms_are_read_and_a_server_that_serves_twice_has_two_tests() {
    let imported = read(include_str!("transcripts/linux.txt"));
    let hosts = of_each(&imported, |it| {
        (it.sender.as_deref(), it.receiver.as_deref())
    });
    assert_eq!(hosts, [(Some("10.1.0.1"), Some("tester")); 2]);
    has(
        &imported.trials[1],
        Side::Receiver,
        "cpu_interrupt_ratio",
        0.06,
    );
    let names: Vec<&str> = imported
        .readings
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "packets received",
            "udp: packet receive errors",
            "kernel",
            "CPU"
        ]
    );
}

#[test]
fn both_ends_may_stand_in_files_of_their_own_and_the_map_corrects() {
    let client = "asa633:/# iperf -c 10.0.0.2 -t 60\n\
        [  3] local 10.0.0.1 port 4001 connected with 10.0.0.2 port 5001\n\
        [  3]  0.0-60.0 sec  1.01 GBytes   144 Mbits/sec\n";
    let server = "# iperf -s\n\
        [  4] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 4001\n\
        [  4]  0.0-60.1 sec  1.00 GBytes   143 Mbits/sec\n";
    let files = [("client.txt", client), ("server.txt", server)];
    let imported = read_files(
        &files,
        &[
            "server.txt:host=poweredge",
            "setting=polling",
            "client.txt:1:workload=long",
        ],
    );
    let [trial] = &imported.trials[..] else {
        panic!("{:?}", imported.trials);
    };
    assert_eq!((trial.pairing, mbits(trial)), (ImportedBasis::Said, 143.0));
    assert_eq!(trial.receiver.as_deref(), Some("poweredge"));
    assert_eq!(
        (trial.setting.as_str(), trial.setting_basis),
        ("polling", ImportedBasis::Mapped)
    );
    assert_eq!(trial.workload, "long");
    let imported = read_files(&files, &["client.txt:1-3:skip"]);
    assert_eq!(imported.trials[0].value, Some(143e6));
    assert_eq!(imported.trials[0].pairing, ImportedBasis::Unknown);
}

#[test]
fn ends_without_ports_are_paired_only_where_their_figures_agree() {
    let text = |rate: &str| {
        format!(
            "aa:/# iperf -c b -t 60\n[  3]  0.0-60.0 sec  1.01 GBytes   144 Mbits/sec\n\
         bb:/# iperf -s\n[  4]  0.0-60.1 sec  {rate}\n"
        )
    };
    let near = read(&text("1.00 GBytes   143 Mbits/sec"));
    assert_eq!(
        (near.trials.len(), near.trials[0].pairing),
        (1, ImportedBasis::Inferred)
    );
    let far = read(&text("644 MBytes   90.0 Mbits/sec"));
    assert_eq!(far.trials.len(), 2);
    // A transfer and a rate that do not agree are no line of iperf.
    let torn = read(&text("644 MBytes   143 Mbits/sec"));
    assert_eq!(torn.trials.len(), 1);
    assert!(
        torn.unplaced.iter().any(|it| it.printed == "143 Mbits/sec"),
        "{:?}",
        torn.unplaced
    );
}

#[test]
fn coarse_figures_agree_as_far_as_they_are_printed() {
    // 10 Mbit/s under -f g, and the sum of two streams of iperf 2.1.
    for (line, expected) in [
        ("[  3]  0.0-10.0 sec  0.01 GBytes  0.01 Gbits/sec", 10e6),
        ("[SUM-2]  0.0-10.0 sec  1.09 GBytes   936 Mbits/sec", 936e6),
    ] {
        let imported = read(&format!("# iperf -c b\n{line}\n"));
        let values: Vec<_> = imported.trials.iter().map(|it| it.value).collect();
        assert_eq!(values, [Some(expected)], "{line}");
    }
}

#[test]
fn what_makes_a_naive_search_slow_is_read() {
    // A search that starts anew at each character takes minutes of these: gaps, digits, and rows of brackets without an end.
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
        read(&text);
    }
}
