//! Packet filters: packets dropped by nftables and legacy iptables, rules that drop without a counter, and chains that
//! see forwarded packets.
//!
//! A rule's counter counts its verdict only if nothing is between the two; a named counter, only if every rule with it
//! drops. Everything else that can drop is reported by chain, with the directions of the packets that reach it through
//! its hook or the chains that jump to it. Rules of legacy iptables always count; if the program that prints them is
//! not installed, each table is reported as one that may drop.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::process::{Command, Stdio};
use std::{fs, io};

use netlink_bindings::nftables;
use netlink_bindings::nftables::{
    ExprOps, IterableChainAttrs, IterableExprListAttrs, IterableExprLookupAttrs, IterableRuleAttrs,
    Nfgenmsg, ObjData, ObjectType, VerdictCode,
};
use netlink_socket2::NetlinkSocket;
use nicpoll_model::{LossPlace, UncountedLoss, Way};
use rustix::io::Errno;

/// `NFT_REG_VERDICT`, include/uapi/linux/netfilter/nf_tables.h: the destination of lookups in verdict maps.
const VERDICT_REGISTER: u32 = 0;

/// `NFPROTO_ARP`, include/uapi/linux/netfilter.h.
const ARP: u8 = 3;

/// The drops of a network namespace's filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Packets counted and dropped, in all tables.
    pub dropped: u64,
    /// Of these, packets that could only be on their way out: IP counts them as discarded, too.
    pub dropped_out: u64,
    /// Rules that can drop packets without counting them.
    pub uncounted: Vec<UncountedLoss>,
}

/// A table's family and name, and a name in it.
pub(crate) type ObjectName = (u8, String, String);

/// How a drop is counted.
enum DropCount {
    Packets(u64),
    /// By this named counter.
    Named(ObjectName),
    Not(Cause),
}

/// What drops without a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Drop,
    Reject,
    Map,
    Policy,
    Shared,
}

/// Words for one and for several, in order of the causes.
const WORDS: [[&str; 2]; 5] = [
    [
        "a drop rule without a counter",
        "drop rules without a counter",
    ],
    [
        "a reject rule without a counter",
        "reject rules without a counter",
    ],
    ["a verdict map that drops", "verdict maps that drop"],
    ["the policy drop", "the policy drop"],
    [
        "a drop rule with a named counter that other rules count with too",
        "drop rules with named counters that other rules count with too",
    ],
];

/// Everything found that can drop.
#[derive(Default)]
struct DropFilters {
    /// Packets counted and dropped, with the chains that dropped them.
    counted: Vec<(Vec<ObjectName>, u64)>,
    /// Number of drops without a counter, by chain and cause.
    uncounted: BTreeMap<(ObjectName, Cause), usize>,
    /// By named counter: the chain of each rule that drops right after counting.
    named: BTreeMap<ObjectName, Vec<ObjectName>>,
    /// Verdict maps, each with the chain that looks it up.
    maps: Vec<(ObjectName, ObjectName)>,
    /// Chains that the kernel calls, with the directions of their packets.
    hooks: BTreeMap<ObjectName, &'static [Way]>,
    /// By chain: the chains that jump to it.
    callers: BTreeMap<ObjectName, BTreeSet<ObjectName>>,
}

/// Reads the filter of the socket's namespace.
///
/// # Errors
/// `EOPNOTSUPP` or `EPROTONOSUPPORT` when the kernel has no nftables, `EPERM` without CAP_NET_ADMIN.
fn read_nftables(socket: &mut NetlinkSocket) -> io::Result<Filter> {
    let mut found = DropFilters::default();
    read_chains(socket, &mut found)?;
    read_rules(socket, &mut found)?;
    if !found.named.is_empty() {
        add_named(socket, &mut found)?;
    }
    for (map, chain) in std::mem::take(&mut found.maps) {
        if read_map(socket, &map, &chain, &mut found).unwrap_or(true) {
            found.add(&chain, DropCount::Not(Cause::Map));
        }
    }
    let loss = |((chain, cause), times): (&(ObjectName, Cause), &usize)| {
        let ways = found.ways(chain)?;
        let (family, table, chain) = chain;
        let family = family_name(*family);
        let words = WORDS[*cause as usize][usize::from(*times > 1)];
        Some(UncountedLoss {
            place: LossPlace::Nftables,
            packets: None,
            by: format!("chain {chain} of table {family} {table} has {words}"),
            ways,
        })
    };
    let counted = || found.counted.iter();
    Ok(Filter {
        dropped: counted().map(|(_, packets)| packets).sum(),
        dropped_out: counted()
            .filter(|(chains, _)| chains.iter().all(|chain| found.is_way_out(chain)))
            .map(|(_, packets)| packets)
            .sum(),
        uncounted: found.uncounted.iter().filter_map(loss).collect(),
    })
}

