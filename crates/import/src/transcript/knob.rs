//! Commands that change how a host works beside polling: sysctl, ifconfig's offloads and ethtool, each as a name with
//! its value.
//!
//! What must hold: a command that only looks sets nothing. A name is as the command has it, with its interface before
//! it where it has one, so that what two commands call alike is alike.

use super::command::{Command, Tool};

/// Options of ifconfig(8) that are on, or with a dash off.
const SWITCHES: [&str; 14] = [
    "rxcsum",
    "txcsum",
    "rxcsum6",
    "txcsum6",
    "tso",
    "tso4",
    "tso6",
    "lro",
    "toe",
    "vlanhwtag",
    "vlanhwfilter",
    "vlanhwcsum",
    "vlanhwtso",
    "vlanmtu",
];
/// And those that have a number behind them.
const NUMBERS: [&str; 2] = ["mtu", "txqueuelen"];

/// Options of ethtool(8) that set pairs of a name and a value.
const ETHTOOL: [&str; 12] = [
    "-K",
    "--features",
    "--offload",
    "-C",
    "--coalesce",
    "-G",
    "--set-ring",
    "-A",
    "--pause",
    "-L",
    "--set-channels",
    "--set-priv-flags",
];

/// The variable by which old kernels poll on all interfaces.
pub const POLLING_VARIABLE: &str = "kern.polling.enable";

/// What a command sets, by name; nothing for one that looks.
pub fn set_by(command: &Command) -> Vec<(String, String)> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    match command.tool {
        Tool::Sysctl => words.iter().filter_map(|word| variable(word)).collect(),
        Tool::Ifconfig => of_ifconfig(&words),
        Tool::Ethtool => of_ethtool(&words),
        _ => Vec::new(),
    }
}

fn variable(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.contains('.') && !name.starts_with('-');
    (is_name && !value.is_empty()).then(|| (String::from(name), String::from(value)))
}

fn of_ifconfig(words: &[&str]) -> Vec<(String, String)> {
    let Some((interface, options)) = words.split_first() else {
        return Vec::new();
    };
    let mut set = Vec::new();
    for (at, word) in options.iter().enumerate() {
        let plain = word.strip_prefix('-').unwrap_or(word);
        let value = if SWITCHES.contains(&plain) {
            Some(if plain.len() < word.len() {
                "off"
            } else {
                "on"
            })
        } else if NUMBERS.contains(word) {
            options.get(at + 1).copied().filter(|it| is_number(it))
        } else {
            None
        };
        set.extend(value.map(|value| (format!("{interface}.{plain}"), String::from(value))));
    }
    set
}

fn of_ethtool(words: &[&str]) -> Vec<(String, String)> {
    let [option, interface, pairs @ ..] = words else {
        return Vec::new();
    };
    if !ETHTOOL.contains(option) {
        return Vec::new();
    }
    let pairs = pairs.chunks_exact(2);
    let is_value = |it: &str| is_number(it) || matches!(it, "on" | "off");
    pairs
        .take_while(|pair| is_value(pair[1]))
        .map(|pair| (format!("{interface}.{}", pair[0]), String::from(pair[1])))
        .collect()
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(tool: Tool, words: &str) -> String {
        let command = Command {
            tool,
            host: None,
            is_prompted: true,
            words: words.split(' ').map(String::from).collect(),
        };
        let set = set_by(&command).into_iter();
        let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
        set.join(" ")
    }

    #[test]
    fn what_commands_set_has_its_name_and_value() {
        for (tool, words, expected) in [
            (
                Tool::Sysctl,
                "net.inet.ip.fastforwarding=1",
                "net.inet.ip.fastforwarding=1",
            ),
            (
                Tool::Sysctl,
                "-w net.core.netdev_budget=600 net.core.dev_weight=32",
                "net.core.netdev_budget=600 net.core.dev_weight=32",
            ),
            (Tool::Sysctl, "net.inet.ip.fastforwarding", ""),
            (Tool::Sysctl, "-a kern.polling", ""),
            (
                Tool::Ifconfig,
                "em0 -tso -rxcsum txcsum mtu 9000",
                "em0.tso=off em0.rxcsum=off em0.txcsum=on em0.mtu=9000",
            ),
            (Tool::Ifconfig, "em0 polling", ""),
            (Tool::Ifconfig, "em0", ""),
            (
                Tool::Ethtool,
                "-K eth0 gro off lro on",
                "eth0.gro=off eth0.lro=on",
            ),
            (
                Tool::Ethtool,
                "-C eth0 adaptive-rx off rx-usecs 100",
                "eth0.adaptive-rx=off eth0.rx-usecs=100",
            ),
            (Tool::Ethtool, "-k eth0", ""),
            (Tool::Ethtool, "-S eth0 rx 7", ""),
            (Tool::Netblast, "10.0.0.1 9 64 60", ""),
        ] {
            assert_eq!(set(tool, words), expected, "{words}");
        }
    }
}
