//! The published tables and their hosts: the files fit together, nothing is fitted to polling, and the simulator
//! reproduces qualitative findings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nicpoll_calibrate::{
    FitPlan, Library, Mode, PublishedRun, PublishedTable, SimulationJob, rows_of,
};
use nicpoll_model::sim::{PublishedRow, RowKind};
use nicpoll_sim::HostModel;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sim")
}

fn texts(name: &str) -> Vec<String> {
    let listed = fs::read_dir(directory().join(name)).expect("the directory is there");
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let texts = paths.into_iter().map(fs::read_to_string);
    texts.collect::<Result<_, _>>().expect("they are texts")
}

fn library() -> Library {
    let hosts = texts("hosts").into_iter().map(|text| {
        let host = HostModel::parse(&text).expect("the host is right");
        (host.name.clone(), host)
    });
    let tables = texts("published").into_iter();
    let fit = fs::read_to_string(directory().join("fit.toml")).expect("it is there");
    let library = Library {
        hosts: hosts.collect(),
        tables: tables
            .map(|text| PublishedTable::parse(&text).expect("the table is right"))
            .collect(),
        plan: FitPlan::parse(&fit).expect("the fit is right"),
    };
    library.check().expect("the files go together");
    library
}

fn rows(library: &Library, table: &PublishedTable, run: &PublishedRun) -> Vec<PublishedRow> {
    let jobs = SimulationJob::of_run(library, table, run, false);
    let done: Result<Vec<_>, _> = jobs.iter().map(SimulationJob::simulate).collect();
    rows_of(&jobs, &done.expect("it runs"))
}

/// Returns the simulated figures of a table's runs whose names begin so, by run and quantity.
fn simulated(table: &str, beginnings: &[&str]) -> BTreeMap<(String, String), f64> {
    let library = library();
    let runs = library.runs().filter(|(of, run)| {
        of.name == table
            && beginnings
                .iter()
                .any(|beginning| run.name.starts_with(beginning))
    });
    let rows = runs.flat_map(|(of, run)| rows(&library, of, run));
    let with_value = rows.filter_map(|row: PublishedRow| {
        let value = row.simulated?;
        Some(((row.row, row.quantity), value))
    });
    with_value.collect()
}

fn of(figures: &BTreeMap<(String, String), f64>, run: &str, quantity: &str) -> f64 {
    let key = (String::from(run), String::from(quantity));
    figures.get(&key).copied().expect("it is simulated")
}

#[test]
fn every_table_is_there_and_polling_is_fitted_to_nothing() {
    let library = library();
    let names: Vec<&str> = library
        .tables
        .iter()
        .map(|table| table.name.as_str())
        .collect();
    assert_eq!(names, ["A", "B", "C", "D", "E"]);
    for (table, run) in library.runs() {
        let is_fitted = run.figures.iter().any(|figure| figure.is_fitted);
        assert!(
            !is_fitted || run.mode == Mode::Interrupt,
            "{}: {}",
            table.name,
            run.name
        );
        let is_explained = run.missing.is_some() || run.workload.is_some();
        let is_of_the_core = run
            .figures
            .iter()
            .any(|figure| figure.name.starts_with("knob."));
        assert!(
            is_explained || is_of_the_core,
            "{}: {}",
            table.name,
            run.name
        );
    }
}

#[test]
fn tables_and_plan_come_unchanged_from_the_process_that_read_them() {
    let library = library();
    for table in &library.tables {
        let json = serde_json::to_string(table).unwrap();
        assert_eq!(*table, serde_json::from_str(&json).unwrap());
    }
    let json = serde_json::to_string(&library.plan).unwrap();
    assert_eq!(library.plan, serde_json::from_str(&json).unwrap());
}

#[test]
fn each_group_is_fitted_to_more_figures_than_it_has_parameters() {
    let mut library = library();
    let is_of_group = |run: &&mut PublishedRun| run.fit.as_deref() == Some("wrap");
    let runs = library.tables.iter_mut().flat_map(|table| &mut table.runs);
    // One of two figures is left, for one parameter.
    let run = runs.into_iter().find(is_of_group).expect("it has runs");
    for figure in &mut run.figures {
        figure.is_fitted = false;
    }
    let error = library.check().unwrap_err().to_string();
    assert!(
        error.starts_with("wrap: 1 parameters would be fitted to 1 figures"),
        "{error}"
    );
}

#[test]
fn what_was_looked_at_under_polling_is_no_prediction_and_what_has_no_base_no_score() {
    let library = library();
    let table = |name: &str| {
        library
            .tables
            .iter()
            .find(|table| table.name == name)
            .unwrap()
    };
    let (a, b) = (table("A"), table("B"));
    let used = a
        .runs
        .iter()
        .flat_map(|run| &run.figures)
        .filter(|figure| figure.used.is_some());
    assert!(used.count() > 0);
    for run in &b.runs {
        for row in rows(&library, b, run) {
            assert_eq!(row.is_within_aim, None, "{}", row.quantity);
        }
    }
}

