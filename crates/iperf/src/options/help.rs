//! What `--help` prints, and the tables of docs/dialects.md.

use super::table::{Group, Meaning, Spec, specs};

const USAGE: &str = "\
Usage: iperf [-s|-c host] [options]
       iperf [-h|--help] [-v|--version]
";

const NOTES: &str = "
[kmgKMG] k, m, g are powers of 1000 and K, M, G powers of 1024, with every option:
1k = 1000, 1K = 1024, 1m = 1000000, 1M = 1048576

Names for -S: af11 to af13, af21 to af23, af31 to af33, af41 to af43, cs0 to cs7, ef, le, nqb, nqb2,
ac_be, ac_bk, ac_vi, ac_vo, lowdelay, throughput, reliability

The environment variable TCP_WINDOW_SIZE sets -w, and IPERF_<long option name>, such as
IPERF_BANDWIDTH, any other option. The command line comes after it.
";

/// The options that are carried out, in iperf's layout.
pub fn help_text() -> String {
    let mut text = String::from(USAGE);
    for (group, title) in [
        (Group::Both, "Client/Server"),
        (Group::Server, "Server specific"),
        (Group::Client, "Client specific"),
        (Group::Miscellaneous, "Miscellaneous"),
    ] {
        text += &format!("\n{title}:\n");
        for spec in specs() {
            let of_group = spec.help.iter().filter(|help| help.group == group);
            for help in of_group {
                let name = format!("{:<17}", letter_and_name(spec));
                let option = format!("{name} {}", help.value);
                text += &format!("{:<25}  {}\n", option.trim_end(), help.text);
            }
        }
    }
    text + NOTES
}

fn letter_and_name(spec: &Spec) -> String {
    match (spec.short, spec.long.first()) {
        (Some(letter), Some(name)) => format!("  -{letter}, --{name}"),
        (Some(letter), None) => format!("  -{letter}"),
        (None, name) => format!("      --{}", name.copied().unwrap_or_default()),
    }
}

/// Makes the rows of a table.
pub type Rows = fn() -> String;

/// The tables of docs/dialects.md: how each begins, and its rows.
pub const OPTION_TABLES: [(&str, Rows); 2] = [
    (
        "| Option | Side | Meaning | Limits |\n|---|---|---|---|\n",
        carried_out_rows,
    ),
    (
        "| Option | Side | What to do instead |\n|---|---|---|\n",
        left_out_rows,
    ),
];

/// The rows of docs/dialects.md on options that are carried out.
fn carried_out_rows() -> String {
    let carried_out = specs().filter(|spec| !matches!(spec.meaning, Meaning::LeftOut(..)));
    carried_out
        .map(|spec| {
            let doc = &spec.doc;
            let option = format!("{} {}", names(spec), doc.value);
            let option = option.trim_end();
            let limits = if doc.limits.is_empty() {
                String::new()
            } else {
                format!(" {}", doc.limits)
            };
            let side = spec.side.name();
            format!("| {option} | {side} | {} |{limits} |\n", doc.meaning)
        })
        .collect()
}

/// The rows of docs/dialects.md on options that are left out.
fn left_out_rows() -> String {
    specs()
        .filter_map(|spec| match spec.meaning {
            Meaning::LeftOut(_, instead) => {
                let side = spec.side.name();
                Some(format!("| {} | {side} | {instead} |\n", names(spec)))
            }
            _ => None,
        })
        .collect()
}

fn names(spec: &Spec) -> String {
    let letter = spec.short.map(|letter| format!("`-{letter}`"));
    let long = spec.long.iter().map(|name| format!("`--{name}`"));
    let names: Vec<String> = letter.into_iter().chain(long).collect();
    names.join(", ")
}
