use std::fmt::Write as _;
use std::time::Duration;
use std::{env, fs};

use nicpoll_testkit::golden;
use proptest::prelude::*;

use super::*;
use crate::wire::Amount;

fn parsed_with(args: &str, environment: &[(&str, &str)]) -> Result<Parsed, OptionError> {
    let find = |name: &str| {
        let found = environment.iter().find(|(known, _)| *known == name)?;
        Some(found.1.to_owned())
    };
    parse(args.split_whitespace().map(str::to_owned), find)
}

fn parsed(args: &str) -> Result<Parsed, OptionError> {
    parsed_with(args, &[])
}

/// The options of a test.
fn test(args: &str) -> Options {
    match parsed(args) {
        Ok(Parsed::Test(options)) => *options,
        other => panic!("{args}: {other:?}"),
    }
}

fn refused(args: &str) -> String {
    parsed(args).expect_err(args).to_string()
}

/// The debug text of options, cut at commas and line breaks, without the warnings.
fn pieces(options: &Options) -> Vec<String> {
    let silent = Options {
        warnings: Vec::new(),
        ..options.clone()
    };
    let text = format!("{silent:#?}");
    text.lines().map(|line| String::from(line.trim())).collect()
}

/// Options that differ from the default.
fn changed(options: &Options) -> String {
    let plain = match options.is_client() {
        true => "-c host",
        false => "-s",
    };
    let plain = pieces(&test(plain));
    let mut changed = pieces(options);
    changed.retain(|piece| !plain.contains(piece));
    changed.join(" ")
}

/// The warnings for a command line, and the options it changes.
fn said(args: &str) -> String {
    match parsed(args) {
        Ok(Parsed::Test(options)) => {
            let changed = changed(&options);
            let lines: Vec<String> = options.warnings.into_iter().chain([changed]).collect();
            lines.join("\n").trim_end().to_owned() + "\n"
        }
        Ok(other) => format!("{other:?}\n"),
        Err(error) => format!("{error}\n"),
    }
}

/// Command lines, each with its refusal, or its warnings and changed options. `|` stands for `-c host`, and
/// then for `-s`.
#[test]
fn what_options_do_is_as_recorded() {
    let recorded = include_str!("said.txt").lines();
    let mut text = String::new();
    for args in recorded.filter_map(|line| line.strip_prefix("$ iperf")) {
        writeln!(text, "$ iperf{args}").unwrap();
        let ends = match args.strip_prefix(" |") {
            Some(either) => vec![format!("-c host{either}"), format!("-s{either}")],
            None => vec![String::from(args)],
        };
        let mut said: Vec<String> = ends.iter().map(|args| said(args)).collect();
        said.dedup();
        said.iter().for_each(|said| text += said);
    }
    golden("src/options/said.txt", &text);
}

#[test]
fn defaults_are_as_recorded() {
    let ends = ["-c host", "-s"].map(|args| format!("$ iperf {args}\n{:#?}\n", test(args)));
    golden("src/options/defaults.txt", &ends.concat());
}

#[test]
fn what_is_left_out_is_refused_by_name() {
    for spec in specs() {
        let Some(instead) = spec.instead else {
            continue;
        };
        let mode = if spec.side == "server" { "-s" } else { "-c x" };
        let value = match spec.argument {
            Argument::Required => "1",
            _ => "",
        };
        let name = spec.name();
        let text = refused(&format!("{mode} {name} {value}"));
        assert_eq!(
            text,
            format!("ERROR: option {name} is not supported; {instead}")
        );
    }
}

