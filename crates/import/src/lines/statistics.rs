//! Counters of netstat, vmstat and systat, and of Linux's files and links.

use std::ops::Range;
use std::sync::LazyLock;

use crate::cursor::{Cursor, MeasuredUnit, measured_in};
use crate::lines::seen::{Anchor, Heads, RowsOf, Seen};
use crate::plain::OTHER;

/// Most rows in an interrupt table.
const ROWS_MAX: usize = 200;
/// Most words in the name of an interrupt.
const NAME_MAX: usize = 6;

/// A value that a command prints.
pub fn reading(name: String, value: impl ToString, is_cumulative: bool) -> Seen {
    Seen::Reading {
        name,
        value: value.to_string(),
        is_cumulative,
    }
}

/// Reads the table of `vmstat -i`, under its header or on the same line.
pub fn interrupt_table(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    cursor.words("interrupt total rate")?;
    let mut found = Vec::new();
    while found.len() < ROWS_MAX {
        let mut row = cursor.clone();
        row.gap();
        let began = row.at;
        let Some((name, seen)) = interrupts(&mut row) else {
            break;
        };
        found.push(Anchor {
            at: began..row.at,
            seen,
        });
        cursor.at = row.at;
        if name.eq_ignore_ascii_case("total") {
            break;
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Reads a row of that table whose header is missing: `irq256: em0 812 8`, `fxp0 irq11 2204317 7740`.
pub fn interrupt_row(cursor: &mut Cursor) -> Option<Seen> {
    let is_new = |it: &mut Cursor| {
        it.any(["irq", "cpu"])?;
        it.count(false)?;
        it.byte(b':')
    };
    let is_old = |it: &mut Cursor| {
        it.begins_line()?;
        it.word(16, |it| it.is_ascii_lowercase() || it.is_ascii_digit())?;
        it.words(" irq")?;
        it.count(false).map(|_| ())
    };
    is_new(&mut cursor.clone()).or_else(|| is_old(&mut cursor.clone()))?;
    let (_, seen) = interrupts(cursor)?;
    Some(seen)
}

/// Reads a row: a name of several words, with colons, then total and rate.
fn interrupts(cursor: &mut Cursor) -> Option<(String, Seen)> {
    let is_number = |word: &&&str| word.bytes().all(|it| it.is_ascii_digit());
    let last_numbers = |words: &[&str]| words.iter().rev().take_while(is_number).count();
    let mut words: Vec<&str> = Vec::new();
    let mut ended = cursor.at;
    while words.len() < NAME_MAX + 2 {
        // vmstat marks a name that it cuts: `ehci0*`.
        let is_of_name = |it: u8| it.is_ascii_alphanumeric() || b":._+-/*".contains(&it);
        let Some(word) = cursor.gap().word(32, is_of_name) else {
            break;
        };
        let is_done = words.len() >= 3 && last_numbers(&words) >= 2;
        if is_done && !is_number(&&word) {
            break;
        }
        words.push(word);
        ended = cursor.at;
        // The row ends after two numbers without a third.
        let mut next = cursor.clone();
        let goes_on = next.spaces().peek().is_ascii_digit();
        if (2..words.len()).contains(&last_numbers(&words)) && !goes_on {
            break;
        }
    }
    cursor.at = ended;
    if !(2..words.len()).contains(&last_numbers(&words)) {
        return None;
    }
    let (name, counts) = words.split_at(words.len() - 2);
    let name = name.join(" ");
    let value = format!("{} at {} a second", counts[0], counts[1]);
    let seen = reading(format!("interrupts {name}"), value, true);
    Some((name, seen))
}

/// Skips the counts of a row, one for each processor; returns their sum.
fn counts(cursor: &mut Cursor) -> Option<f64> {
    const PROCESSORS_MAX: usize = 512;
    let count = |cursor: &mut Cursor| {
        cursor.attempt(|it| {
            let count = it.spaces().count(false)?;
            matches!(it.peek(), b' ' | b'\n' | 0).then_some(count)
        })
    };
    let first = count(cursor)?;
    let others = (1..PROCESSORS_MAX).map_while(|_| count(cursor));
    Some(first + others.sum::<f64>())
}

/// Reads a row of Linux's `/proc/interrupts`, `127: 411207 0 IR-PCI-MSI 524288-edge eth0-TxRx-0`, or one for packets of
/// `/proc/softirqs`; the value is the sum over all processors.
pub fn processors_row(cursor: &mut Cursor) -> Option<Seen> {
    const LINE_MAX: usize = 120;
    const CHIPS: [&str; 4] = ["PIC", "MSI", "GIC", "intc"];
    const TRIGGERS: [&str; 4] = ["edge", "level", "fasteoi", "Level"];
    cursor.begins_line()?;
    if let Some(name) = cursor.any(["NET_RX:", "NET_TX:"]) {
        let sum = counts(cursor)?;
        return Some(reading(
            format!("softirqs {}", name.trim_end_matches(':')),
            sum,
            true,
        ));
    }
    cursor.word(4, |it| it.is_ascii_digit())?;
    cursor.byte(b':')?;
    let sum = counts(cursor)?;
    let line = cursor.spaces().word(LINE_MAX, |it| it != b'\n')?;
    let (chip, mut of) = line.split_once(' ')?;
    CHIPS.iter().any(|it| chip.contains(it)).then_some(())?;
    of = of.trim();
    if let Some((pin, name)) = of.split_once(' ')
        && TRIGGERS.iter().any(|it| pin.ends_with(it))
    {
        of = name.trim();
    }
    Some(reading(format!("interrupts {of}"), sum, true))
}

/// Reads a line of Linux's `ifconfig`, `RX packets:3124625 errors:1048291 dropped:1001877`, or what `ip -s link` prints
/// below `RX: bytes packets errors dropped`.
pub fn link_counters(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    const COLUMNS_MAX: usize = 8;
    cursor.begins_line()?;
    let began = cursor.at;
    let way = cursor.any(["RX", "TX"])?;
    let is_headed = cursor.byte(b':').is_some();
    fn word<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
        cursor.spaces().word(12, |it| it.is_ascii_lowercase())
    }
    let mut found: Vec<(&str, f64)> = Vec::new();
    if is_headed {
        let columns: Vec<&str> = (0..COLUMNS_MAX).map_while(|_| word(cursor)).collect();
        cursor.spaces().byte(b'\n')?;
        for column in columns {
            found.push((column, cursor.spaces().count(false)?));
        }
    } else {
        while found.len() < COLUMNS_MAX
            && let Some(one) = cursor.attempt(|it| {
                let name = word(it)?;
                let _ = it.byte(b':').or_else(|| it.byte(b' '));
                Some((name, it.count(false)?))
            })
        {
            found.push(one);
            // `bytes 20000 (19.0 KiB)`
            let _ = cursor.attempt(|it| {
                it.spaces().byte(b'(')?;
                it.word(24, |it| !b")\n".contains(&it))?;
                it.byte(b')')
            });
        }
    }
    let known = ["packets", "errors", "bytes"];
    found.iter().any(|it| known.contains(&it.0)).then_some(())?;
    let at = began..cursor.at;
    let anchor = |(name, count): (&str, f64)| Anchor {
        at: at.clone(),
        seen: reading(format!("{way} {name}"), count, true),
    };
    Some(found.into_iter().map(anchor).collect())
}

/// Columns of `netstat -i` before the counters, on FreeBSD and Linux, and the counters.
const COLUMNS: [&str; 5] = ["Mtu", "MTU", "Met", "Network", "Address"];
const COUNTED: [&str; 17] = [
    "Ipkts", "Ierrs", "Idrop", "Ibytes", "Opkts", "Oerrs", "Obytes", "Coll", "Drop", "RX-OK",
    "RX-ERR", "RX-DRP", "RX-OVR", "TX-OK", "TX-ERR", "TX-DRP", "TX-OVR",
];

/// Reads the table of `netstat -i`, whose lines may be folded.
pub fn interface_table(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    cursor.any(["Name", "Iface"])?;
    let next = |cursor: &mut Cursor, of: &[&'static str]| {
        cursor.attempt(|it| it.gap().any(of.iter().copied()))
    };
    let mut begins = Vec::new();
    while begins.len() < COLUMNS.len()
        && let Some(one) = next(cursor, &COLUMNS)
    {
        begins.push(one);
    }
    let mut counters = Vec::new();
    while counters.len() < COUNTED.len()
        && let Some(one) = next(cursor, &COUNTED)
    {
        counters.push(one);
    }
    (!begins.is_empty() && counters.len() > 2).then_some(())?;
    let _ = cursor.attempt(|it| it.gap().words("Flg"));
    let (has_network, has_metric) = (begins.contains(&"Network"), begins.contains(&"Met"));
    let mut found = Vec::new();
    while found.len() < ROWS_MAX {
        let mut row = cursor.clone();
        row.gap();
        let began = row.at;
        let Some((name, value)) = interface_row(&mut row, &counters, has_network, has_metric)
        else {
            break;
        };
        cursor.at = row.at;
        let seen = reading(name, value, true);
        found.push(Anchor {
            at: began..row.at,
            seen,
        });
    }
    (!found.is_empty()).then_some(found)
}

/// Reads `em0 1500 <Link#1> 00:15:17:3c:aa:02 7503011 0 0 9120533 0 0`: the interface with its network, and the counters.
fn interface_row(
    cursor: &mut Cursor,
    counters: &[&str],
    has_network: bool,
    has_metric: bool,
) -> Option<(String, String)> {
    /// Most words of an address.
    const ADDRESS_MAX: usize = 2;
    let word = |cursor: &mut Cursor| {
        cursor
            .gap()
            .word(60, |it| it.is_ascii_graphic())
            .map(String::from)
    };
    let is_count = |it: &String| it == "-" || it.bytes().all(|it| it.is_ascii_digit());
    let mut name = word(cursor).filter(|it| it.starts_with(|it: char| it.is_ascii_lowercase()))?;
    word(cursor).filter(is_count)?;
    if has_metric {
        word(cursor).filter(is_count)?;
    }
    if has_network {
        name = format!("{name} {}", word(cursor)?);
    }
    let mut counts: Vec<String> = Vec::new();
    for _ in 0..counters.len() + ADDRESS_MAX {
        let next = word(cursor)?;
        if is_count(&next) {
            counts.push(next);
        } else {
            counts.clear();
        }
        if counts.len() == counters.len() {
            break;
        }
    }
    (counts.len() == counters.len()).then_some(())?;
    if !has_network {
        let _ = cursor.attempt(|it| it.gap().word(8, |it| it.is_ascii_uppercase()));
    }
    let told = counters.iter().zip(&counts).filter(|it| it.1 != "-");
    let told: Vec<String> = told
        .map(|(counter, count)| format!("{counter} {count}"))
        .collect();
    (!told.is_empty()).then(|| (name, told.join(", ")))
}

/// Reads a row of that table of FreeBSD whose heads are missing, as `grep` leaves it.
pub fn link_row(cursor: &mut Cursor) -> Option<Seen> {
    const OLD: [&str; 5] = ["Ipkts", "Ierrs", "Opkts", "Oerrs", "Coll"];
    const NEW: [&str; 6] = ["Ipkts", "Ierrs", "Idrop", "Opkts", "Oerrs", "Coll"];
    cursor.begins_line()?;
    let mut ahead = cursor.clone();
    ahead.word(16, |it| it.is_ascii_lowercase() || it.is_ascii_digit())?;
    ahead.spaces().word(6, |it| it.is_ascii_digit())?;
    ahead.spaces().words("<Link#")?;
    [&OLD[..], &NEW].iter().find_map(|counters| {
        cursor.attempt(|it| {
            let (name, value) = interface_row(it, counters, true, false)?;
            matches!(it.spaces().peek(), b'\n' | 0).then(|| reading(name, value, true))
        })
    })
}

/// Columns of `netstat -w`, in the order in which FreeBSD has them since 4.
const TRAFFIC: &str = "packets errs idrops bytes packets errs bytes colls drops";
/// The columns of `vmstat` that are of the CPU: interrupts, switches, and shares of time.
const OF_CPU: &str = "in sy cs us sy id wa st gu";
/// The columns of `mpstat`.
const PROCESSORS: [&str; 13] = [
    "%usr", "%user", "%nice", "%system", "%sys", "%iowait", "%irq", "%soft", "%steal", "%guest",
    "%gnice", "%idle", "intr/s",
];
/// Columns with a share of CPU time, and the index of its state as in [`Seen::Cpu`]. What a hypervisor takes is none.
const SHARES: [(&str, usize); 19] = [
    ("us", 0),
    ("gu", 0),
    ("%usr", 0),
    ("%user", 0),
    ("%guest", 0),
    ("%nice", 1),
    ("%gnice", 1),
    ("sy", 2),
    ("%sys", 2),
    ("%system", 2),
    ("%irq", 3),
    ("%soft", 3),
    // Waiting for a disk is idle time.
    ("id", 4),
    ("wa", 4),
    ("%idle", 4),
    ("%iowait", 4),
    ("st", 5),
    ("%steal", 5),
    ("intr/s", 6),
];
/// The first row of `vmstat` is the average since boot. One that idles by so much more or less than the next is.
const IDLES_LIKE: f64 = 0.15;
/// And one that takes so many times fewer interrupts.
const INTERRUPTS_LIKE: f64 = 4.0;

/// A row of numbers.
struct Row<'a> {
    at: Range<usize>,
    /// The time of day.
    clock: Option<f64>,
    /// The processor, where rows are of one each.
    cpu: &'a str,
    values: Vec<&'a str>,
}

impl Heads {
    /// Reads a row.
    fn row<'a>(&self, cursor: &mut Cursor<'a>) -> Option<Row<'a>> {
        cursor.gap();
        let began = cursor.at;
        let (mut clock, mut cpu) = (None, "");
        if self.of == RowsOf::Mpstat {
            let _ = cursor.attempt(mean);
            clock = cursor.time_of_day();
            if clock.is_some() {
                let _ = cursor.gap().any(["AM", "PM"]);
            }
            cpu = cursor
                .gap()
                .any(["all"])
                .or_else(|| cursor.word(4, |it| it.is_ascii_digit()))?;
        }
        let mut value = || {
            cursor.gap().peek().is_ascii_digit().then_some(())?;
            cursor.word(24, |it| it.is_ascii_alphanumeric() || b".,".contains(&it))
        };
        let values: Vec<&str> = (0..self.columns.len()).map_while(|_| value()).collect();
        let at = began..cursor.at;
        (values.len() == self.columns.len()).then_some(Row {
            at,
            clock,
            cpu,
            values,
        })
    }

    /// Reads a row that is a whole line.
    pub fn line(&self, cursor: &mut Cursor) -> Option<Vec<Anchor>> {
        let row = self.row(cursor)?;
        let is_whole = !cursor.bytes[row.at.clone()].contains(&b'\n')
            && matches!(cursor.spaces().peek(), b'\n' | 0);
        is_whole.then(|| self.anchors(&[row]))
    }

    /// What rows below one another say.
    fn anchors(&self, rows: &[Row]) -> Vec<Anchor> {
        let idle = |row: &Row| self.shares(row).and_then(|it| it[4]);
        let ahead = [0, 1].map(|at| rows.get(at).and_then(idle));
        let interrupts = |row: &Row| -> Option<f64> {
            let at = self.columns.iter().position(|it| it == "in")?;
            row.values.get(at)?.parse().ok()
        };
        let rate = [0, 1].map(|at| rows.get(at).and_then(interrupts));
        let is_since_boot = self.of == RowsOf::Vmstat
            && (matches!(ahead, [Some(first), Some(next)] if (first - next).abs() > IDLES_LIKE)
                || matches!(rate, [Some(first), Some(next)] if first * INTERRUPTS_LIKE < next));
        let has_all = rows.iter().any(|it| it.cpu == "all");
        let mut found = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let anchor = |seen| Anchor {
                at: row.at.clone(),
                seen,
            };
            found.extend(self.reading(row).map(anchor));
            let is_told = !has_all || row.cpu == "all";
            if is_told && !(is_since_boot && index == 0) {
                let states = self.shares(row).map(Seen::Cpu);
                let clock = row
                    .clock
                    .filter(|_| states.is_some())
                    .map(|it| Seen::Clock(it, 1.0));
                found.extend(clock.into_iter().chain(states).map(anchor));
            }
        }
        found
    }

    /// What a row says but for the processor's states.
    fn reading(&self, row: &Row) -> Option<Seen> {
        let columns = self.columns.iter().zip(&row.values);
        let told: Vec<String> = match self.of {
            RowsOf::Netstat => {
                let begins = self.columns.iter().rposition(|it| *it == "packets")?;
                let way = |at: usize| if at < begins { "in" } else { "out" };
                columns
                    .enumerate()
                    .map(|(at, (column, value))| format!("{} {column} {value}", way(at)))
                    .collect()
            }
            RowsOf::Vmstat => {
                let begins = self.columns.iter().position(|it| *it == "in")?;
                columns
                    .skip(begins)
                    .map(|(column, value)| format!("{column} {value}"))
                    .collect()
            }
            RowsOf::Mpstat => return None,
        };
        Some(reading(self.name.clone(), told.join(", "), false))
    }

    /// A row's shares of CPU time, if they are all.
    fn shares(&self, row: &Row) -> Option<[Option<f64>; 5]> {
        let first = self
            .columns
            .iter()
            .position(|it| *it == "us" || it.starts_with('%'))?;
        let mut shares = [None; 7];
        for (column, value) in self.columns.iter().zip(&row.values).skip(first) {
            let state = SHARES.iter().find(|it| it.0 == column)?.1;
            // Many languages have a comma.
            let value = value.replace(',', ".");
            *shares[state].get_or_insert(0.0) += value.parse::<f64>().ok()?;
        }
        let sum: f64 = shares[..6].iter().flatten().sum();
        let [user, nice, system, interrupt, idle, ..] =
            shares.map(|it| it.map(|it| (it * 100.0).round() / 1e4));
        // Each is rounded, those of vmstat to a percent.
        ((sum - 100.0).abs() <= 3.0).then_some([user, nice, system, interrupt, idle])
    }
}

