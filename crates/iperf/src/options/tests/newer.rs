//! JSON, payload from elsewhere, bursts, and servers in the background.

use super::*;

#[test]
fn json_is_asked_for_at_either_end() {
    assert_eq!(client("--json").common.json, Some(Json::Whole));
    assert_eq!(server("--json-stream").common.json, Some(Json::Stream));
    assert_eq!(client("--json-str").common.json, Some(Json::Stream));
}

#[test]
fn payload_comes_from_a_file_or_from_standard_input() {
    let file = |name: &str| Some(Input::File(name.into()));
    assert_eq!(client("-F a.gz").input, file("a.gz"));
    assert_eq!(client("--fileinput=a").input, file("a"));
    assert_eq!(client("--file_input a -P 2").input, file("a"));
    for args in ["-I", "--stdin", "--stdin_input", "-u -I -P 1"] {
        assert_eq!(client(args).input, Some(Input::Stdin), "{args}");
    }
    assert!(refused("-c host -I -P 2").starts_with("ERROR: option -I is not valid with several"));
    assert!(refused("-c host --fileinput=").contains("the name of a file"));
}

#[test]
fn bursts_and_trip_times_are_udp_s_alone() {
    assert_eq!(client("-u --burst 10").burst, 10);
    assert!(client("-u --trip-times").trip_times);
    for option in ["--burst 10", "--trip-times"] {
        let text = refused(&format!("-c host {option}"));
        assert!(
            text.ends_with("not valid with TCP; add -u or leave it out"),
            "{text}"
        );
    }
    for value in ["0", "x", "16777217"] {
        let text = refused(&format!("-c host -u --burst {value}"));
        assert!(text.starts_with("ERROR: invalid value of"), "{text}");
    }
    // From burst to burst there is as much time as the rate leaves, and a minute at most.
    assert_eq!(client("-u -b 10pps --burst 600").burst, 600);
    assert!(refused("-c host -u -b 10pps --burst 601").contains("IPG delay target"));
}

#[test]
fn a_server_leaves_the_terminal_serves_one_at_a_time_and_limits_its_reads() {
    assert!(server("-D").daemon && server("--daemon").daemon);
    let single = server("-U");
    assert!(single.common.udp && single.single_client);
    assert_eq!(single.common.length_bytes, 1470);
    assert_eq!(server("-b 10m").rate, Rate::bits_per_second(10_000_000));
    assert_eq!(
        refused("-s -b 10pps"),
        "ERROR: units of pps not supported with TCP"
    );
    let udp = server("-u -b 10m");
    assert_eq!(udp.rate, None);
    assert_eq!(
        udp.common.warnings,
        ["WARNING: option -b is not valid for UDP server mode"]
    );
    assert_eq!(
        client("-D").common.warnings,
        ["WARNING: option -D is not valid for client mode"]
    );
    // As in 2.1.8.
    assert!(client("-U").common.udp);
}

#[test]
fn help_and_the_page_on_dialects_name_every_option() {
    let page = include_str!("../../../../../docs/dialects.md");
    let (carried_out_there, left_out_there) =
        page.split_once("## Options that are left out").unwrap();
    let has_row = |part: &str, name: &str| {
        let mut rows = part.lines().filter_map(|line| line.strip_prefix("| "));
        rows.any(|row| row.split(" | ").next().unwrap().contains(name))
    };
    let help = help_text();
    for spec in TABLE {
        let long = spec.long.first().map(|name| format!("--{name}"));
        let name = long.unwrap_or_else(|| spec.name());
        let begin = match spec.short {
            Some(letter) => format!("\n  -{letter}, {name} "),
            None => format!("\n      {name} "),
        };
        let carried_out = matches!(spec.meaning, Meaning::Known(_));
        assert_eq!(help.contains(&begin), carried_out, "{name}");
        let quoted = format!("`{name}`");
        let is_there = [carried_out_there, left_out_there].map(|part| has_row(part, &quoted));
        assert_eq!(is_there, [carried_out, !carried_out], "{name}");
        if let Meaning::LeftOut(instead) = spec.meaning {
            assert!(page.contains(instead), "{instead}");
        }
    }
}
