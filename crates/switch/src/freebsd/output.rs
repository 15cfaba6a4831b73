//! Parsers for the output of FreeBSD's uname(1), sysctl(8) and ifconfig(8).
//!
//! Text that does not parse is refused with the wrong line, never with a panic. `nicpoll study import` has its own,
//! lenient parsers of these forms. These here are strict on purpose: their values decide what is written to a host.

use nicpoll_core::{Access, HZ_MAX, Knob};

use crate::knob::ValueError;

/// Longer lines are cut here when quoted.
const QUOTED_CHARS_MAX: usize = 80;
/// IFCAP_POLLING of `sys/net/if.h`.
const IFCAP_POLLING: u64 = 0x40;
/// Its name in ifconfig's lists.
const POLLING: &str = "POLLING";

fn wrong(line: &str, wanted: &str) -> ValueError {
    let line: String = line.chars().take(QUOTED_CHARS_MAX).collect();
    ValueError(format!("'{line}' is not as expected: {wanted}"))
}

/// Parses the output of `uname -s`: the system's name.
pub fn parse_uname(text: &str) -> Result<&str, ValueError> {
    let name = text.trim();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_name && name.len() <= QUOTED_CHARS_MAX {
        Ok(name)
    } else {
        Err(wrong(name, "the name of a system, such as FreeBSD"))
    }
}

/// Parses the clock rate in ticks per second from `sysctl kern.clockrate`: `kern.clockrate: { hz = 1000, tick = 1000,
/// profhz = 2000, stathz = 133 }`.
pub fn parse_hz(text: &str) -> Result<u32, ValueError> {
    let line = text.trim();
    let wanted = "kern.clockrate: { hz = 1000, ... }";
    line.strip_prefix("kern.clockrate:")
        .and_then(|rest| rest.trim().strip_prefix('{')?.strip_suffix('}'))
        .and_then(|fields| {
            let mut fields = fields.split(',').filter_map(|field| field.split_once('='));
            let (_, hz) = fields.find(|(name, _)| name.trim() == "hz")?;
            hz.trim().parse().ok()
        })
        .filter(|hz| (1..=HZ_MAX).contains(hz))
        .ok_or_else(|| wrong(line, wanted))
}

/// The variables under `kern.polling`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polling {
    values: Vec<(Knob, i64)>,
}

impl Polling {
    /// Returns a variable's value; `None` if this kernel has no such variable.
    pub fn get(&self, knob: Knob) -> Option<i64> {
        let mut values = self.values.iter();
        values
            .find(|(known, _)| *known == knob)
            .map(|(_, value)| *value)
    }

    /// Returns the writable variables with their values.
    pub fn writable(&self) -> impl Iterator<Item = (Knob, u32)> + '_ {
        let values = self.values.iter();
        values.filter_map(|(knob, value)| {
            let is_writable = knob.access() == Access::ReadWrite;
            Some((*knob, u32::try_from(*value).ok().filter(|_| is_writable)?))
        })
    }

    /// Returns all variables, in the order of the output.
    pub fn all(&self) -> &[(Knob, i64)] {
        &self.values
    }
}

/// Parses `sysctl kern.polling`. Unknown variables, such as the old `enable`, are left out.
///
/// # Errors
/// When a writable variable is missing, or a value is not a number.
pub fn parse_polling(text: &str) -> Result<Polling, ValueError> {
    let mut values: Vec<(Knob, i64)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let wanted = "kern.polling.NAME: NUMBER";
        let pair = line.split_once(':');
        let (name, value) = pair.ok_or_else(|| wrong(line, wanted))?;
        let name = name.strip_prefix("kern.polling.");
        let Some(knob) = Knob::from_name(name.ok_or_else(|| wrong(line, wanted))?) else {
            continue;
        };
        let value: i64 = value.trim().parse().map_err(|_| wrong(line, wanted))?;
        let is_writable = knob.access() == Access::ReadWrite;
        if is_writable && u32::try_from(value).is_err() {
            return Err(wrong(line, "a value of 0 or more"));
        }
        if values.iter().any(|(known, _)| *known == knob) {
            return Err(wrong(line, "each variable once"));
        }
        values.push((knob, value));
    }
    for knob in Knob::ALL.iter().filter(|k| k.access() == Access::ReadWrite) {
        if !values.iter().any(|(known, _)| known == knob) {
            let name = knob.name();
            let missing = format!("its output has no kern.polling.{name}");
            return Err(ValueError(missing));
        }
    }
    Ok(Polling { values })
}

/// What `ifconfig -m IF` says about polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether the driver can poll.
    pub can_poll: bool,
    /// Whether the interface polls now.
    pub is_polling: bool,
}

/// Parses `ifconfig -m IF`: the lines `options=` (enabled) and `capabilities=` (supported).
///
/// # Errors
/// When the output is not about that interface, or the bits of a line do not match its names.
pub fn parse_interface(text: &str, interface: &str) -> Result<Capabilities, ValueError> {
    let first = text.lines().next().unwrap_or_default();
    let rest = first.strip_prefix(interface);
    if !rest.is_some_and(|rest| rest.starts_with(": flags=")) {
        return Err(wrong(first, "NAME: flags=... with the interface's name"));
    }
    let mut found = Capabilities {
        can_poll: false,
        is_polling: false,
    };
    // A line without leading white space begins another interface.
    let own = text.lines().skip(1);
    for line in own.take_while(|line| line.starts_with([' ', '\t'])) {
        let line = line.trim();
        if let Some(bits) = line.strip_prefix("options=") {
            found.is_polling |= has_polling(bits, line)?;
        } else if let Some(bits) = line.strip_prefix("capabilities=") {
            found.can_poll |= has_polling(bits, line)?;
        }
    }
    Ok(found)
}

/// Parses `4b<RXCSUM,TXCSUM,VLAN_MTU,POLLING>`: a hexadecimal number, then the names of its bits.
fn has_polling(bits: &str, line: &str) -> Result<bool, ValueError> {
    let wanted = "a number in base 16, then the names of its bits";
    let (number, names) = bits.split_once('<').unwrap_or((bits, ">"));
    let number = u64::from_str_radix(number.trim(), 16).map_err(|_| wrong(line, wanted))?;
    let (names, _) = names.split_once('>').ok_or_else(|| wrong(line, wanted))?;
    let is_named = names.split(',').any(|name| name == POLLING);
    if is_named != (number & IFCAP_POLLING != 0) {
        return Err(wrong(line, "bit 0x40 and the name POLLING together"));
    }
    Ok(is_named)
}

#[cfg(test)]
mod tests;