/// Reads the rows of `netstat -w 1`, one an interval: `input (em0) output packets errs bytes packets errs bytes colls`.
pub fn traffic_rows(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    let began = cursor.at;
    let interface = cursor.attempt(|it| {
        it.words("input")?;
        let name = it.gap().word(24, |it| it.is_ascii_graphic())?;
        it.gap().words("output")?;
        it.gap();
        Some(name.trim_matches(['(', ')']))
    });
    let columns = columns(cursor, TRAFFIC, "packets errs")?;
    (columns.len() > 4).then_some(())?;
    let name = interface.map_or(String::from("traffic"), |it| format!("{it} traffic"));
    rows(cursor, began, (RowsOf::Netstat, name), columns)
}

/// Reads the rows of `vmstat`; what they say of the CPU.
pub fn vmstat_rows(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    /// More columns than disks give.
    const COLUMNS_MAX: usize = 32;
    let began = cursor.at;
    // `procs memory page disks faults cpu`
    cursor
        .attempt(|it| {
            it.words("procs")?;
            while it.gap().words("r b ").is_none() {
                it.word(12, |it| it.is_ascii_lowercase() || it == b'-')?;
            }
            Some(())
        })
        .or_else(|| cursor.words("r b "))?;
    let mut columns = vec!["r", "b"];
    while columns.len() < COLUMNS_MAX && !columns.ends_with(&["us", "sy", "id"]) {
        let is_of_name = |it: u8| it.is_ascii_alphanumeric();
        columns.push(cursor.gap().word(8, is_of_name)?);
    }
    while let Some(more) = cursor.attempt(|it| it.spaces().any(["wa", "st", "gu"])) {
        columns.push(more);
    }
    let begins = columns.iter().position(|it| *it == "in")?;
    let is_told = columns[begins..]
        .iter()
        .all(|it| OF_CPU.split(' ').any(|cpu| cpu == *it));
    is_told.then_some(())?;
    rows(
        cursor,
        began,
        (RowsOf::Vmstat, String::from("vmstat")),
        columns,
    )
}

