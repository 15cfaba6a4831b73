//! Facts about a host: sysctl variables, interfaces, kernel and CPU, and the CPU states of top.
//!
//! CPU states that do not sum to 100 % are refused: a screen redraw has overwritten some.

use crate::cursor::Cursor;
use crate::lines::clause::POLLING_SWITCHES;
use crate::lines::seen::{Anchor, Seen};
use crate::lines::statistics::reading;

/// The polling bit in an interface's options (FreeBSD's `IFCAP_POLLING`).
const POLLING_BIT: u64 = 0x40;

/// Prefixes of sysctl variables.
const ROOTS: [&str; 4] = ["kern.", "hw.", "net.", "dev."];

/// Whether the whole text is the name of a sysctl variable.
pub fn is_variable(text: &str) -> bool {
    let is_of_name = |it: u8| it.is_ascii_alphanumeric() || b"._".contains(&it);
    text.len() <= 80
        && ROOTS.iter().any(|root| text.starts_with(root))
        && text.bytes().all(is_of_name)
}

/// Reads `kern.polling.burst: 5` or `hw.em.rxd=4096`.
pub fn variable(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    let began = cursor.at;
    if cursor.behind() == b'.' {
        return None;
    }
    let root = cursor.any(ROOTS)?;
    let mut name = String::from(root);
    while name.len() < 80 {
        // `dev.bge.0.stats.InputDiscards`
        let part = cursor.word(40, |it| it.is_ascii_alphanumeric() || b"._".contains(&it));
        name += part.unwrap_or_default();
        let goes_on = cursor.peek() == b'\n' && cursor.ahead(1).is_ascii_lowercase();
        if !goes_on {
            break;
        }
        cursor.at += 1;
    }
    cursor.spaces();
    // A sentence that turns polling on says where and when.
    let is_set = cursor.byte(b':').is_none();
    let is_told =
        is_set && cursor.behind() != b' ' && POLLING_SWITCHES.iter().any(|it| name.ends_with(it));
    (!is_told && (!is_set || cursor.byte(b'=').is_some())).then_some(())?;
    cursor.spaces();
    let mut value = cursor.word(24, |it| it.is_ascii_digit() || it == b'-')?;
    let mut was = None;
    if cursor.attempt(|it| it.spaces().words("->")).is_some() {
        was = Some(Seen::Was(name.clone(), String::from(value)));
        value = cursor.spaces().word(24, |it| it.is_ascii_digit())?;
    }
    let reading = reading(name, value, false);
    let anchor = |seen| Anchor {
        at: began..cursor.at,
        seen,
    };
    Some([reading].into_iter().chain(was).map(anchor).collect())
}

/// Reads `em0: flags=8843<UP,...>`, whose angle brackets may be missing, or Linux's `eth0 Link encap:`.
pub fn interface_head(cursor: &mut Cursor) -> Option<Seen> {
    if cursor.behind().is_ascii_alphanumeric() {
        return None;
    }
    let name = cursor.word(16, |it| it.is_ascii_lowercase() || it.is_ascii_digit())?;
    name.ends_with(|it: char| it.is_ascii_digit())
        .then_some(())?;
    if cursor.byte(b':').is_some() {
        cursor.gap().words("flags=")?;
    } else {
        cursor.words(" Link encap:")?;
    }
    Some(Seen::Interface(String::from(name)))
}

/// Reads `options=4b<RXCSUM,POLLING>` or `inet 192.168.1.1`.
pub fn interface_body(cursor: &mut Cursor) -> Option<Seen> {
    if cursor.words("options=").is_some() {
        let bits = cursor.word(12, |it| it.is_ascii_hexdigit())?;
        let bits = u64::from_str_radix(bits, 16).ok()?;
        if cursor.byte(b'<').is_some() {
            let _ = cursor.word(300, |it| {
                it.is_ascii_uppercase()
                    || it.is_ascii_digit()
                    || matches!(it, b'_' | b',' | b' ' | b'\n')
            });
        }
        return Some(Seen::Polls(bits & POLLING_BIT != 0));
    }
    if !matches!(cursor.behind(), b' ' | b'\n') {
        return None;
    }
    cursor.any(["inet6", "inet"])?;
    let _ = cursor.gap().words("addr:");
    let is_of_address = |it: u8| it.is_ascii_hexdigit() || matches!(it, b'.' | b':');
    let address = cursor.gap().word(45, is_of_address)?;
    address.contains(['.', ':']).then_some(())?;
    Some(Seen::Address(String::from(address)))
}

