//! Options that have the server send.

use super::*;

#[test]
fn one_way_or_the_other() {
    let dual = |port, is_at_once| Directions::Dual { port, is_at_once };
    for (args, directions) in [
        ("-R", Directions::Reverse),
        ("--full-duplex", Directions::FullDuplex),
        ("-d", dual(5001, true)),
        ("-r", dual(5001, false)),
        ("-r -p 6000", dual(6000, false)),
        ("-dd -p 6000 -L 6001", dual(6001, true)),
        ("-u -d -n 2147483647", dual(5001, true)),
    ] {
        assert_eq!(stream(args).directions, directions, "{args}");
    }
    let exclusive = "ERROR: options of --full-duplex, --reverse, -d and -r are mutually exclusive";
    for args in ["-d -r", "-d -R", "-rR", "-R --full-duplex", "-drR"] {
        assert_eq!(refused(&format!("-c x {args}")), exclusive);
    }
    let warnings = client("-R -L 6001").common.warnings;
    assert_eq!(
        warnings,
        ["WARNING: option -L has no effect without -d or -r"]
    );
    let headers = "ERROR: compatibility mode (-C) not supported with --full-duplex, --reverse, -d \
                   and -r";
    assert_eq!(refused("-c x -C -d"), headers);
    for line in [
        "-c x -u -d --dialect 2.0.12",
        "-c x -u -R --dialect 2.0.5",
        "-c x -u --full-duplex --dialect 2.0.8",
    ] {
        let dialect = refused(line);
        let said = "ERROR: option --dialect is not supported with";
        assert!(dialect.starts_with(said), "{line}: {dialect}");
    }
    for way in ["-d", "-r"] {
        let directions = stream(&format!("-u {way} --dialect 2.0.8")).directions;
        assert!(matches!(directions, Directions::Dual { .. }), "{way}");
    }
    let text = refused("-c x -R -n 2147483648");
    assert!(
        text.starts_with("ERROR: invalid value of '2147483648' for -n"),
        "{text}"
    );
}

#[test]
fn a_server_may_send_datagrams_where_it_is_told_to() {
    let allow = server("-u --allow 10.0.0.0/8 --allow 2001:db8::1").allow;
    let allowed = |address: &str| {
        let address = address.parse().unwrap();
        allow.iter().any(|network| network.contains(address))
    };
    assert!(allowed("10.1.2.3") && allowed("2001:db8::1"));
    assert!(!allowed("11.0.0.1") && !allowed("2001:db8::2"));
    let warnings = server("--allow ::1").common.warnings;
    assert_eq!(
        warnings,
        ["WARNING: option --allow has no effect without -u"]
    );
}