/// Reads the word before the mean of rows, `Average:`, in any language.
fn mean(cursor: &mut Cursor) -> Option<()> {
    cursor.word(16, |it| it.is_ascii_alphabetic() || it == OTHER)?;
    let _ = cursor.byte(b'.');
    cursor.spaces().byte(b':')
}

/// Reads the mean of `mpstat` without its heads, which has the columns of every version since 10.
pub fn mpstat_mean(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    cursor.clone().words("Average:")?;
    let old = ["%user", "%system", "intr/s"];
    let columns = PROCESSORS.iter().filter(|it| !old.contains(it));
    let columns = columns.map(|it| String::from(*it)).collect();
    let name = String::from("mpstat");
    let of = RowsOf::Mpstat;
    // A mail may fold it.
    let heads = Heads { of, name, columns };
    let row = heads.row(cursor)?;
    let anchors = heads.anchors(&[row]);
    (matches!(cursor.spaces().peek(), b'\n' | 0) && !anchors.is_empty()).then_some(anchors)
}

/// Reads a row of `vmstat` without its heads: a whole line of as many numbers as no other has, of which the last are the
/// shares of CPU time.
pub fn vmstat_row(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    const LINE_MAX: usize = 200;
    const OF_LINUX: &str = "r b swpd free buff cache si so bi bo in cs us sy id wa st";
    const OF_FREEBSD: &str = "r b w avm fre flt re pi po fr sr in sy cs us sy id";
    cursor.begins_line()?;
    let near = &cursor.bytes[cursor.at..(cursor.at + LINE_MAX).min(cursor.bytes.len())];
    let line = near.split(|it| *it == b'\n').next()?;
    let numbers = line.split(|it| *it == b' ').filter(|it| !it.is_empty());
    (17..=20).contains(&numbers.count()).then_some(())?;
    let all: Vec<&str> = OF_FREEBSD.split(' ').collect();
    // FreeBSD has a column for each of up to three disks.
    let disks = (0..=3).rev().map(|disks| {
        let (memory, rest) = all.split_at(11);
        [memory, &["disk"; 3][..disks], rest].concat()
    });
    let columns = disks.chain([OF_LINUX.split(' ').collect()]);
    columns.into_iter().find_map(|columns| {
        let columns = columns.into_iter().map(String::from).collect();
        let name = String::from("vmstat");
        let of = RowsOf::Vmstat;
        cursor.attempt(|it| {
            let read = Heads { of, name, columns }.line(it)?;
            let mut all = read.iter();
            all.any(|it| matches!(it.seen, Seen::Cpu(_)))
                .then_some(read)
        })
    })
}