#[test]
fn the_environment_comes_before_the_command_line() {
    let environment = [
        ("IPERF_CLIENT", "there"),
        ("IPERF_UDP", ""),
        ("IPERF_PORT", "77"),
        ("IPERF_TIME", "3"),
        ("IPERF_COMPAT", "1"),
        ("IPERF_HELP", "1"),
        ("TCP_WINDOW_SIZE", "8K"),
    ];
    let Ok(Parsed::Test(client)) = parsed_with("-p 78", &environment) else {
        panic!("no client");
    };
    assert_eq!(client.host.as_deref(), Some("there"));
    assert!(client.is_udp() && !client.stream.has_header);
    assert_eq!(client.port, 78);
    assert_eq!(client.stream.amount, Amount::Time(Duration::from_secs(3)));
    assert_eq!(client.stream.buffer_bytes, Some(8192));

    let wrong = parsed_with("-s", &[("IPERF_TIME", "x")]).unwrap_err();
    let text = "ERROR: invalid value of 'x' for IPERF_TIME; give seconds, at most 21474836";
    assert_eq!(wrong.to_string(), text);
    let left_out = parsed_with("-c x", &[("IPERF_TCP_QUICKACK", "")]).unwrap_err();
    let text = "ERROR: option IPERF_TCP_QUICKACK is not supported; ";
    assert!(left_out.to_string().starts_with(text), "{left_out}");
}

fn scan(args: &str) -> Result<Vec<String>, OptionError> {
    let args = args.split(' ').map(str::to_owned);
    let mut scanner = Scanner {
        args,
        bundle: String::new(),
        only_extras: false,
    };
    std::iter::from_fn(|| scanner.next())
        .map(|token| {
            Ok(match token? {
                Token::Option(spec, None) => spec.name(),
                Token::Option(spec, Some(value)) => format!("{}={value}", spec.name()),
                Token::Extra(extra) => extra,
            })
        })
        .collect()
}

#[test]
fn options_and_values_are_told_apart() {
    for (args, tokens) in [
        ("-t10", "-t=10"),
        ("-t 10", "-t=10"),
        ("-t -s", "-t=-s"),
        ("-su", "-s -u"),
        ("-sut10", "-s -u -t=10"),
        ("-sut 10", "-s -u -t=10"),
        ("--time 10", "-t=10"),
        ("--time=10", "-t=10"),
        ("--time=", "-t="),
        ("--tim=1=0", "-t=1=0"),
        ("--serv --udp", "-s -u"),
        ("x -s - y", "x -s - y"),
        ("-s -- -u --time", "-s -u --time"),
        ("--permit-key x", "--permit-key x"),
        ("--permit-key=x", "--permit-key=x"),
        ("--bounceback", "--bounceback"),
        ("--IPv6Version", "-V"),
        ("-1", "-1"),
    ] {
        let tokens: Vec<String> = tokens.split(' ').map(str::to_owned).collect();
        assert_eq!(scan(args), Ok(tokens), "{args}");
    }
}

#[test]
fn what_is_no_option_is_refused() {
    for (args, line) in [
        ("-q", "invalid option -- q"),
        ("-sü", "invalid option -- ü"),
        ("-s-", "invalid option -- -"),
        ("--x", "unrecognized option `--x'"),
        ("--timely", "unrecognized option `--timely'"),
        ("--=5", "unrecognized option `--'"),
        ("--t", "option `--t' is ambiguous"),
        ("-t", "option requires an argument -- t"),
        ("--time", "option `--time' requires an argument"),
        ("--udp=3", "option `--udp' doesn't allow an argument"),
    ] {
        let error = OptionError::usage(Some(String::from(line)));
        assert_eq!(scan(args), Err(error), "{args}");
    }
}

#[test]
fn help_names_what_is_carried_out_and_nothing_else() {
    let help = help_text();
    for spec in specs() {
        let long = spec.long.first().map(|name| format!("--{name}"));
        let name = long.clone().unwrap_or_else(|| spec.name());
        let begin = match (spec.letter, long) {
            (Some(letter), Some(long)) => format!("\n  -{letter}, {long} "),
            (Some(letter), None) => format!("\n  -{letter} "),
            (None, _) => format!("\n      {name} "),
        };
        let carried_out = spec.instead.is_none();
        assert_eq!(help.contains(&begin), carried_out, "{name}");
        assert_eq!(spec.doc[1].is_empty(), !carried_out, "{name}");
    }
}

