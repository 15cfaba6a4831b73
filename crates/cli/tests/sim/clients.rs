//! `nicpoll sim` with many clients and several lines.

use crate::common::prelude::*;
use crate::{GENERIC, printed, refuses};

/// A run short enough for a build without optimisation.
fn run<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let short = ["run", GENERIC, "--duration", "50ms", "--warmup", "50ms"];
    [&short[..], options].concat()
}

#[test]
fn clients_and_cards_have_figures_of_their_own() {
    let workload = ["--workload", "rr:clients=100:links=4"];
    let shown = printed(&run(
        &[&workload[..], &["--discipline", "freebsd-polling"]].concat()
    ));
    for words in [
        "rr:payload=64:ip=4:clients=100:links=4",
        "requests/s",
        "replies/s",
        "\nclients     100, each served ",
        "\ncard 4      ",
        "interrupts of the cards",
        "handlers 4",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let interrupted = printed(&run(&workload));
    let (_, moves) = interrupted.split_once("What would move it").unwrap();
    assert!(moves.contains(" replies/s  x "), "{moves}");
    let json = printed(&run(&[&workload[..], &["--json"]].concat()));
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_described(&document, "sim-run");
    let figures = &document["figures"];
    assert_eq!(figures["clients"]["clients"], 100);
    let cards = figures["hosts"][0]["cards"].as_array().unwrap();
    let interrupts = cards
        .iter()
        .map(|card| card["interrupts"].as_u64().unwrap());
    assert_eq!(cards.len(), 4);
    assert_eq!(interrupts.sum::<u64>(), figures["hosts"][0]["interrupts"]);
    // The host itself sends.
    let blast = run(&["--workload", "blast", "--json"]);
    let blast: Value = serde_json::from_str(&printed(&blast)).unwrap();
    assert!(blast["figures"]["clients"].is_null());
}

#[test]
fn a_sweep_varies_the_clients() {
    let sweep =
        "--disciplines freebsd-polling --over clients=1..20:2 --workload rr --duration 100ms";
    let mut args = vec!["sweep", GENERIC];
    args.extend(sweep.split(' '));
    let table = printed(&args);
    assert!(table.contains("\nDelivered replies/s by "), "{table}");
    args.push("--csv");
    let csv = printed(&args);
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().contains(",clients,"), "{csv}");
    let delivered: Vec<f64> = lines
        .map(|line| line.split(',').nth(7).unwrap().parse().unwrap())
        .collect();
    // Each is answered once a tick.
    assert!(delivered[1] > 15.0 * delivered[0], "{csv}");
}

#[test]
fn wrong_clients_and_links_are_refused_with_their_remedy() {
    refuses(
        "
        2 | run GENERIC --workload rr:clients=0 | give 1 to 10000
        2 | run GENERIC --workload rr:clients=20k | give 1 to 10000
        2 | run GENERIC --workload rr:clients=many | clients: 'many' is not a whole number
        2 | run GENERIC --workload poisson:rate=1k:links=9 | links=9 is out of range; give 1 to 8
        2 | run GENERIC --workload poisson:rate=1k:links=4:clients=2 | give more clients or fewer links
        2 | run GENERIC --workload blast:clients=2 | blast has no option 'clients'
        2 | run GENERIC --workload iperf-udp:clients=2 | iperf-udp has no option 'clients'
        2 | run GENERIC --workload poisson:clients=5 | the workload has no rate
        2 | run GENERIC --workload rr:clients=2 --peer GENERIC | leave out --peer
        2 | sweep GENERIC --workload rr:links=4 --over clients=0..5:2 | clients goes from 1 to 10000
        2 | sweep GENERIC --workload rr:links=4 --over clients=1..5:2 | give more clients or fewer links
        2 | sweep GENERIC --workload rr:links=4 --over offered=1..5:2 | vary a number of the host, or clients
        ",
    );
}