/// Reads the rows of `mpstat`.
pub fn mpstat_rows(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    let began = cursor.at;
    cursor.words("CPU")?;
    let mut columns = Vec::new();
    while let Some(column) = cursor.attempt(|it| it.gap().any(PROCESSORS)) {
        columns.push(column);
    }
    (columns.len() > 4).then_some(())?;
    rows(
        cursor,
        began,
        (RowsOf::Mpstat, String::from("mpstat")),
        columns,
    )
}

/// Reads the heads of columns that begin with `first`.
fn columns<'w>(cursor: &mut Cursor, of: &'w str, first: &str) -> Option<Vec<&'w str>> {
    cursor.clone().words(first)?;
    let names: Vec<&str> = of.split(' ').collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < names.len() && cursor.gap().peek().is_ascii_lowercase() {
        // A column that this version does not have is left out.
        at += names[at..]
            .iter()
            .position(|it| cursor.words(it).is_some())?;
        found.push(names[at]);
        at += 1;
    }
    Some(found)
}

/// Reads the rows under heads that begin at `began`.
fn rows(
    cursor: &mut Cursor,
    began: usize,
    (of, name): (RowsOf, String),
    columns: Vec<&str>,
) -> Option<Vec<Anchor>> {
    let columns = columns.into_iter().map(String::from).collect();
    let heads = Heads { of, name, columns };
    let at = began..cursor.at;
    let mut rows = Vec::new();
    while rows.len() < ROWS_MAX
        && let Some(row) = cursor.attempt(|it| heads.row(it))
    {
        rows.push(row);
    }
    let below = heads.anchors(&rows);
    let seen = Seen::Heads(heads);
    (!rows.is_empty()).then(|| [Anchor { at, seen }].into_iter().chain(below).collect())
}

