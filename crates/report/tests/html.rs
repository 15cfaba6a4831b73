//! The HTML report of the fixture: it has the text's words, loads nothing, and holds its data.

mod drawn;
mod fixture;

use drawn::beyond_the_edge;
use nicpoll_model::ab::LiveAb;
use nicpoll_model::{
    CpuStates, SettingChanges, SettingFacts, Study, Sweep, SwitchValue, SwitchWrite,
};
use nicpoll_report::{TextOptions, brief_page, render_html, render_text};
use nicpoll_testkit::assert_has;

/// Returns a page's visible text: no tags, no style, one blank between words.
fn words(html: &str) -> String {
    let mut words = String::new();
    let (_, body) = html.split_once("<body>").expect("there is a body");
    for part in body.split('<') {
        let (_, text) = part.split_once('>').unwrap_or(("", part));
        words += &format!(" {text}");
    }
    let plain = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ];
    for (coded, letter) in plain {
        words = words.replace(coded, letter);
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_answer_is_that_of_the_text() {
    let study = fixture::study();
    let page = words(&render_html(&study));
    let text = render_text(&brief_page(&study), &TextOptions::default());
    let title = text.lines().next().unwrap();
    assert!(page.contains(title), "{title}");
    assert!(page.contains(&study.question));
    // Every workload's line, without the bar.
    let mut verdicts = 0;
    for line in text
        .lines()
        .filter(|line| line.contains('[') && line.contains(']'))
    {
        let Some((head, _)) = line.split_once(']') else {
            continue;
        };
        let head = flat(head) + "]";
        if line.contains("interval") {
            continue;
        }
        assert!(page.contains(&head), "{head}");
        verdicts += 1;
    }
    assert!(verdicts >= 6, "{verdicts}");
    let (_, meaning) = text.split_once("What this means here").unwrap();
    // The hint below it is there if it has room.
    let meaning = meaning.split("Details:").next().unwrap();
    for sentence in meaning.split("\n  - ") {
        assert!(page.contains(&flat(sentence)), "{sentence}");
    }
}

#[test]
fn sections_have_the_words_of_the_text() {
    let study = fixture::study();
    let page = words(&render_html(&study));
    let text = render_text(&study, &TextOptions::default());
    let (_, details) = text.split_once("What was run").unwrap();
    for line in details
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with(' '))
    {
        // A heading may continue on the next line.
        assert!(page.contains(&flat(line)), "{line}");
    }
    for place in [
        "receive ring (receiver)",
        "what no counter explains",
        "context switches",
    ] {
        assert!(page.contains(place), "{place}");
    }
}

#[test]
fn every_value_that_a_setting_changed_has_what_was_there_before() {
    let study = fixture::study();
    let page = words(&render_html(&study));
    for row in [
        // Value, before, and under default, interrupt and polling.
        "receiver em0: gro_flush_timeout 0 - - 178000 ns",
        "receiver em0: gro off - on on",
        "sender em0: tso on - off off",
    ] {
        assert!(page.contains(row), "{row}: {page}");
    }
    // The NAPI instance's value is part of the interface's.
    assert!(!page.contains("NAPI 8193 gro_flush_timeout"));
    let text = flat(&render_text(&study, &TextOptions::default()));
    let changed = "interrupt, polling sender em0: tso on -> off; receiver em0: gro off -> on polling receiver em0: \
         gro_flush_timeout 0 -> 178000 ns";
    assert!(text.contains(changed), "{text}");
    let markdown = nicpoll_report::render_markdown(&study);
    assert_has(&markdown, "gro\\_flush\\_timeout 0 -> 178000 ns");
}

/// Makes the fixture's study over four links, with one more setting.
fn over_four_links() -> Study {
    let mut study = fixture::study();
    let facts = |name: &str| SettingFacts {
        setting: String::from(name),
        ..study.settings[2].clone()
    };
    study.settings = ["interrupt", "1ms", "200us"].map(facts).to_vec();
    let write = |link: u32, name: &str, before: u64, after: u64| SwitchWrite {
        interface: format!("em{link}"),
        netns_inode: 1,
        napi_id: None,
        name: String::from(name),
        before: SwitchValue::Number(before),
        after: SwitchValue::Number(after),
        is_implied: false,
    };
    let tso =
        ["ecn", "mangleid", "accecn", "tcp6"].map(|it| format!("feature tx-tcp-{it}-segmentation"));
    let mut changes = Vec::new();
    for (setting, timeout) in [("200us", 178_000), ("interrupt", 0), ("1ms", 949_000)] {
        let on_each = |of: &dyn Fn(u32) -> Vec<SwitchWrite>| (0..4).flat_map(of).collect();
        let sender = on_each(&|link| tso.iter().map(|name| write(link, name, 1, 0)).collect());
        let receiver = on_each(&|link| {
            vec![
                write(link, "feature rx-gro", 0, 1),
                write(link, "gro_flush_timeout", 0, timeout),
            ]
        });
        for (host, writes) in [("sender", sender), ("receiver", receiver)] {
            changes.push(SettingChanges {
                setting: String::from(setting),
                host: String::from(host),
                writes,
            });
        }
    }
    // One of the links had that value before, under all settings.
    changes.iter_mut().for_each(|one| {
        one.writes
            .retain(|it| it.interface != "em0" || it.name != "feature rx-gro");
    });
    study.setting_changes = changes;
    study
}