#[test]
fn what_only_polling_uses_is_the_same_on_all_hosts() {
    let library = library();
    let cost = |name: &str| library.plan.costs[name];
    // Linux has no status check, and its costs come from another source.
    let is_freebsd = |host: &&HostModel| host.card.status_ns > 0;
    let of_freebsd: Vec<&HostModel> = library.hosts.values().filter(is_freebsd).collect();
    assert_eq!(of_freebsd.len(), library.hosts.len() - 1);
    for host in of_freebsd {
        assert_eq!(host.card.poll_ns, cost("card.poll_ns"), "{}", host.name);
    }
    for name in ["asa633", "poweredge", "t5000", "wrap"] {
        let host = &library.hosts[name];
        assert_eq!(host.card.status_ns, cost("card.status_ns"));
        // Both follow the same factor.
        let ratio = cost("cpu.netisr_ns") / cost("cpu.tick_ns");
        assert!(
            host.cpu.netisr_ns.abs_diff(host.cpu.tick_ns * ratio) <= 2,
            "{name}"
        );
    }
}

#[test]
fn a_refill_is_no_more_than_the_caches_hold() {
    let library = library();
    let reference_ns = library.plan.costs["cpu.refill_ns"];
    for name in ["asa633", "poweredge"] {
        // The reference is a quarter of the first-level caches.
        assert!(
            library.hosts[name].cpu.refill_ns <= 4 * reference_ns,
            "{name}"
        );
    }
}

#[test]
fn a_row_under_polling_is_a_prediction() {
    let library = library();
    for (table, run) in library.runs().filter(|(table, _)| table.name == "A") {
        for row in rows(&library, table, run) {
            assert!(row.discipline == "freebsd-interrupt" || row.kind != RowKind::Fitted);
            assert_eq!(row.is_within_aim.is_some(), row.error.is_some());
        }
    }
}

#[test]
fn polling_loses_fewer_datagrams() {
    let figures = simulated("A", &["UDP"]);
    let (before, after) = (
        "UDP, asked 500 Mbit/s, interrupts",
        "UDP, asked 500 Mbit/s, polling",
    );
    assert!(of(&figures, before, "loss") > 40.0);
    assert!(of(&figures, after, "loss") < of(&figures, before, "loss") - 30.0);
    let delivered = |run| of(&figures, run, "delivered_payload");
    assert!(delivered(after) > 1.8 * delivered(before));
}

#[test]
fn tcp_gains_little_and_swings() {
    let figures = simulated("A", &["TCP one way"]);
    let (before, after) = ("TCP one way, interrupts", "TCP one way, polling");
    let gain = of(&figures, after, "delivered_payload") / of(&figures, before, "delivered_payload");
    assert!((1.05..1.4).contains(&gain), "{gain}");
    let swing = |run| of(&figures, run, "highest_interval") / of(&figures, run, "lowest_interval");
    assert!(swing(after) > 1.3, "{}", swing(after));
    assert!(swing(before) < swing(after), "{}", swing(before));
}

#[test]
fn polling_helps_the_thin_client_and_harms_the_wrap() {
    let figures = simulated("C", &["netblast IPv4, 64 B", "WRAP sends"]);
    let rate = |run: &str| of(&figures, run, "sent_rate");
    assert!(rate("netblast IPv4, 64 B, polling") > 4.0 * rate("netblast IPv4, 64 B, interrupts"));
    for size in ["1470 B", "64 B"] {
        let polled = rate(&format!("WRAP sends, {size}, polling"));
        let interrupted = rate(&format!("WRAP sends, {size}, interrupts"));
        assert!(
            polled < 0.75 * interrupted,
            "{size}: {polled} {interrupted}"
        );
    }
}

#[test]
fn iperf_sends_less_than_netblast() {
    let figures = simulated(
        "C",
        &["iperf UDP IPv4", "netblast IPv4, 1470 B, interrupts"],
    );
    let iperf = of(
        &figures,
        "iperf UDP IPv4, asked 200 Mbit/s, interrupts",
        "sent_payload",
    );
    let packets = of(&figures, "netblast IPv4, 1470 B, interrupts", "sent_rate");
    let netblast = packets * 8.0 * 1470.0 / 1e6;
    assert!(iperf < 0.97 * netblast, "{iperf} {netblast}");
}

#[test]
fn the_router_storms() {
    let figures = simulated("C", &["PC1 through the WRAP"]);
    let run = "PC1 through the WRAP to PC2, 64 B, interrupts";
    assert!(of(&figures, run, "router.storm_reports") > 0.0);
    // Most of what is offered is lost.
    assert!(of(&figures, run, "delivered_rate") < 0.3 * of(&figures, run, "sent_rate"));
}

#[test]
fn harvesting_entropy_costs_a_router_little() {
    let figures = simulated("E", &["UDP IPv4, entropy"]);
    let delivered = |word: &str| {
        let run = format!("UDP IPv4, entropy harvesting {word}");
        of(&figures, &run, "delivered_payload")
    };
    let saved = delivered("off") / delivered("on") - 1.0;
    assert!((0.01..0.06).contains(&saved), "{saved}");
}