/// Counters of `netstat -s`: protocol, and the words after the number in the plural. The words are also the
/// name, unless one follows `=`. Longer phrases come before their own prefixes.
const COUNTERS: &str = "\
udp: datagrams received
udp: with incomplete header
udp: with bad data length field
with bad checksum
udp: with no checksum
udp: dropped due to no socket
udp: broadcast/multicast datagrams dropped due to no socket=broadcast and multicast without socket
udp: broadcast/multicast datagrams undelivered=broadcast and multicast undelivered
udp: dropped due to full socket buffers
udp: not for hashed pcb
udp: delivered
udp: datagrams output
udp: times multicast source filter matched
ip: total packets received
ip: bad header checksums
ip: with size smaller than minimum
ip: with data size < data length
ip: with ip length > max ip packet size
ip: with header length < data size
ip: with data length < header length
ip: with bad options
ip: with incorrect version number
ip: packets for this host
ip: packets for unknown/unsupported protocol
ip: packets forwarded
ip: packets not forwardable
ip: packets sent from this host
ip: output packets dropped due to no bufs
ip: output packets discarded due to no route
ip: fragments received
ip: incoming packets delivered
udp: packet receive errors
udp: receive buffer errors
udp: send buffer errors
udp: packets to unknown port received
tcp: data packets unnecessarily retransmitted
tcp: data packets
tcp: resends initiated by MTU discovery
tcp: ack-only packets
tcp: URG only packets
tcp: window probe packets
tcp: window update packets
tcp: control packets
tcp: retransmit timeouts
tcp: out-of-order packets
tcp: duplicate acks
tcp: completely duplicate packets
tcp: old duplicate packets
tcp: packets with some dup. data
tcp: fast retransmits
tcp: segments received
tcp: segments sent out
tcp: segments retransmitted
tcp: segments retransmited
tcp: bad segments received
tcp: retransmitted
tcp: window probes
tcp: delayed acks sent
tcp: packets collapsed in receive queue due to low socket buffer
tcp: packets pruned from receive queue because of socket buffer overrun
ip: fragments dropped (dup or out of space)
ip: fragments dropped after timeout
ip: outgoing packets dropped
mbufs allocated to data
mbufs allocated to packet headers
Kbytes allocated to network
requests for memory denied
requests for memory delayed
requests for sfbufs denied
requests for sfbufs delayed
requests for I/O initiated by sendfile
calls to protocol drain routines
packets received
packets sent
tcp: packets";