/// Prefixes of lines that identify a machine, and their names here. The value is the rest of the line.
const IDENTITY: [(&str, &str); 9] = [
    ("CPU: ", "CPU"),
    ("real memory  = ", "real memory"),
    ("avail memory = ", "available memory"),
    ("FreeBSD ", "kernel"),
    ("Linux version ", "kernel"),
    ("model name\t: ", "CPU"),
    ("interrupt storm detected on ", "interrupt storm"),
    ("panic: ", "panic"),
    ("Fatal trap ", "panic"),
];
/// Longest value in bytes.
const VALUE_MAX: usize = 100;

/// Reads a dmesg line about CPU, memory, kernel, or a failure.
pub fn identity(cursor: &mut Cursor) -> Option<Seen> {
    if cursor.behind().is_ascii_alphanumeric() {
        return None;
    }
    let is_first = cursor.begins_line().is_some();
    let name = *cursor.row(&IDENTITY)?;
    // In prose, FreeBSD is just a word: a kernel line begins with it, and goes on with a release.
    let is_kernel = name == "kernel";
    if is_kernel && !(is_first && cursor.peek().is_ascii_digit()) {
        return None;
    }
    let line = cursor.word(VALUE_MAX, |it| !b"\n|".contains(&it))?;
    if (is_kernel && !line.contains(['-', '#', '('])) || (name == "CPU" && !line.contains("Hz")) {
        return None;
    }
    let release = is_kernel.then(|| line.find(" from ")).flatten();
    let next = ["real memory", "Origin", "avail memory"].map(|next| line.find(next));
    let ends = next.into_iter().flatten().filter(|it| *it > 0);
    let end = ends.chain(release).min().unwrap_or(line.len());
    cursor.at -= line.len() - end;
    let value = line[..end].trim().replace(|it: char| it.is_control(), "?");
    Some(reading(String::from(name), value, false))
}

/// Reads `up 0+02:13:44  17:05:31`, as FreeBSD's top prints time since the start and time of day, or Linux's
/// `17:05:31 up 2 days, 2:13,`.
pub fn uptime(cursor: &mut Cursor) -> Option<Seen> {
    let began = cursor.at;
    (cursor.behind() == b' ').then_some(())?;
    cursor.words("up ")?;
    if let Some(up) = cursor.attempt(|cursor| {
        let days = cursor.count(false)?;
        cursor.byte(b'+')?;
        Some(days * 86_400.0 + cursor.time_of_day()?)
    }) {
        let clock = cursor.gap().time_of_day()?;
        return Some(Seen::Uptime(up, clock));
    }
    let before = began.checked_sub(9)?;
    let clock = Cursor::new(cursor.bytes, before).time_of_day()?;
    let days = cursor.attempt(|cursor| {
        let days = cursor.count(false)?;
        cursor.spaces().any(["days,", "day,"])?;
        Some(days)
    });
    cursor.spaces();
    let minutes = cursor.attempt(|cursor| {
        let minutes = cursor.count(false)?;
        cursor.words(" min").map(|()| minutes)
    });
    let minutes = minutes.or_else(|| {
        let hours = cursor.count(false)?;
        cursor.byte(b':')?;
        Some(60.0 * hours + cursor.count(false)?)
    })?;
    Some(Seen::Uptime(
        days.unwrap_or(0.0) * 86_400.0 + 60.0 * minutes,
        clock,
    ))
}

/// Reads a time of day that stands alone, as `date` prints it.
pub fn clock(cursor: &mut Cursor) -> Option<Seen> {
    (!b".:-".contains(&cursor.behind())).then_some(())?;
    // `2) The dish as well (13:20)`
    let minutes = cursor.clone().attempt(|it| {
        let parts = [
            it.count(false)?,
            it.byte(b':').and_then(|()| it.count(false))?,
        ];
        let is_time = parts[0] < 24.0 && parts[1] < 60.0 && it.peek() == b')';
        is_time.then(|| 3600.0 * parts[0] + 60.0 * parts[1])
    });
    if let Some(time) = minutes.filter(|_| cursor.behind() == b'(') {
        cursor.word(5, |it| it != b')')?;
        return Some(Seen::Clock(time, 60.0));
    }
    let time = cursor.time_of_day()?;
    let is_whole = !cursor.peek().is_ascii_alphanumeric() && cursor.peek() != b':';
    // `Date: Tue, 18 Mar 2008 09:48:03 +0100` of a mail is no time of a test.
    let is_of_mail = cursor.clone().spaces().any(["+", "-"]).is_some();
    (is_whole && !is_of_mail && time < 86_400.0).then_some(Seen::Clock(time, 1.0))
}

