//! Which function of the kernel an address is in.

use std::fs;

/// Where the kernel lists its functions.
const SYMBOLS: &str = "/proc/kallsyms";

/// Functions of the kernel by address.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols(Vec<(u64, String)>);

impl KernelSymbols {
    /// Those of the running kernel. Without CAP_SYSLOG, or where the kernel lists none, there are none.
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string(SYMBOLS).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut functions: Vec<_> = text.lines().filter_map(function).collect();
        functions.sort_unstable();
        KernelSymbols(functions)
    }

    /// The function that an address is in.
    pub fn function_at(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|(begin, _)| *begin <= address);
        let (_, name) = self.0.get(after.checked_sub(1)?)?;
        Some(name)
    }
}

/// `ffffffff81000000 T name [module]`. Addresses that are kept from the reader are 0.
fn function(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    // The compiler's parts of a function: `veth_xmit.constprop.0`, `tun_net_xmit.cold`.
    let name = words.next()?.split('.').next()?;
    (is_code && address > 0).then(|| (address, String::from(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let text = "ffffffff81000100 T second\nffffffff81000000 t first.isra.0\n\
                    ffffffff81000080 d data\nffffffffc0000000 t veth_xmit [veth]\nbroken\n";
        let symbols = KernelSymbols::parse(text);
        let at = |address| symbols.function_at(address);
        assert_eq!(at(0xffff_ffff_8100_0000), Some("first"));
        assert_eq!(at(0xffff_ffff_8100_00ff), Some("first"));
        assert_eq!(at(0xffff_ffff_8100_0100), Some("second"));
        assert_eq!(at(0xffff_ffff_c000_0123), Some("veth_xmit"));
        assert_eq!(at(1), None);
    }

    #[test]
    fn addresses_that_are_hidden_name_nothing() {
        let symbols = KernelSymbols::parse("0000000000000000 T hidden\n");
        assert_eq!(symbols.function_at(5), None);
    }
}