impl DropFilters {
    fn add(&mut self, chain: &ObjectName, count: DropCount) {
        match count {
            DropCount::Packets(packets) => self.counted.push((vec![chain.clone()], packets)),
            DropCount::Named(counter) => {
                let rules = self.named.entry(counter).or_default();
                rules.push(chain.clone());
            }
            DropCount::Not(cause) => {
                *self.uncounted.entry((chain.clone(), cause)).or_default() += 1;
            }
        }
    }

    /// Directions of the packets that reach a chain; `None` if none do.
    fn ways(&self, chain: &ObjectName) -> Option<Vec<Way>> {
        let mut from = vec![chain];
        let mut seen = BTreeSet::from([chain]);
        let mut ways = None;
        while let Some(chain) = from.pop() {
            if let Some(of_hook) = self.hooks.get(chain) {
                let known: &mut Vec<Way> = ways.get_or_insert_default();
                let new: Vec<Way> = of_hook
                    .iter()
                    .filter(|way| !known.contains(way))
                    .copied()
                    .collect();
                known.extend(new);
            }
            let callers = self.callers.get(chain).into_iter().flatten();
            from.extend(callers.filter(|caller| seen.insert(caller)));
        }
        ways
    }

    /// Whether only packets leaving the host reach a chain.
    fn is_way_out(&self, chain: &ObjectName) -> bool {
        chain.0 != ARP && self.ways(chain).is_some_and(|ways| ways == [Way::Out])
    }

    /// Records that a chain jumps to another one in its table.
    fn add_jump(&mut self, from: &ObjectName, to: &CStr) {
        let to = (from.0, from.1.clone(), to.to_string_lossy().into_owned());
        self.callers.entry(to).or_default().insert(from.clone());
    }

    /// Records what one rule can drop.
    fn add_rule(&mut self, chain: &ObjectName, expressions: IterableExprListAttrs<'_>) {
        let in_table = |name: &str| (chain.0, chain.1.clone(), String::from(name));
        let mut counted = None;
        for expression in expressions.get_elem() {
            let cause = match expression.get_data() {
                Ok(ExprOps::Counter(counter)) => {
                    counted = counter.get_packets().ok().map(DropCount::Packets);
                    continue;
                }
                Ok(ExprOps::Objref(object)) => {
                    let is_counter = object.get_imm_type() == Ok(ObjectType::Counter as u32);
                    let name = object.get_imm_name().ok().filter(|_| is_counter);
                    counted = name.map(|name| DropCount::Named(in_table(&name.to_string_lossy())));
                    continue;
                }
                Ok(ExprOps::Log(_)) => continue,
                Ok(ExprOps::Immediate(immediate)) => {
                    let verdict = immediate.get_data().and_then(|data| data.get_verdict());
                    if let Ok(to) = verdict.clone().and_then(|verdict| verdict.get_chain()) {
                        self.add_jump(chain, to);
                    }
                    let code = verdict.and_then(|verdict| verdict.get_code());
                    (code == Ok(VerdictCode::Drop as u32)).then_some(Cause::Drop)
                }
                Ok(ExprOps::Reject(_)) => Some(Cause::Reject),
                // The translation of `-j REJECT` by iptables-nft.
                Ok(ExprOps::Target(target)) => {
                    let name = target.get_name().map(|name| name.to_bytes() == b"REJECT");
                    (name == Ok(true)).then_some(Cause::Reject)
                }
                Ok(ExprOps::Lookup(lookup)) => {
                    let map = verdict_map(&lookup);
                    self.maps
                        .extend(map.map(|map| (in_table(&map), chain.clone())));
                    None
                }
                _ => None,
            };
            match cause {
                Some(cause) => {
                    return self.add(chain, counted.unwrap_or(DropCount::Not(cause)));
                }
                // Not all counted packets reach the verdict.
                None => counted = None,
            }
        }
    }
}

/// The name of the map from which a lookup takes a verdict; `None` if it looks up something else.
fn verdict_map(lookup: &IterableExprLookupAttrs<'_>) -> Option<String> {
    // The bindings number the attributes without gaps and put the set's id second; in the kernel's enum it is fourth,
    // so what they call source is the destination.
    let gives_verdicts = lookup.get_sreg() == Ok(VERDICT_REGISTER);
    let name = lookup.get_set().ok().filter(|_| gives_verdicts)?;
    Some(name.to_string_lossy().into_owned())
}

