//! What the packet filter drops: how many packets by its counters, and what of it no counter has.
//!
//! What must hold: a counter counts a verdict only when nothing stands between the two; a named counter only when
//! every rule that has it drops. Whatever else can drop is named by its chain, with the ways of the packets that come
//! there: by the chain's hook, or those of the chains that jump to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::io;

use netlink_bindings::nftables::{
    self, ExprOps, IterableChainAttrs, IterableExprListAttrs, IterableExprLookupAttrs,
    IterableRuleAttrs, Nfgenmsg, ObjData, ObjectType, VerdictCode,
};
use netlink_socket2::NetlinkSocket;
use nicpoll_model::{LossPlace, UncountedLoss, Way};

/// `NFT_REG_VERDICT`, include/uapi/linux/netfilter/nf_tables.h: what a lookup in a verdict map writes to.
const VERDICT_REGISTER: u32 = 0;

/// `NFPROTO_ARP`, include/uapi/linux/netfilter.h.
const ARP: u8 = 3;

/// What the filter of a network namespace drops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Packets that were counted and dropped, all tables together.
    pub dropped: u64,
    /// Those of them that were on their way out, and no others: IP counts them among what it discarded, too.
    pub dropped_out: u64,
    /// What can drop packets without their being counted.
    pub uncounted: Vec<UncountedLoss>,
}

/// A table's family and name, and a name in it.
pub(crate) type Name = (u8, String, String);

/// How a drop is counted, if it is.
enum Count {
    Packets(u64),
    /// By the named counter.
    Named(Name),
    Not(Cause),
}

/// What drops without a counter: in words for one of them, and for many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Drop,
    Reject,
    Map,
    Policy,
    Shared,
}

impl Cause {
    const fn words(self, many: bool) -> &'static str {
        match (self, many) {
            (Cause::Drop, false) => "a drop rule without a counter",
            (Cause::Drop, true) => "drop rules without a counter",
            (Cause::Reject, false) => "a reject rule without a counter",
            (Cause::Reject, true) => "reject rules without a counter",
            (Cause::Map, false) => "a verdict map that drops",
            (Cause::Map, true) => "verdict maps that drop",
            (Cause::Policy, _) => "the policy drop",
            (Cause::Shared, false) => {
                "a drop rule with a named counter that other rules count with too"
            }
            (Cause::Shared, true) => {
                "drop rules with named counters that other rules count with too"
            }
        }
    }
}

/// Everything that can drop, as it was found.
#[derive(Default)]
struct Found {
    /// Packets that were counted and dropped, with the chains that did it.
    counted: Vec<(Vec<Name>, u64)>,
    /// By chain: how many of each cause.
    uncounted: BTreeMap<(Name, Cause), usize>,
    /// By named counter: in which chain, for each rule that drops right after it.
    named: BTreeMap<Name, Vec<Name>>,
    /// Maps that give verdicts, and the chain that looks into each.
    maps: Vec<(Name, Name)>,
    /// Chains that the kernel calls, with the ways of the packets that it gives them.
    hooks: BTreeMap<Name, &'static [Way]>,
    /// By chain: the chains that send packets there.
    callers: BTreeMap<Name, BTreeSet<Name>>,
}