#[test]
fn what_settings_and_links_share_is_said_once() {
    let study = over_four_links();
    let text = render_text(&study, &TextOptions::default());
    let (_, changed) = text
        .split_once("What each setting changed, and put back\n")
        .unwrap();
    let (changed, _) = changed.split_once("\n\n").unwrap();
    let lines: Vec<&str> = changed.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "all settings  sender em0..em3: tso on -> off; receiver em1..em3: gro off -> on",
            "200us         receiver em0..em3: gro_flush_timeout 0 -> 178000 ns",
            "1ms           receiver em0..em3: gro_flush_timeout 0 -> 949000 ns",
        ]
    );
    let page = words(&render_html(&study));
    for row in [
        "sender em0..em3: tso on off off off",
        "receiver em0..em3: gro_flush_timeout 0 - 949000 ns 178000 ns",
    ] {
        assert!(page.contains(row), "{row}: {page}");
    }
}

#[test]
fn the_file_needs_nothing_and_runs_nothing() {
    let compared: LiveAb = serde_json::from_str(include_str!("golden/ab.json")).unwrap();
    for html in [render_html(&fixture::study()), render_html(&compared)] {
        for foreign in [
            "<script", "http:", "https:", " src=", "url(", "@import", "<link", "<iframe",
        ] {
            assert!(!html.contains(foreign), "{foreign}");
        }
        assert!(html.contains("default-src 'none'"));
        // A second attribute of one name would be lost.
        for tag in html.split('<') {
            assert!(
                tag.split('>').next().unwrap().matches(" class=").count() < 2,
                "{tag}"
            );
        }
        for odd in ["NaN", "inf\"", "=\"-0.0\""] {
            assert!(!html.contains(odd), "{odd}");
        }
    }
}

#[test]
fn what_a_study_holds_does_not_become_markup() {
    let mut study = fixture::study();
    let mean = "<img onerror=alert(1)> & \"quoted\"";
    study.question = String::from(mean);
    study.argv.push(String::from(mean));
    study.settings[0].setting = String::from(mean);
    study.host.kernel = String::from(mean);
    study.workloads[0].workload = String::from(mean);
    let html = render_html(&study);
    assert!(!html.contains("<img"));
    assert!(words(&html).contains(mean));
}

#[test]
fn each_plot_has_a_title_and_a_table() {
    let html = render_html(&fixture::study());
    let figures: Vec<&str> = html.split("<figure>").skip(1).collect();
    assert!(figures.len() >= 4 * 5, "{}", figures.len());
    for figure in figures {
        let (figure, _) = figure.split_once("</figure>").unwrap();
        let (_, title) = figure.split_once("<title>").expect("a drawing has a title");
        assert!(!title.starts_with('<'));
        assert!(figure.contains("role=\"img\""));
        assert!(figure.matches("<tr>").count() >= 2, "{figure}");
    }
}

/// Makes a sweep of one setting over these rates, each with its delivered share.
fn sweep(points: [(u32, f64); 2]) -> Sweep {
    let mut sweep: Sweep = serde_json::from_str(include_str!("golden/sweep.json")).unwrap();
    sweep.settings.remove(0);
    for (point, (asked, share)) in sweep.settings[0].points.iter_mut().zip(points) {
        point.asked_per_second = u64::from(asked);
        point.offered_per_second = Some(f64::from(asked));
        point.delivered_per_second = Some(share * f64::from(asked));
        point.delivered_ratio = Some(share);
        point.busy_ns_per_packet = None;
    }
    sweep
}

#[test]
fn nothing_is_drawn_beyond_the_edge_of_a_picture() {
    let mut study = fixture::study();
    // All arrives; the axes end at different heights; and a barely visible part arrives.
    for points in [
        [(20_000, 1.0), (40_000, 1.0)],
        [(20_000, 1.0), (40_000, 0.6)],
        [(20_000, 0.1), (40_000, 0.01)],
    ] {
        let mut sweep = sweep(points);
        for (index, point) in sweep.settings[0].points.iter_mut().enumerate() {
            point.busy_ns_per_packet = Some(2_000.0);
            point.one_way_p50_ns = Some(9_000.0);
            point.one_way_p99_ns = Some(9_000.0 * 10f64.powi(index as i32));
            point.spinner_ratio = Some(0.75);
        }
        study.sweeps.push(sweep);
    }
    let html = render_html(&study);
    let drawings: Vec<&str> = html.split("<svg").skip(1).collect();
    assert!(drawings.len() > 20, "{}", drawings.len());
    for drawing in drawings {
        let (drawing, _) = drawing.split_once("</svg>").unwrap();
        let drawing = format!("<svg{drawing}");
        let cut = beyond_the_edge(&drawing);
        assert!(cut.is_empty(), "{cut:#?} in {drawing}");
    }
}