/// The name of a counter, and its words in the plural and the singular.
type CounterName = (String, [String; 2]);

/// The rows of [`COUNTERS`] by their words' first byte.
static COUNTER_ROWS: LazyLock<Vec<Vec<CounterName>>> = LazyLock::new(|| {
    let mut by_first = vec![Vec::new(); 128];
    for row in COUNTERS.lines() {
        let (protocol, words) = match row.split_once(": ") {
            Some((protocol, words)) => (format!("{protocol}: "), words),
            None => (String::new(), row),
        };
        let (words, name) = words.split_once('=').unwrap_or((words, words));
        let one = words.replace("datagrams", "datagram");
        let one = one.replace("packets", "packet");
        let one = one.replace("timeouts", "timeout");
        let counter = (protocol + name, [String::from(words), one]);
        by_first[usize::from(words.as_bytes()[0])].push(counter);
    }
    by_first
});

/// Reads `18614 dropped due to full socket buffers`.
pub fn counter(cursor: &mut Cursor) -> Option<Seen> {
    let before = cursor.behind();
    if before.is_ascii_digit() || matches!(before, b'.' | b',' | b'/') {
        return None;
    }
    let count = cursor.count(true)?;
    cursor.gap();
    let mut rows = COUNTER_ROWS.get(usize::from(cursor.peek()))?.iter();
    let (name, _) =
        rows.find(|(_, words)| cursor.any(words.each_ref().map(String::as_str)).is_some())?;
    // The word goes on: this is not the whole counter.
    (!cursor.peek().is_ascii_lowercase()).then_some(())?;
    // `318 data packets (460112 bytes) retransmitted`
    let _ = cursor.attempt(|it| {
        it.words(" (")?;
        it.count(true)?;
        it.spaces().any(["bytes)", "byte)", "delayed)"])
    });
    let again = [" retransmitted", " received in-sequence"];
    let again = cursor.any(again).unwrap_or_default();
    // `311 packets` alone is said of anything.
    (name != "tcp: packets" || !again.is_empty()).then_some(())?;
    Some(reading(format!("{name}{again}"), count, true))
}