/// Arguments that are often almost right.
fn argument() -> impl Strategy<Value = String> {
    let name = (0..specs().count()).prop_map(|at| specs().nth(at).unwrap().name());
    let long = (0..specs().count()).prop_map(|at| specs().nth(at).unwrap().long.concat());
    let value = "[0-9a-zA-Z.:%,\\[\\]+-]{0,8}";
    prop_oneof![
        Just("-s".to_owned()),
        Just("-c".to_owned()),
        Just("-u".to_owned()),
        (name, value).prop_map(|(name, value)| name + &value),
        (long, value).prop_map(|(long, value)| format!("--{long}={value}")),
        value,
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn any_arguments_are_read_or_refused(
        args in prop::collection::vec(argument(), 0..12),
        value in prop::option::weighted(0.02, argument()),
    ) {
        match parse(args, |_| value.clone()) {
            Ok(Parsed::Test(client)) if client.is_client() => {
                let rate = client.stream.rate.is_some() || !client.is_udp();
                prop_assert!(rate && (1..=65_535).contains(&client.stream.streams));
                prop_assert!(client.stream.amount != Amount::Time(Duration::ZERO));
            }
            Ok(Parsed::Test(server)) => prop_assert!(server.time != Some(Duration::ZERO)),
            Ok(Parsed::Help | Parsed::Version) => {}
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// The option tables of docs/dialects.md: the head and the rows of each.
fn option_tables() -> [(&'static str, String); 2] {
    let mut carried_out = String::new();
    // Options with the same remedy share a row.
    let mut left_out: Vec<(String, String)> = Vec::new();
    for spec in specs() {
        let letter = spec.letter.map(|letter| format!("`-{letter}`"));
        let long = spec.long.iter().map(|name| format!("`--{name}`"));
        let names = letter
            .into_iter()
            .chain(long)
            .collect::<Vec<_>>()
            .join(", ");
        let side = spec.side;
        if let Some(instead) = spec.instead {
            let remedy = format!("{side} | {instead}");
            match left_out.iter_mut().find(|(_, other)| *other == remedy) {
                Some((row, _)) => *row += &format!(", {names}"),
                None => left_out.push((names, remedy)),
            }
            continue;
        }
        let [value, meaning, limits] = spec.doc;
        let option = format!("{names} {value}");
        let limits = match limits {
            "" => String::new(),
            limits => format!(" {limits}"),
        };
        carried_out += &format!("| {} | {side} | {meaning} |{limits} |\n", option.trim_end());
    }
    [
        (
            "| Option | Side | Meaning | Limits |\n|---|---|---|---|\n",
            carried_out,
        ),
        (
            "| Option | Side | What to do instead |\n|---|---|---|\n",
            left_out
                .iter()
                .map(|(names, remedy)| format!("| {names} | {remedy} |\n"))
                .collect(),
        ),
    ]
}

/// Set to any value to write the page's tables anew instead of comparing with them.
const REFRESH: &str = "NICPOLL_REFRESH_GOLDEN";

#[test]
fn the_page_on_dialects_has_a_row_for_each_option() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dialects.md");
    let page = fs::read_to_string(path).unwrap();
    let expected = option_tables()
        .into_iter()
        .fold(page.clone(), |page, (head, rows)| {
            let (before, rest) = page.split_once(head).expect(head);
            let (_, after) = rest.split_once("\n\n").expect(head);
            format!("{before}{head}{rows}\n{after}")
        });
    if env::var_os(REFRESH).is_some() {
        fs::write(path, &expected).unwrap();
    }
    assert!(
        page == expected || env::var_os(REFRESH).is_some(),
        "docs/dialects.md does not say what the options are; run this again with {REFRESH}=1"
    );
}