/// Reads the hooks of chains, and chains whose policy is to drop. Such a chain may have counters, for iptables-nft.
fn read_chains(socket: &mut NetlinkSocket, found: &mut DropFilters) -> io::Result<()> {
    each_chain(socket, |this, chain| {
        if let Ok(number) = chain.get_hook().and_then(|hook| hook.get_num()) {
            let ways = ways_of_hook(this.0, number);
            found.hooks.insert(this.clone(), ways);
        }
        if chain.get_policy() == Ok(VerdictCode::Drop as u32) {
            let counters = chain.get_counters();
            let counted = counters.and_then(|counters| counters.get_packets());
            let count = counted.map_or(DropCount::Not(Cause::Policy), DropCount::Packets);
            found.add(&this, count);
        }
    })
}

/// Passes each chain of the socket's namespace to `look`.
fn each_chain(
    socket: &mut NetlinkSocket,
    mut look: impl FnMut(ObjectName, &IterableChainAttrs<'_>),
) -> io::Result<()> {
    let request = nftables::Request::new().op_getchain_dump(&Nfgenmsg::default());
    let mut reply = socket.request(&request)?;
    while let Some(chain) = reply.recv() {
        let (header, chain) = chain?;
        if let (Ok(table), Ok(name)) = (chain.get_table(), chain.get_name()) {
            look(named(header.nfgen_family, table, name), &chain);
        }
    }
    Ok(())
}

/// Passes each rule, with its chain, to `look`.
fn each_rule(
    socket: &mut NetlinkSocket,
    mut look: impl FnMut(ObjectName, &IterableRuleAttrs<'_>),
) -> io::Result<()> {
    let request = nftables::Request::new().op_getrule_dump(&Nfgenmsg::default());
    let mut reply = socket.request(&request)?;
    while let Some(rule) = reply.recv() {
        let (header, rule) = rule?;
        if let (Ok(table), Ok(chain)) = (rule.get_table(), rule.get_chain()) {
            look(named(header.nfgen_family, table, chain), &rule);
        }
    }
    Ok(())
}

fn read_rules(socket: &mut NetlinkSocket, found: &mut DropFilters) -> io::Result<()> {
    each_rule(socket, |chain, rule| {
        if let Ok(expressions) = rule.get_expressions() {
            found.add_rule(&chain, expressions);
        }
    })
}

/// Adds the counts of named counters, each once even if several rules share it.
fn add_named(socket: &mut NetlinkSocket, found: &mut DropFilters) -> io::Result<()> {
    let mut counters = BTreeMap::new();
    let request = nftables::Request::new().op_getobj_dump(&Nfgenmsg::default());
    let mut reply = socket.request(&request)?;
    while let Some(object) = reply.recv() {
        let (header, object) = object?;
        if let (Ok(table), Ok(name), Ok(ObjData::Counter(counter))) =
            (object.get_table(), object.get_name(), object.get_data())
        {
            let name = named(header.nfgen_family, table, name);
            counters.insert(name, (counter.get_packets().ok(), object.get_use().ok()));
        }
    }
    for (counter, chains) in std::mem::take(&mut found.named) {
        match counters.get(&counter) {
            Some(&(Some(packets), Some(rules))) if rules as usize == chains.len() => {
                found.counted.push((chains, packets));
            }
            _ => {
                for chain in chains {
                    found.add(&chain, DropCount::Not(Cause::Shared));
                }
            }
        }
    }
    Ok(())
}

/// Whether a verdict map of a chain can drop. Records the chains it jumps to.
fn read_map(
    socket: &mut NetlinkSocket,
    (family, table, map): &ObjectName,
    chain: &ObjectName,
    found: &mut DropFilters,
) -> io::Result<bool> {
    let header = Nfgenmsg {
        nfgen_family: *family,
        ..Nfgenmsg::default()
    };
    let mut request = nftables::Request::new().op_getsetelem_dump(&header);
    request
        .encode()
        .push_table_bytes(table.as_bytes())
        .push_set_bytes(map.as_bytes());
    let mut reply = socket.request(&request)?;
    let mut drops = false;
    while let Some(elements) = reply.recv() {
        let (_, elements) = elements?;
        let elements = elements.get_elements().map_err(io::Error::other)?;
        for element in elements.get_elem() {
            let verdict = element.get_data().and_then(|data| data.get_verdict());
            if let Ok(to) = verdict.clone().and_then(|verdict| verdict.get_chain()) {
                found.add_jump(chain, to);
            }
            let code = verdict.and_then(|verdict| verdict.get_code());
            drops |= code == Ok(VerdictCode::Drop as u32);
        }
    }
    Ok(drops)
}

fn named(family: u8, table: &CStr, name: &CStr) -> ObjectName {
    let [table, name] = [table, name].map(|name| name.to_string_lossy().into_owned());
    (family, table, name)
}

/// Directions of the packets at a hook, by include/uapi/linux/netfilter.h and netfilter_arp.h; empty for packets from
/// one interface to another.
const fn ways_of_hook(family: u8, number: u32) -> &'static [Way] {
    match (family, number) {
        // arp: in, out, forward.
        (3, 0) => &[Way::In],
        (3, 1) => &[Way::Out],
        (3, 2) => &[],
        // netdev: ingress, egress.
        (5, 0) => &[Way::In],
        (5, 1) => &[Way::Out],
        // prerouting, input; of inet also ingress.
        (1 | 2 | 7 | 10, 0 | 1 | 5) => &[Way::In],
        // forward.
        (1 | 2 | 7 | 10, 2) => &[],
        // output, postrouting.
        (1 | 2 | 7 | 10, 3 | 4) => &[Way::Out],
        _ => &[Way::In, Way::Out],
    }
}

/// Names of families in include/uapi/linux/netfilter.h, as in nft(8).
fn family_name(family: u8) -> &'static str {
    match family {
        1 => "inet",
        2 => "ip",
        3 => "arp",
        5 => "netdev",
        7 => "bridge",
        10 => "ip6",
        _ => "of another family",
    }
}