/// Reads the counters of a card that `ethtool -S` prints, one a line: `rx_missed_errors: 212`.
pub fn card_counters(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    /// The name of the first one has such a part: `rx_packets` has, `note` in a sentence has not.
    const PARTS: [&str; 3] = ["_", "rx", "tx"];
    cursor.begins_line()?;
    let mut found = Vec::new();
    while found.len() < ROWS_MAX
        && let Some((name, row)) = cursor.attempt(|it| card_counter(it.gap()))
    {
        // `kern.polling.lost_polls: 3` is a variable.
        let is_of_card = ["port.", "rx_", "tx_"]
            .iter()
            .any(|it| name.starts_with(it));
        let is_variable = name.contains('.') && !is_of_card;
        if found.is_empty() && (!PARTS.iter().any(|it| name.contains(it)) || is_variable) {
            return None;
        }
        found.push(row);
    }
    (!found.is_empty()).then_some(found)
}

/// Reads one of them, and its name.
fn card_counter<'a>(cursor: &mut Cursor<'a>) -> Option<(&'a str, Anchor)> {
    let began = cursor.at;
    let is_of_name = |it: u8| it.is_ascii_alphanumeric() || b"_.-".contains(&it);
    let name = cursor.word(48, is_of_name)?;
    cursor.byte(b':')?;
    let count = cursor.spaces().word(24, |it| it.is_ascii_digit())?;
    matches!(cursor.peek(), b'\n' | 0).then(|| {
        let seen = reading(String::from(name), count, true);
        let at = began..cursor.at;
        (name, Anchor { at, seen })
    })
}