#[test]
fn a_sweep_is_drawn_with_what_was_sent_and_left_out_where_nothing_arrived() {
    let mut study = fixture::study();
    study.sweeps.push(sweep([(20_000, 1.0), (40_000, 0.8)]));
    let html = render_html(&study);
    assert!(html.contains("Offered against delivered") && html.contains("all delivered"));
    assert!(words(&html).contains("20,000: 20,000; 40,000: 32,000"));
    assert!(!html.contains("What a packet costs at each load"));
    study.sweeps[0].settings[0].points.clear();
    assert!(!render_html(&study).contains("Offered against delivered"));
}

#[test]
fn what_was_not_measured_has_no_plot() {
    let mut study = fixture::study();
    for trial in &mut study.trials {
        let Some(figures) = &mut trial.figures else {
            continue;
        };
        figures.cpu = None;
        figures.polls_per_second = None;
    }
    let html = render_html(&study);
    assert!(!html.contains("Where each core"));
    assert!(!html.contains("Polls a second"));
    for trial in &mut study.trials {
        trial.figures = None;
    }
    let html = render_html(&study);
    assert!(!html.contains("<figure>"));
    // Neither is there a series of steps to save.
    assert!(!html.contains("nicpoll-series.csv"));
}

#[test]
fn states_of_a_core_fill_its_bar() {
    let mut study = fixture::study();
    for trial in &mut study.trials {
        let Some(cpu) = trial
            .figures
            .as_mut()
            .and_then(|figures| figures.cpu.as_mut())
        else {
            continue;
        };
        for core in &mut cpu.cores {
            *core = CpuStates {
                core: core.core,
                user_ratio: 0.25,
                idle_ratio: 0.75,
                ..CpuStates::default()
            };
        }
    }
    let html = render_html(&study);
    let (_, figure) = html.split_once("Where each core").unwrap();
    assert!(figure.contains("<title>user 25 %</title>"));
    assert!(figure.contains("<title>idle 75 %</title>"));
}

#[test]
fn the_saved_study_is_the_study() {
    let study = fixture::study();
    let html = render_html(&study);
    let (_, data) = html
        .split_once("data:application/json;charset=utf-8;base64,")
        .unwrap();
    let (data, _) = data.split_once('"').unwrap();
    let read: Study = serde_json::from_slice(&decoded(data)).unwrap();
    assert!(read == study);
}

/// Decodes base64 (RFC 4648, section 4).
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for four in text.as_bytes().chunks(4) {
        let bits = four.iter().fold(0, |bits: u32, letter| {
            let value = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => 0,
            };
            (bits << 6) | u32::from(value)
        });
        let fillers = four.iter().filter(|letter| **letter == b'=').count();
        bytes.extend(&bits.to_be_bytes()[1..4 - fillers]);
    }
    bytes
}

#[test]
fn what_a_mean_would_hide_is_marked_and_said_wherever_the_report_is_read() {
    let study = fixture::study();
    let html = render_html(&study);
    let page = words(&html);
    for part in [
        "A cross is a storm: packets came faster than the kernel took them",
        "Use of CPU 1 (receiver) within the trials",
        "rate within a trial even even step +14 %",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // One for each trial of udp64 under polling, and more under other workloads.
    assert!(html.matches("<title>storm</title>").count() >= 16);
    let sentence = "Within the trials of tcp under polling the rate changes once, after 0.3 s: it is 14 % higher";
    let text = flat(&render_text(&study, &TextOptions::default()));
    let markdown = flat(&nicpoll_report::render_markdown(&study));
    for told in [page, text, markdown] {
        assert!(told.contains(sentence), "{told}");
    }
    let json = nicpoll_report::render_json(&study);
    assert!(json.contains("\"found\": \"step\""), "{json}");
    // A study of an earlier version has no series, and no mention of them.
    let mut study = study;
    for found in &mut study.findings {
        (found.rate_within_trials, found.rate_over_trials) = (None, None);
    }
    for figures in study.trials.iter_mut().filter_map(|it| it.figures.as_mut()) {
        if let Some(series) = &mut figures.series {
            (series.cores, series.cut_short_softirqs) = (Vec::new(), None);
        }
    }
    let page = words(&render_html(&study));
    for part in ["storm", "Use of CPU", "rate within a trial"] {
        assert!(!page.contains(part), "{part}");
    }
}