/// For each protocol: the kernel's list of tables, and the program that prints them with counters.
const PROTOCOLS: [(&str, &str); 2] = [
    ("ip_tables_names", "iptables-legacy-save"),
    ("ip6_tables_names", "ip6tables-legacy-save"),
];

/// The tables of each protocol that has any, one a line, with the program that prints them. Most hosts have none, so no
/// program is run.
fn tables() -> impl Iterator<Item = (String, &'static str)> {
    let listed = PROTOCOLS.into_iter().map(|(names, program)| {
        let path = format!("/proc/thread-self/net/{names}");
        (fs::read_to_string(path).unwrap_or_default(), program)
    });
    listed.filter(|(tables, _)| !tables.trim().is_empty())
}

/// Reads the tables of the caller's namespace; empty without tables or CAP_NET_ADMIN.
fn read_iptables() -> Filter {
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

/// Describes chains for routed packets that have rules or drop. If the program that prints them is not installed, lists
/// the tables.
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

/// The chains in a text that routed packets reach and that have rules or drop.
fn routed(text: &str) -> Vec<String> {
    let mut chains = Vec::new();
    for line in printed(text) {
        let is_routed = matches!(line.chain, "PREROUTING" | "FORWARD" | "POSTROUTING");
        if is_routed && (line.is_rule || line.target == "DROP") {
            let (chain, table) = (line.chain, line.table);
            let words = format!("chain {chain} of table {table} of legacy iptables");
            if !chains.contains(&words) {
                chains.push(words);
            }
        }
    }
    chains
}

/// Runs a program of iptables and returns its output for this namespace.
fn saved(program: &str) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.arg("-c").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

/// A rule or a chain's policy, as iptables-save prints it with counters:
///
/// ```text
/// *filter
/// :INPUT DROP [3:252]
/// [4:336] -A INPUT -p udp -j REJECT --reject-with icmp-port-unreachable
/// ```
struct PrintedRule<'a> {
    table: &'a str,
    chain: &'a str,
    target: &'a str,
    packets: u64,
    is_rule: bool,
}

fn printed(text: &str) -> impl Iterator<Item = PrintedRule<'_>> {
    let mut table = "";
    text.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        }
        let (before, after) = line.split_once('[')?;
        let (count, rule) = after.split_once(']')?;
        let word_after = |option: &str| {
            let mut words = rule.split_whitespace();
            words
                .find(|word| *word == option)
                .and_then(|_| words.next())
        };
        let policy = before.strip_prefix(':');
        let mut policy_words = policy.unwrap_or_default().split_whitespace();
        let (chain, target) = match policy {
            Some(_) => (policy_words.next(), policy_words.next()),
            None => (word_after("-A"), word_after("-j")),
        };
        Some(PrintedRule {
            table,
            chain: chain?,
            target: target.unwrap_or_default(),
            packets: count.split_once(':')?.0.parse().ok()?,
            is_rule: policy.is_none(),
        })
    })
}

