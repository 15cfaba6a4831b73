//! Command lines of netblast, netreceive and netsend: the meaning of those accepted, and the words that refuse
//! the others.

use nicpoll_testkit::golden_cases;
use nicpoll_traffic::netrate::options::{NetrateOptions, NetrateTool};
use proptest::prelude::*;

const TOOLS: [NetrateTool; 3] = [
    NetrateTool::Netblast,
    NetrateTool::Netreceive,
    NetrateTool::Netsend,
];

fn told(tool: NetrateTool, words: &[String]) -> String {
    match NetrateOptions::parse(tool, words) {
        Ok(Some(options)) => format!("{options:?}"),
        Ok(None) => String::from("help"),
        Err(refused) => refused.to_string(),
    }
}

#[test]
fn command_lines_mean_what_is_recorded() {
    golden_cases("tests/netrate_data/options.txt", |line, _| {
        let mut words = line.split(' ').map(String::from);
        let tool = NetrateTool::named(&words.next().unwrap()).unwrap();
        told(tool, &words.collect::<Vec<_>>())
    });
}

#[test]
fn numbers_are_read_as_strtoul_reads_them() {
    let blast = |words: [&str; 4]| told(NetrateTool::Netblast, &words.map(String::from));
    assert_eq!(
        blast(["198.18.0.2", "+9000", " \t64", "0010"]),
        blast(["198.18.0.2", "9000", "64", "10"])
    );
    let nothing = blast(["r", "", "64", "1"]);
    assert!(nothing.starts_with("Invalid port number: \n"), "{nothing}");
}

#[test]
fn a_tool_is_known_by_its_name_only() {
    for (tool, name) in TOOLS.into_iter().zip(["netblast", "netreceive", "netsend"]) {
        assert_eq!(NetrateTool::named(name), Some(tool));
    }
    assert_eq!(NetrateTool::named("nicpoll"), None);
    assert_eq!(NetrateTool::named("netblast.old"), None);
}

proptest! {
    #[test]
    fn any_arguments_are_read_or_refused_with_words(args in prop::collection::vec("\\PC{0,12}|[0-9-]{1,8}", 0..7)) {
        for tool in TOOLS {
            let refused = NetrateOptions::parse(tool, &args).err();
            prop_assert!(refused.is_none_or(|words| !words.0.is_empty()));
        }
    }
}