/// Reads the filter of the namespace that the socket is in.
///
/// # Errors
/// `EOPNOTSUPP` or `EPROTONOSUPPORT` when the kernel has no nftables, `EPERM` without CAP_NET_ADMIN.
pub fn read(socket: &mut NetlinkSocket) -> io::Result<Filter> {
    let mut found = Found::default();
    read_chains(socket, &mut found)?;
    read_rules(socket, &mut found)?;
    if !found.named.is_empty() {
        add_named(socket, &mut found)?;
    }
    for (map, chain) in std::mem::take(&mut found.maps) {
        if read_map(socket, &map, &chain, &mut found).unwrap_or(true) {
            found.add(&chain, Count::Not(Cause::Map));
        }
    }
    let loss = |((chain, cause), times): (&(Name, Cause), &usize)| {
        let ways = found.ways(chain)?;
        let (family, table, chain) = chain;
        let (family, words) = (family_name(*family), cause.words(*times > 1));
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

impl Found {
    fn add(&mut self, chain: &Name, count: Count) {
        match count {
            Count::Packets(packets) => self.counted.push((vec![chain.clone()], packets)),
            Count::Named(counter) => {
                let rules = self.named.entry(counter).or_default();
                rules.push(chain.clone());
            }
            Count::Not(cause) => {
                *self.uncounted.entry((chain.clone(), cause)).or_default() += 1;
            }
        }
    }

    /// Which way the packets go that come to a chain; `None` when none come there.
    fn ways(&self, chain: &Name) -> Option<Vec<Way>> {
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

    /// Whether only packets that leave the host come to a chain.
    fn is_way_out(&self, chain: &Name) -> bool {
        chain.0 != ARP && self.ways(chain).is_some_and(|ways| ways == [Way::Out])
    }

    /// Takes note that one chain sends packets to another of its table.
    fn add_jump(&mut self, from: &Name, to: &CStr) {
        let to = (from.0, from.1.clone(), to.to_string_lossy().into_owned());
        self.callers.entry(to).or_default().insert(from.clone());
    }

    /// Takes note of what one rule can drop.
    fn add_rule(&mut self, chain: &Name, expressions: IterableExprListAttrs<'_>) {
        let in_table = |name: &str| (chain.0, chain.1.clone(), String::from(name));
        let mut counted = None;
        for expression in expressions.get_elem() {
            let cause = match expression.get_data() {
                Ok(ExprOps::Counter(counter)) => {
                    counted = counter.get_packets().ok().map(Count::Packets);
                    continue;
                }
                Ok(ExprOps::Objref(object)) => {
                    let is_counter = object.get_imm_type() == Ok(ObjectType::Counter as u32);
                    let name = object.get_imm_name().ok().filter(|_| is_counter);
                    counted = name.map(|name| Count::Named(in_table(&name.to_string_lossy())));
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
                // What iptables-nft makes of `-j REJECT`.
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
                    return self.add(chain, counted.unwrap_or(Count::Not(cause)));
                }
                // Not all of the packets that were counted come as far as the verdict.
                None => counted = None,
            }
        }
    }
}

/// The name of the map that a lookup takes a verdict from; `None` when it takes something else.
fn verdict_map(lookup: &IterableExprLookupAttrs<'_>) -> Option<String> {
    // The bindings count from 1 without a gap and put the set's id second; in the kernel's enum it comes fourth, so
    // that the destination is what they call the source.
    let gives_verdicts = lookup.get_sreg() == Ok(VERDICT_REGISTER);
    let name = lookup.get_set().ok().filter(|_| gives_verdicts)?;
    Some(name.to_string_lossy().into_owned())
}

/// What calls chains, and those whose policy is to drop. Since iptables-nft wants it, such a chain may count.
fn read_chains(socket: &mut NetlinkSocket, found: &mut Found) -> io::Result<()> {
    each_chain(socket, |this, chain| {
        if let Ok(number) = chain.get_hook().and_then(|hook| hook.get_num()) {
            let ways = ways_of_hook(this.0, number);
            found.hooks.insert(this.clone(), ways);
        }
        if chain.get_policy() == Ok(VerdictCode::Drop as u32) {
            let counters = chain.get_counters();
            let counted = counters.and_then(|counters| counters.get_packets());
            let count = counted.map_or(Count::Not(Cause::Policy), Count::Packets);
            found.add(&this, count);
        }
    })
}

/// Shows `look` each chain of the namespace that the socket was opened in.
pub(crate) fn each_chain(
    socket: &mut NetlinkSocket,
    mut look: impl FnMut(Name, &IterableChainAttrs<'_>),
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

/// Shows `look` each rule, with the chain that it stands in.
pub(crate) fn each_rule(
    socket: &mut NetlinkSocket,
    mut look: impl FnMut(Name, &IterableRuleAttrs<'_>),
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

fn read_rules(socket: &mut NetlinkSocket, found: &mut Found) -> io::Result<()> {
    each_rule(socket, |chain, rule| {
        if let Ok(expressions) = rule.get_expressions() {
            found.add_rule(&chain, expressions);
        }
    })
}

/// Named counters count once, however many rules have them.
fn add_named(socket: &mut NetlinkSocket, found: &mut Found) -> io::Result<()> {
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
                    found.add(&chain, Count::Not(Cause::Shared));
                }
            }
        }
    }
    Ok(())
}

/// Whether a verdict map that a chain looks into has a verdict to drop. Takes note of where else it sends packets.
fn read_map(
    socket: &mut NetlinkSocket,
    (family, table, map): &Name,
    chain: &Name,
    found: &mut Found,
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

fn named(family: u8, table: &CStr, name: &CStr) -> Name {
    let [table, name] = [table, name].map(|name| name.to_string_lossy().into_owned());
    (family, table, name)
}

/// Which way packets go that pass a hook, include/uapi/linux/netfilter.h and netfilter_arp.h: none where they go from
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

/// include/uapi/linux/netfilter.h, as nft(8) calls them.
pub(crate) fn family_name(family: u8) -> &'static str {
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
