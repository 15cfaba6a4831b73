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
        assert_eq!(client(args).directions, directions, "{args}");
    }
    let exclusive = "ERROR: options of --full-duplex, --reverse, -d and -r are mutually exclusive";
    for args in ["-d -r", "-d -R", "-rR", "-R --full-duplex", "-drR"] {
        assert_eq!(refused(&format!("-c x {args}")), exclusive);
    }
    let headers = "ERROR: compatibility mode (-C) not supported with --full-duplex, --reverse, -d \
                   and -r";
    assert_eq!(refused("-c x -C -d"), headers);
    let text = refused("-c x -R -n 2147483648");
    assert!(
        text.starts_with("ERROR: invalid value of '2147483648' for -n"),
        "{text}"
    );
}