/// Names of CPU states with their index: user, nice, system, interrupt, idle. Longer names come first.
const STATES: [(&str, usize); 21] = [
    ("user", 0),
    ("nice", 1),
    ("system", 2),
    ("interrupt", 3),
    ("idle", 4),
    ("iowait", 4),
    // FreeBSD's systat -vmstat, whose last column may be cut.
    ("User", 0),
    ("Nice", 1),
    ("Sys", 2),
    ("Intr", 3),
    ("Idle", 4),
    ("Idl", 4),
    ("us", 0),
    ("sy", 2),
    ("ni", 1),
    ("id", 4),
    // I/O wait is idle time.
    ("wa", 4),
    ("hi", 3),
    ("si", 3),
    // Time taken by a hypervisor is no state of this host, but counts towards the sum.
    ("st", 5),
    ("swap", 5),
];
const FEWEST: usize = 4;
const MOST: usize = 9;

/// Reads `CPU states:`, `CPU:` or `%Cpu(s):` and the states.
pub fn state_line(cursor: &mut Cursor) -> Option<Seen> {
    // `CPU 0:`, `%Cpu0  :`
    let one = |it: &mut Cursor| {
        it.any(["CPU ", "%Cpu"])?;
        it.count(false)?;
        it.spaces().byte(b':')
    };
    let all = cursor.any(["CPU states:", "CPU:", "%Cpu(s):", "Cpu(s):", "%Cpu(s)"]);
    all.map(|_| ()).or_else(|| cursor.attempt(one))?;
    // `grep CPU:` may be glued to what it prints.
    let is_glued = cursor.clone().gap().any(["CPU:", "CPU states:"]);
    is_glued.is_none().then_some(())?;
    let found = cursor.attempt(|cursor| states(cursor.gap()));
    found.or_else(|| {
        // dmesg describes the processor with the same prefix.
        let line = cursor.word(80, |byte| byte != b'\n')?;
        let has_states = line.contains('%') && line.contains("idle");
        let why = "a redraw has written over a line of CPU states";
        has_states.then_some(Seen::Spoilt(why))
    })
}

/// Reads `2.7% user, 0.0% nice, ...` whose prefix is missing, or `9.2%Sys 88.5%Intr ...` of systat.
pub fn bare_states(cursor: &mut Cursor) -> Option<Seen> {
    cursor.begins_number()?;
    let mut ahead = cursor.clone();
    ahead.number()?;
    // Linux's top prints `1 user` of another kind.
    let is_share = ahead.gap().byte(b'%').is_some();
    match is_share {
        true => ahead.any([" user", " us,", "Sys "])?,
        false => ahead.any([" us,"])?,
    };
    states(cursor)
}

/// Reads the states as ratios, or why they are unusable; `None` when this is no such line.
fn states(cursor: &mut Cursor) -> Option<Seen> {
    let mut sums = [0.0; 6];
    let mut seen: Vec<&str> = Vec::new();
    let mut ended = cursor.at;
    while seen.len() < MOST {
        let Some(percent) = cursor.gap().number() else {
            break;
        };
        let _ = cursor.gap().byte(b'%');
        cursor.gap();
        let mut names = STATES.iter();
        let Some((name, state)) = names.find(|(name, _)| cursor.words(name).is_some()) else {
            break;
        };
        if seen.contains(name) {
            break;
        }
        seen.push(name);
        sums[*state] += percent;
        ended = cursor.at;
        let _ = cursor.gap().byte(b',');
    }
    cursor.at = ended;
    if seen.is_empty() {
        return None;
    }
    let sum: f64 = sums.iter().sum();
    // Each is rounded to a tenth.
    if (sum - 100.0).abs() > 0.05 * seen.len() as f64 + 1e-6 || seen.len() < FEWEST {
        let why = "the CPU states do not sum to 100 %: a redraw has written over some, or some are missing";
        return Some(Seen::Spoilt(why));
    }
    // To the last printed digit.
    let share = |state: usize| Some((sums[state] * 100.0).round() / 1e4);
    Some(Seen::Cpu([0, 1, 2, 3, 4].map(share)))
}