/// Sums packets that rules and policies dropped or rejected, and of these the packets on their way out.
fn dropped(text: &str) -> (u64, u64) {
    let drops = printed(text).filter(|line| matches!(line.target, "DROP" | "REJECT"));
    drops.fold((0, 0), |(all, out), line| {
        let is_way_out = matches!(line.chain, "OUTPUT" | "POSTROUTING");
        (
            all + line.packets,
            out + if is_way_out { line.packets } else { 0 },
        )
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

/// Families and hooks of chains that the kernel calls for forwarded packets (include/uapi/linux/netfilter.h):
/// prerouting, forward, postrouting, and the ingress of `inet`.
const ROUTED: ([u8; 3], [u32; 4]) = ([1, 2, 10], [0, 2, 4, 5]);
/// The family of chains of single interfaces, `netdev`: ingress and egress.
const OF_INTERFACES: u8 = 5;

/// A chain with a hook.
struct Chain {
    rules: usize,
    drops: bool,
}

/// Describes the packet filters in the calling thread's network namespace for packets that arrive at one of these
/// interfaces and leave by another.
///
/// # Errors
/// When the kernel does not answer.
pub fn forward_filters(interfaces: &[&str]) -> io::Result<Vec<String>> {
    let mut filters = forward_chains();
    match nft_chains(&mut NetlinkSocket::new(), interfaces) {
        Ok(chains) => filters.extend(chains),
        // A kernel without nftables has no such rules: it answers with one of three errors, by what else of netfilter
        // it has. Without the privilege to read them there is none to forward, either.
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::INVAL | Errno::PERM)
            ) => {}
        Err(error) => return Err(error),
    }
    Ok(filters)
}

fn nft_chains(socket: &mut NetlinkSocket, interfaces: &[&str]) -> io::Result<Vec<String>> {
    let mut chains: BTreeMap<ObjectName, Chain> = BTreeMap::new();
    each_chain(socket, |name, chain| {
        if is_called(name.0, chain, interfaces) {
            let drops = chain.get_policy() == Ok(VerdictCode::Drop as u32);
            chains.insert(name, Chain { rules: 0, drops });
        }
    })?;
    each_rule(socket, |chain, _| {
        if let Some(chain) = chains.get_mut(&chain) {
            chain.rules += 1;
        }
    })?;
    let words = |((family, table, name), chain): (&ObjectName, &Chain)| {
        let family = family_name(*family);
        let what = in_words(chain)?;
        Some(format!("chain {name} of table {family} {table} ({what})"))
    };
    Ok(chains.iter().filter_map(words).collect())
}

/// Whether the kernel calls a chain for packets between these interfaces.
fn is_called(family: u8, chain: &IterableChainAttrs<'_>, interfaces: &[&str]) -> bool {
    let Ok(hook) = chain.get_hook() else {
        return false;
    };
    if family != OF_INTERFACES {
        let (families, hooks) = ROUTED;
        return families.contains(&family)
            && hook.get_num().is_ok_and(|number| hooks.contains(&number));
    }
    let is_named = |device: &CStr| {
        interfaces
            .iter()
            .any(|it| it.as_bytes() == device.to_bytes())
    };
    // A chain for several interfaces may include these.
    hook.get_dev().map_or(true, is_named)
}

/// Describes the effect of a chain; `None` if it has none.
fn in_words(chain: &Chain) -> Option<String> {
    let rules = match chain.rules {
        0 if chain.drops => return Some(String::from("policy drop")),
        0 => return None,
        1 => String::from("1 rule"),
        rules => format!("{rules} rules"),
    };
    let policy = if chain.drops { ", policy drop" } else { "" };
    Some(format!("{rules}{policy}"))
}

/// Reads both filters of a namespace: nf_tables, which iptables-nft uses too, and legacy iptables. `None` without
/// CAP_NET_ADMIN.
pub fn read_filters(socket: &mut NetlinkSocket) -> Option<Filter> {
    let older = read_iptables();
    match read_nftables(socket) {
        Ok(mut filter) => {
            filter.dropped += older.dropped;
            filter.dropped_out += older.dropped_out;
            filter.uncounted.extend(older.uncounted);
            Some(filter)
        }
        Err(_) => (older != Filter::default()).then_some(older),
    }
}

#[cfg(test)]
mod iptables_tests {
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

#[cfg(test)]
mod forward_filter_tests {
    use super::*;

    #[test]
    fn a_chain_without_a_rule_counts_only_when_it_drops() {
        let words = |rules, drops| in_words(&Chain { rules, drops });
        assert_eq!(words(0, false), None);
        assert_eq!(words(0, true).unwrap(), "policy drop");
        assert_eq!(words(1, false).unwrap(), "1 rule");
        assert_eq!(words(12, true).unwrap(), "12 rules, policy drop");
    }
}