/// Reads a counter of `nstat`, `UdpRcvbufErrors 524388 0.0`, or of `netstat -s` with a name of the kernel, `TCPRcvQDrop: 12`.
pub fn kernel_counter(cursor: &mut Cursor) -> Option<Seen> {
    (!cursor.behind().is_ascii_alphanumeric()).then_some(())?;
    let name = cursor.word(48, |it| it.is_ascii_alphanumeric())?;
    let mut roots = ["Ip", "Icmp", "Tcp", "TCP", "Udp", "In", "Out", "Busy"].iter();
    let root = roots.find(|it| name.starts_with(**it))?;
    let is_whole = name[root.len()..].starts_with(|it: char| it.is_ascii_uppercase());
    is_whole.then_some(())?;
    let is_named = cursor.byte(b':').is_some();
    let count = cursor.spaces().word(24, |it| it.is_ascii_digit())?;
    let is_told = is_named || cursor.spaces().words("0.0").is_some();
    (is_told && matches!(cursor.peek(), b'\n' | 0))
        .then(|| reading(String::from(name), count, true))
}

/// Buffer lines of `netstat -m`: the words after the numbers, and what the numbers are.
const BUFFERS: &str = "\
mbuf+clusters out of packet secondary zone in use|current/cache
4k (page size) jumbo clusters in use|current/cache/total/max
9k jumbo clusters in use|current/cache/total/max
16k jumbo clusters in use|current/cache/total/max
requests for jumbo clusters denied|4k/9k/16k
mbufs in use|current/cache/total
mbuf clusters in use|current/cache/total/max
requests for mbufs denied|mbufs/clusters/both
requests for mbufs delayed|mbufs/clusters/both
bytes allocated to network|current/cache/total";

/// Reads `512/133/645 mbufs in use`.
pub fn buffers(cursor: &mut Cursor) -> Option<Seen> {
    if cursor.behind().is_ascii_digit() || cursor.behind() == b'/' {
        return None;
    }
    let value = cursor.word(60, |it| it.is_ascii_digit() || it == b'/' || it == b'K')?;
    value.contains('/').then_some(())?;
    cursor.gap();
    let mut rows = BUFFERS.lines().filter_map(|it| it.split_once('|'));
    let (words, numbers) = rows.find(|(words, _)| cursor.words(words).is_some())?;
    Some(reading(format!("{words} ({numbers})"), value, false))
}

/// Reads `vr0 in 81.250 Mb/s 81.250 Mb/s 432.560 MB`; the row `out` follows, with or without its interface.
pub fn traffic_row(cursor: &mut Cursor, from: usize) -> Option<Vec<Anchor>> {
    let began = cursor.at;
    if !matches!(cursor.behind(), b' ' | b'\n') {
        return None;
    }
    let way = cursor.any(["in", "out"])?;
    let interface = (way == "in")
        .then(|| word_before(cursor.bytes, began, from))
        .flatten();
    // Its name is of the row.
    let named = interface.map_or(0, |it| it.len() + 1);
    let gap = cursor.bytes[from..began].iter().rev().take(ROWS_MAX);
    let gap = gap.take_while(|it| **it == b' ').count();
    let began = if named > 0 {
        began + 1 - named - gap
    } else {
        began
    };
    let rate = |cursor: &mut Cursor| {
        // Some screens put bars before the figures.
        let bars = |it: u8| matches!(it, b' ' | b'\n' | b'|' | b'X' | b'#' | b'=');
        cursor.word(100, bars);
        let started = cursor.at;
        measured_in(cursor, MeasuredUnit::BitsPerSecond)?;
        Some(Cursor::shown(cursor.bytes, started..cursor.at))
    };
    let (now, peak) = (rate(cursor)?, rate(cursor)?);
    let name = match interface {
        Some(interface) => format!("{interface} {way}"),
        None => String::from(way),
    };
    // The current rate falls as soon as the traffic ends.
    let rates = [("peak", peak), ("at the moment of the screen", now)];
    let anchor = |(which, rate)| Anchor {
        at: began..cursor.at,
        seen: reading(format!("{name}: {which}"), rate, false),
    };
    Some(rates.map(anchor).into())
}

fn word_before(bytes: &[u8], at: usize, from: usize) -> Option<&str> {
    let before = &bytes[from.max(at.saturating_sub(40))..at];
    let text = std::str::from_utf8(before).ok()?;
    let word = text.split_whitespace().next_back()?;
    let letters = word.trim_end_matches(|it: char| it.is_ascii_digit());
    (letters.len() < word.len() && letters.bytes().all(|it| it.is_ascii_lowercase()))
        .then_some(word)
}
