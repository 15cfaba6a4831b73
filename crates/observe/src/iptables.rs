//! What legacy iptables drops: rules of x_tables, of which nf_tables knows nothing.
//!
//! What must hold: each of its rules and policies counts what it drops, so where the program that prints them is
//! installed, the count is exact. Where it is not, each table is named as something that may drop.

use std::fs;
use std::process::{Command, Stdio};

use nicpoll_model::{LossPlace, UncountedLoss, Way};

use crate::nftables::Filter;

/// For each protocol: where the kernel lists the tables that it has, and who prints them with their counters.
const PROTOCOLS: [(&str, &str); 2] = [
    ("ip_tables_names", "iptables-legacy-save"),
    ("ip6_tables_names", "ip6tables-legacy-save"),
];

/// The tables of each protocol that has any, a line each, and who prints them. Most hosts have none: no program is run
/// there.
fn tables() -> impl Iterator<Item = (String, &'static str)> {
    let listed = PROTOCOLS.into_iter().map(|(names, program)| {
        let path = format!("/proc/thread-self/net/{names}");
        (fs::read_to_string(path).unwrap_or_default(), program)
    });
    listed.filter(|(tables, _)| !tables.trim().is_empty())
}

/// Reads the tables of the namespace that the caller is in; nothing where there are none, or without CAP_NET_ADMIN.
pub fn read() -> Filter {
    let mut all = Filter::default();
    for (tables, program) in tables() {
        match saved(program) {
            Some(text) => {
                let (dropped, out) = dropped(&text);
                all.dropped += dropped;
                all.dropped_out += out;
            }
            None => all
                .uncounted
                .extend(tables.lines().map(|table| may_drop(table, program))),
        }
    }
    all
}

/// Chains for packets that are routed through the host which have rules or drop, each in words; where the program that
/// prints them is not installed, the tables that there are.
pub fn forward_chains() -> Vec<String> {
    let mut all = Vec::new();
    for (tables, program) in tables() {
        match saved(program) {
            Some(text) => all.extend(routed(&text)),
            None => all.extend(tables.lines().map(|table| {
                format!("table {table} of legacy iptables ({program} is not there to show it)")
            })),
        }
    }
    all
}

/// The chains of a text such as [`dropped`] reads that routed packets come to, when they have rules or drop.
fn routed(text: &str) -> Vec<String> {
    let (mut table, mut chains) = ("", Vec::new());
    for line in text.lines() {
        // A rule has its counters before it.
        let rule = line.split_once("] ").map_or(line, |(_, rule)| rule);
        let mut words = rule.split_whitespace();
        let chain = match line.as_bytes().first() {
            Some(b'*') => {
                table = line.get(1..).unwrap_or_default();
                continue;
            }
            Some(b':') => {
                let mut words = line.trim_start_matches(':').split_whitespace();
                let chain = words.next();
                chain.filter(|_| words.next() == Some("DROP"))
            }
            _ if words.next() == Some("-A") => words.next(),
            _ => continue,
        };
        let is_routed = |name: &&str| matches!(*name, "PREROUTING" | "FORWARD" | "POSTROUTING");
        if let Some(chain) = chain.filter(is_routed) {
            let words = format!("chain {chain} of table {table} of legacy iptables");
            if !chains.contains(&words) {
                chains.push(words);
            }
        }
    }
    chains
}

/// What a program of iptables prints of this namespace.
fn saved(program: &str) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.arg("-c").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

/// Packets that rules and policies dropped or rejected, and those of them that were on their way out, by a text such as
///
/// ```text
/// :INPUT DROP [3:252]
/// [4:336] -A INPUT -p udp -j REJECT --reject-with icmp-port-unreachable
/// ```
fn dropped(text: &str) -> (u64, u64) {
    let counted = text.lines().filter_map(|line| {
        let (before, after) = line.split_once('[')?;
        let (count, rule) = after.split_once(']')?;
        let word_after = |option: &str| {
            let mut words = rule.split_whitespace();
            words
                .find(|word| *word == option)
                .and_then(|_| words.next())
        };
        let mut policy = before
            .strip_prefix(':')
            .into_iter()
            .flat_map(str::split_whitespace);
        let (chain, target) = match before.starts_with(':') {
            true => (policy.next(), policy.next()),
            false => (word_after("-A"), word_after("-j")),
        };
        let (packets, _) = count.split_once(':')?;
        let packets: u64 = packets.parse().ok()?;
        let is_way_out = matches!(chain, Some("OUTPUT" | "POSTROUTING"));
        matches!(target, Some("DROP" | "REJECT")).then_some((packets, is_way_out))
    });
    counted.fold((0, 0), |(all, out), (packets, is_way_out)| {
        (all + packets, out + if is_way_out { packets } else { 0 })
    })
}

fn may_drop(table: &str, program: &str) -> UncountedLoss {
    UncountedLoss {
        place: LossPlace::Nftables,
        packets: None,
        by: format!(
            "table {table} of legacy iptables may drop, and {program} is not there to say how many"
        ),
        ways: vec![Way::In, Way::Out],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_policies_that_drop_are_summed_and_others_are_not() {
        let text = "# Generated by iptables-save v1.8.9\n*filter\n:INPUT DROP [3:252]\n:FORWARD ACCEPT [50:4200]\n\
                    :mine - [0:0]\n[4:336] -A INPUT -p udp -j REJECT --reject-with icmp-port-unreachable\n\
                    [7:588] -A INPUT -p udp -m comment --comment \"DROP\" -j mine\n[10:840] -A mine -j DROP\n\
                    [20:1680] -A mine -j ACCEPT\n\
                    :OUTPUT DROP [100:8400]\n[200:16800] -A OUTPUT -j DROP\nCOMMIT\n";
        assert_eq!(dropped(text), (317, 300));
        let named = may_drop("filter", "iptables-legacy-save");
        assert!(
            named.by.contains("table filter of legacy iptables"),
            "{named:?}"
        );
    }

    #[test]
    fn chains_of_routed_packets_are_named_when_they_have_rules_or_drop() {
        let text = "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n[7:5] -A POSTROUTING -j MASQUERADE\n\
                    COMMIT\n*filter\n:INPUT DROP [3:252]\n:FORWARD DROP [0:0]\n:mine - [0:0]\n\
                    [4:336] -A INPUT -p udp -j DROP\n[1:2] -A FORWARD -j mine\n[1:2] -A mine -j DROP\nCOMMIT\n";
        assert_eq!(
            routed(text),
            [
                "chain POSTROUTING of table nat of legacy iptables",
                "chain FORWARD of table filter of legacy iptables"
            ]
        );
        assert_eq!(routed(":FORWARD ACCEPT [50:4200]\n"), [""; 0]);
    }

    #[test]
    fn a_program_that_is_not_there_prints_nothing() {
        assert_eq!(saved("iptables-legacy-save-that-nobody-has"), None);
    }
}
