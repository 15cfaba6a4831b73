//! Readers of the output of FreeBSD's uname(1), sysctl(8) and ifconfig(8).
//!
//! Any text is read or refused with the wrong line, never with a panic. `nicpoll study import` also reads these forms,
//! however broken. The readers are separate on purpose: the values read here decide what is written to a host, and a
//! line that is not exactly as its command prints it is refused.

use nicpoll_core::{Access, HZ_MAX, Knob};

use crate::knob::ValueError;

/// Longer lines are quoted up to here.
const QUOTED_CHARS_MAX: usize = 80;
/// IFCAP_POLLING of `sys/net/if.h`.
const IFCAP_POLLING: u64 = 0x40;
/// Its name in ifconfig's lists.
const POLLING: &str = "POLLING";

fn wrong(line: &str, wanted: &str) -> ValueError {
    let line: String = line.chars().take(QUOTED_CHARS_MAX).collect();
    ValueError(format!("'{line}' is not as expected: {wanted}"))
}

/// The system's name: what `uname -s` prints.
pub fn parse_uname(text: &str) -> Result<&str, ValueError> {
    let name = text.trim();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_name && name.len() <= QUOTED_CHARS_MAX {
        Ok(name)
    } else {
        Err(wrong(name, "the name of a system, such as FreeBSD"))
    }
}

/// Clock ticks a second, from `sysctl kern.clockrate`:
/// `kern.clockrate: { hz = 1000, tick = 1000, profhz = 2000, stathz = 133 }`.
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
    /// A variable's value; `None` when this kernel has no such variable.
    pub fn get(&self, knob: Knob) -> Option<i64> {
        let mut values = self.values.iter();
        values
            .find(|(known, _)| *known == knob)
            .map(|(_, value)| *value)
    }

    /// Those that can be written, each with its value.
    pub fn writable(&self) -> impl Iterator<Item = (Knob, u32)> + '_ {
        let values = self.values.iter();
        values.filter_map(|(knob, value)| {
            let is_writable = knob.access() == Access::ReadWrite;
            Some((*knob, u32::try_from(*value).ok().filter(|_| is_writable)?))
        })
    }

    /// All of them, in the order of the output.
    pub fn all(&self) -> &[(Knob, i64)] {
        &self.values
    }
}

/// Reads `sysctl kern.polling`. Unknown variables, such as the old `enable`, are left out.
///
/// # Errors
/// When one that can be written is missing, or a value is no number.
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

/// The state of polling by `ifconfig -m IF`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The driver can poll.
    pub can_poll: bool,
    /// It polls now.
    pub is_polling: bool,
}

/// Reads `ifconfig -m IF`: the lines `options=` (what is on) and `capabilities=` (what can be).
///
/// # Errors
/// When the output is not of that interface, or the bits of a line do not fit its names.
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
    // A line that does not begin with white space is of another interface.
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

/// `4b<RXCSUM,TXCSUM,VLAN_MTU,POLLING>`: a number in base 16, then the names of its bits.
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
