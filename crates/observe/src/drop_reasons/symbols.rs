//! Which function of the kernel an address is in.
//!
//! What must hold: the kernel's list, of some 200,000 functions, is read only for an address that is not known yet.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Where the kernel lists its functions.
const SYMBOLS: &str = "/proc/kallsyms";

/// Functions of the kernel that were asked for, by address.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols(BTreeMap<u64, Option<String>>);

impl KernelSymbols {
    /// Looks up the addresses that are not known yet. Without CAP_SYSLOG, or where the kernel lists none, they have
    /// no function.
    pub fn learn(&mut self, addresses: impl Iterator<Item = u64>) {
        let unknown: Vec<u64> = addresses
            .filter(|address| !self.0.contains_key(address))
            .collect();
        if unknown.is_empty() {
            return;
        }
        match File::open(SYMBOLS) {
            Ok(file) => self.learn_from(BufReader::new(file), &unknown),
            Err(_) => self.learn_from(&b""[..], &unknown),
        }
    }

    fn learn_from(&mut self, list: impl BufRead, addresses: &[u64]) {
        let mut nearest: Vec<Option<(u64, String)>> = vec![None; addresses.len()];
        for line in list.lines().map_while(Result::ok) {
            let Some((begin, name)) = function(&line) else {
                continue;
            };
            for (address, found) in addresses.iter().zip(&mut nearest) {
                let is_nearer = found.as_ref().is_none_or(|(before, _)| begin >= *before);
                if begin <= *address && is_nearer {
                    *found = Some((begin, String::from(name)));
                }
            }
        }
        let names = nearest.into_iter().map(|found| found.map(|(_, name)| name));
        self.0.extend(addresses.iter().copied().zip(names));
    }

    /// The function that an address is in.
    pub fn function_at(&self, address: u64) -> Option<&str> {
        self.0.get(&address)?.as_deref()
    }
}

/// `ffffffff81000000 T name [module]`. Addresses that are kept from the reader are 0.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    // The compiler's parts of a function: `veth_xmit.constprop.0`, `tun_net_xmit.cold`.
    let name = words.next()?.split('.').next()?;
    (is_code && address > 0).then_some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let text = "ffffffff81000100 T second\nffffffff81000000 t first.isra.0\n\
                    ffffffff81000080 d data\nffffffffc0000000 t veth_xmit [veth]\nbroken\n";
        let mut symbols = KernelSymbols::default();
        let [first, last_of_first] = [0xffff_ffff_8100_0000, 0xffff_ffff_8100_00ff];
        let [second, module] = [0xffff_ffff_8100_0100, 0xffff_ffff_c000_0123];
        symbols.learn_from(text.as_bytes(), &[first, last_of_first, second, module, 1]);
        let at = |address| symbols.function_at(address);
        assert_eq!(at(first), Some("first"));
        assert_eq!(at(last_of_first), Some("first"));
        assert_eq!(at(second), Some("second"));
        assert_eq!(at(module), Some("veth_xmit"));
        assert_eq!(at(1), None);
    }

    #[test]
    fn addresses_that_are_hidden_name_nothing() {
        let mut symbols = KernelSymbols::default();
        symbols.learn_from(&b"0000000000000000 T hidden\n"[..], &[5]);
        assert_eq!(symbols.function_at(5), None);
    }
}
