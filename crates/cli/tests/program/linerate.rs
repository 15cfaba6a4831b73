//! `nicpoll linerate` as a user meets it.

use crate::common::prelude::*;
use nicpoll_lab::INTERFACE;

fn command(args: &[&str]) -> Command {
    nicpoll([&["linerate"], args].concat())
}

/// Parses the printed object and validates it.
fn document(output: &Output) -> Value {
    assert_code(output, 0);
    let document = json_of(output);
    assert_described(&document, "linerate");
    document
}

#[test]
fn the_published_rates_are_printed() {
    for [line, parts] in cases(
        "
        100m | 148,809
        100m --udp 64 | 96,153
        100m --udp 64 | 83,333
        1g --udp 1473 --ip 4 | is fragmented
        1g --frame 64 --rate 1488096pps | 1,488,096 packets/s
        1g --frame 64 --rate 1488096pps | 100.0001
        1g --frame 64 --rate 1488095pps | 99.99998
        1g --frame 64 --rate 1488096pps | Above 100 %
        1g --frame imix | 327,367
        ",
    ) {
        assert_has(stdout(&command(&words(line)).output().unwrap()), parts);
    }
}

#[test]
fn json_holds_what_the_schema_says() {
    let args = words("1g --frame 64 --udp 64 --tcp 1460 --vlan 1");
    let args = [&args[..], &["--rate", "70kpps", "--json"]].concat();
    let rates = document(&command(&args).output().unwrap());
    assert_eq!(rates["schema"], "nicpoll.linerate/1");
    let rows = rates["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[0]["frames_per_second"], 1_420_454);
    assert!(rows[0]["payload_bits_per_second"].is_null());
    for row in rows {
        let bits = 8.0 * row["line_bytes"].as_f64().unwrap();
        let share = row["rate"]["line_ratio"].as_f64().unwrap();
        assert!((share - 70e3 * bits / 1e9).abs() < 1e-9, "{row}");
    }
}

#[test]
fn a_veth_has_a_nominal_speed() {
    needs!(Root);
    let veth = Veth::build().unwrap();
    let of = |options: &[&str]| {
        let command = command(&[&["--interface", INTERFACE], options].concat());
        run_in(veth.inside(Side::Sender), command)
    };
    let line = document(&of(&["--json"]))["line"].clone();
    assert_eq!(line["bits_per_second"], 10_000_000_000_u64);
    assert_eq!(line["driver"], "veth");
    assert_eq!(line["is_nominal"], true);
    assert_has(stdout(&of(&[])), "nominal");
}

#[test]
fn what_cannot_be_is_refused_with_its_remedy() {
    assert_refused(
        "
        2 |  | <SPEED|--interface
        2 | fast | such as 100m
        2 | 1g --interface eth0 | cannot be used with
        2 | 1g --frame 9018 | an MTU of 9000
        2 | 1g --udp 65508 --ip 4 | 65507
        2 | 1g --vlan 3 | from 0 to 2
        2 | 1g --rate fast | 70kpps
        1 | --interface nicpoll-none | 'ip link'
        ",
        |line| command(&words(line)).output().unwrap(),
    );
}

#[test]
fn a_speed_that_no_line_has_needs_its_unit() {
    let refused = command(&["10"]).output().unwrap();
    assert_code(&refused, 2);
    assert!(stderr(&refused).contains("'10g'"), "{}", stderr(&refused));
    assert_code(&command(&["10m"]).output().unwrap(), 0);
}
