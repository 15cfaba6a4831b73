//! Commands, with or without a prompt, possibly misspelt, and the knobs they set.

use std::net::IpAddr;

use crate::cursor::Cursor;
use crate::lines::clause::is_in;
use crate::lines::seen::{Anchor, Seen, Tool, ToolCommand};

/// Longest prompt in bytes.
const PROMPT_MAX: usize = 64;
/// Most words in a command.
const WORDS_MAX: usize = 40;

/// A tool, its name, how many misspelt letters to accept, and a test of its first argument.
type Known = (Tool, &'static str, usize, fn(&str) -> bool);

const KNOWN: [Known; 15] = [
    (Tool::Iperf, "iperf", 1, is_option),
    (Tool::Ttcp, "ttcp", 0, is_option),
    (Tool::Netblast, "netblast", 2, is_address),
    (Tool::Netreceive, "netreceive", 2, is_number),
    (Tool::Netsend, "netsend", 1, is_address),
    (Tool::Look, "top", 0, is_end_or_option),
    (Tool::Look, "vmstat", 1, is_option_or_number),
    (Tool::Look, "mpstat", 1, is_option_or_number),
    (Tool::Look, "netstat", 1, is_option),
    (Tool::Look, "systat", 1, is_option),
    (Tool::Ethtool, "ethtool", 1, is_option),
    (Tool::Sysctl, "sysctl", 1, |word| {
        is_option(word) || word.contains('.')
    }),
    (Tool::Look, "dmesg", 0, |word| {
        is_end_or_option(word) || word == "|"
    }),
    (Tool::Look, "uname", 0, is_option),
    (Tool::Ifconfig, "ifconfig", 1, is_interface_or_end),
];

fn is_option(word: &str) -> bool {
    let name = word.strip_prefix('-').unwrap_or_default();
    name.starts_with(|letter: char| letter.is_ascii_alphabetic())
}

fn is_end_or_option(word: &str) -> bool {
    word.is_empty() || is_option(word)
}

fn is_number(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_digit())
}

fn is_option_or_number(word: &str) -> bool {
    is_option(word) || is_number(word)
}

fn is_address(word: &str) -> bool {
    word.contains(':') || word.contains('.')
}

fn is_interface_or_end(word: &str) -> bool {
    let letters = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
    is_end_or_option(word)
        || (letters.len() < word.len()
            && letters.len() <= 10
            && letters.bytes().all(|it| it.is_ascii_lowercase()))
}

/// Reads a command after a prompt: `host:/dir#`, `[user@host]~#`, `/dir#`, a bare `#`; also `$`, `%` and `>`.
pub fn prompted(cursor: &mut Cursor, from: usize) -> Option<Vec<Anchor>> {
    let mark = cursor.at;
    cursor.at += 1;
    let (host, began) = prompt(cursor.bytes, mark, from);
    // `[2.4.0-RELEASE][admin@muro]/root: top`
    let text = &cursor.bytes[began..mark];
    if cursor.bytes[mark] == b':' && !(text.starts_with(b"[") && text.contains(&b'@')) {
        return None;
    }
    // `[CMD="oak#"]iperf -s[/CMD]`
    let _ = cursor.words("\"]");
    let known = cursor.attempt(|cursor| command(cursor.spaces()));
    // Of another command the prompt says whose terminal it is.
    let other = || {
        let mut before = cursor.bytes[..began].iter().rev();
        let is_first = before.find(|it| **it != b' ').is_none_or(|it| *it == b'\n');
        let is_sure =
            b"#$".contains(&cursor.bytes[mark]) && cursor.peek() == b' ' && host.is_some();
        let mut rest = cursor.clone();
        let there = rest.spaces().attempt(ssh_to);
        let name = rest.word(24, |it| it.is_ascii_graphic());
        (is_first && is_sure && cursor.ahead(1) > b' ').then(|| ToolCommand {
            tool: Tool::Other,
            host: there,
            is_prompted: true,
            words: name.into_iter().map(String::from).collect(),
        })
    };
    let mut command = known.or_else(other)?;
    command.is_prompted = true;
    // `ssh oak sysctl` runs there.
    command.host = command.host.or(host);
    Some(vec![Anchor {
        at: began..cursor.at,
        seen: Seen::Command(command),
    }])
}

/// Reads a command without a prompt, in a sentence or at the start of a line.
pub fn bare(cursor: &mut Cursor) -> Option<Seen> {
    let before = cursor.behind();
    if before.is_ascii_alphanumeric() || b"./-_".contains(&before) {
        return None;
    }
    command(cursor).map(Seen::Command)
}

/// Reads `Linux 6.1.0-13-amd64 (oak) 11/14/23 _x86_64_ (4 CPU)`, with which mpstat and its like say where they ran: as much as a
/// prompt does.
pub fn ran_on(cursor: &mut Cursor) -> Option<Seen> {
    (!cursor.behind().is_ascii_alphanumeric()).then_some(())?;
    cursor.words("Linux ")?;
    let release = cursor.word(64, |it| it.is_ascii_graphic() && it != b'(')?;
    release
        .starts_with(|it: char| it.is_ascii_digit())
        .then_some(())?;
    cursor.spaces().byte(b'(')?;
    let host = cursor.word(64, |it| it.is_ascii_alphanumeric() || b"._-".contains(&it))?;
    cursor.byte(b')')?;
    let rest = cursor.word(80, |it| it != b'\n')?;
    let host = host.split('.').next().map(String::from);
    rest.contains("CPU)").then_some(Seen::Command(ToolCommand {
        tool: Tool::Look,
        host,
        is_prompted: true,
        words: Vec::new(),
    }))
}

/// Reads `echo 200000 > /sys/class/net/em0/gro_flush_timeout` as a command of sysctl.
fn echo(cursor: &mut Cursor) -> Option<ToolCommand> {
    cursor.words("echo ")?;
    cursor.spaces();
    let value = cursor.word(24, |it| it.is_ascii_graphic() && it != b'>')?;
    cursor.spaces();
    cursor.any([">", "| sudo tee ", "| tee "])?;
    cursor.spaces();
    let path = cursor.word(96, |it| it.is_ascii_alphanumeric() || b"/._-".contains(&it))?;
    let folders = ["/sys/class/net/", "/proc/sys/"];
    let name = folders.iter().find_map(|it| path.strip_prefix(it));
    // In an interface's own folder: `echo 2 > napi_defer_hard_irqs`.
    let name = name.or(Some(path).filter(|it| is_file(it)))?;
    let name = name.replace('/', ".");
    let is_whole = (name.contains('.') || is_file(&name)) && !name.starts_with('.');
    let value = value.trim_matches(['"', '\'']);
    is_whole.then(|| ToolCommand {
        tool: Tool::Sysctl,
        host: None,
        is_prompted: false,
        words: vec![format!("{name}={value}")],
    })
}

/// Reads `ssh oak`, behind which a command of that host stands.
fn ssh_to(cursor: &mut Cursor) -> Option<String> {
    cursor.words("ssh ")?;
    let name = cursor.word(64, |it| it.is_ascii_alphanumeric() || b"@._-".contains(&it))?;
    cursor.words(" ")?;
    let _ = cursor.any(["\"", "'"]);
    Some(String::from(name.rsplit('@').next().unwrap_or(name)))
}

/// Reads a tool's name and its arguments.
fn command(cursor: &mut Cursor) -> Option<ToolCommand> {
    let there = cursor.attempt(ssh_to);
    let _ = cursor.words("sudo ");
    if let Some(command) = cursor.attempt(echo) {
        return Some(ToolCommand {
            host: there,
            ..command
        });
    }
    let whole = cursor.attempt(|cursor| {
        let path = cursor.word(48, |it| it.is_ascii_alphanumeric() || b"/._".contains(&it))?;
        let name = path.rsplit('/').next().unwrap_or_default();
        // A release number may follow: iperf2, iperf-2.0.5.
        let plain = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
        KNOWN.iter().find(|known| is_name(name, plain, known))
    });
    // The name may be wrapped.
    let mut wrapped = KNOWN.iter();
    let known = whole.or_else(|| wrapped.find(|(_, name, ..)| cursor.words(name).is_some()));
    let (tool, _, _, takes) = *known?;
    // Check the first argument before reading the rest: in prose, the name is not a command.
    let first = arguments(&mut cursor.clone(), tool, 1);
    takes(first.first().map_or("", String::as_str)).then_some(())?;
    let command = ToolCommand {
        tool,
        host: there,
        is_prompted: false,
        words: arguments(cursor, tool, WORDS_MAX),
    };
    Some(match tool {
        Tool::Ttcp => of_ttcp(&command),
        _ => command,
    })
}

/// A command of ttcp in the options of iperf: `-c alpha -l 64 -u`, or `-s`.
fn of_ttcp(command: &ToolCommand) -> ToolCommand {
    let is_host = |it: &&String| it.contains(['.', ':']) || !it.starts_with('-') && !is_number(it);
    let mut words = match command.words.last().filter(is_host) {
        Some(host) if !command.has('r') => vec!["-c", host],
        _ => vec!["-s"],
    };
    words.extend(command.option('l').into_iter().flat_map(|it| ["-l", it]));
    words.extend(command.has('u').then_some("-u"));
    ToolCommand {
        words: words.into_iter().map(String::from).collect(),
        ..command.clone()
    }
}

/// Whether a word is a tool's name; `plain` is the word without a release number.
fn is_name(word: &str, plain: &str, (_, known, slips_max, _): &Known) -> bool {
    let is_as_long = word.len() >= 4 && word.len().abs_diff(known.len()) <= 1;
    let may_slip = *slips_max > 0 && is_as_long && others(word, known) as usize <= *slips_max;
    // A slip is a missing, extra, wrong or swapped letter.
    plain == *known || (may_slip && strsim::osa_distance(word, known) <= *slips_max)
}

/// Counts the kinds of letters that `known` lacks: each takes a slip.
fn others(word: &str, known: &str) -> u32 {
    let kinds = |text: &str| text.bytes().fold(0_u128, |all, it| all | 1 << (it & 127));
    (kinds(word) & !kinds(known)).count_ones()
}

/// Options of iperf that take a number.
const NUMERIC: &[u8] = b"tipPlwbnLMTOA";
/// Options of iperf that take a word.
const WORDY: &[u8] = b"cBfyxZFoS";

/// Reads the first `max` arguments, up to the end of the line or to text glued to it.
fn arguments(cursor: &mut Cursor, tool: Tool, max: usize) -> Vec<String> {
    const SAYS: &str = "has had said says shows showed counted there on in at while during is was";
    let mut words: Vec<String> = Vec::new();
    let mut told = None;
    while words.len() < max {
        let before = cursor.at;
        cursor.spaces();
        // A long line continues on the next one with an option.
        if cursor.peek() == b'\n' {
            let mut next = cursor.clone();
            next.at += 1;
            next.spaces();
            let goes_on = tool == Tool::Iperf
                && next.peek() == b'-'
                && next.ahead(1).is_ascii_alphabetic()
                && matches!(next.ahead(2), b' ' | b'\n');
            if !goes_on {
                break;
            }
            *cursor = next;
        }
        let last = words.last().map_or("", String::as_str);
        let Some(word) = argument(cursor, tool, last, words.len()) else {
            cursor.at = before;
            break;
        };
        // A sentence ends behind `ifconfig em0 polling.`
        if matches!(tool, Tool::Ifconfig | Tool::Sysctl)
            && let Some(last) = word.strip_suffix('.')
        {
            words.push(String::from(last));
            cursor.at -= 1;
            break;
        }
        // `netstat -w 1 there showed 74 kpps` goes on as a sentence.
        let is_sentence = tool == Tool::Look && is_in(&word, SAYS);
        told = told.or(Some(before).filter(|_| is_sentence));
        words.push(word);
    }
    cursor.at = told.unwrap_or(cursor.at);
    words
}

fn argument(cursor: &mut Cursor, tool: Tool, last: &str, position: usize) -> Option<String> {
    let letter = last.as_bytes().get(1).copied();
    let takes = letter.filter(|_| is_option(last) && last.len() == 2);
    let is_number = match tool {
        Tool::Iperf => takes.is_some_and(|letter| NUMERIC.contains(&letter)),
        Tool::Netblast | Tool::Netsend => position > 0,
        Tool::Netreceive => true,
        _ => false,
    };
    // ttcp's first line may be glued to its command.
    if cursor.clone().any(["ttcp-t:", "ttcp-r:"]).is_some() {
        return None;
    }
    if cursor.peek() == b'-' {
        // A row of dashes begins a banner.
        let is_rule = cursor.ahead(1) == b'-' && cursor.ahead(2) == b'-';
        let rest = |it: u8| !is_rule && (it.is_ascii_alphanumeric() || it == b'-');
        return cursor.word(24, rest).map(|word| unglued(cursor, word));
    }
    if is_number {
        // `-A 3,3` pins both ends.
        let is_of_number =
            |it: u8| it.is_ascii_digit() || it == b'.' || it == b',' && letter == Some(b'A');
        let mut number = String::from(cursor.word(24, is_of_number)?);
        if tool == Tool::Iperf
            && let Some(unit) = cursor.any(["pps", "kpps", "Kpps", "mpps", "Mpps"])
        {
            return Some(number + unit);
        }
        let is_prefix = tool == Tool::Iperf && b"kKmMgG".contains(&cursor.peek());
        if is_prefix && !cursor.ahead(1).is_ascii_lowercase() {
            number.push(char::from(cursor.peek()));
            cursor.at += 1;
        }
        return Some(number);
    }
    let may_stand = match tool {
        Tool::Iperf => takes.is_some_and(|letter| WORDY.contains(&letter)),
        Tool::Netblast | Tool::Netsend => position == 0,
        _ => true,
    };
    let is_of_word = |it: u8| it.is_ascii_alphanumeric() || b".:_-=/".contains(&it);
    let word = may_stand.then(|| cursor.word(64, is_of_word)).flatten()?;
    Some(unglued(cursor, word))
}

/// Cuts off a banner glued to a word.
fn unglued(cursor: &mut Cursor, word: &str) -> String {
    let banners = "ttcp- --- Client Server Interface interrupt start:".split(' ');
    let ends = banners.filter_map(|banner| word.find(banner));
    let end = ends.filter(|end| *end > 0).min().unwrap_or(word.len());
    cursor.at -= word.len() - end;
    String::from(&word[..end])
}

/// Whether the end of a prompt is a folder apart from its host.
fn is_place(text: &[u8]) -> bool {
    let is_of_place = |it: &u8| it.is_ascii_alphanumeric() || b"/~._- ".contains(it);
    matches!(text.first(), Some(b'~' | b'/'))
        && text.last() == Some(&b' ')
        && text.iter().all(is_of_place)
}

/// The host named by the prompt that ends at `mark`, and where the prompt begins.
fn prompt(bytes: &[u8], mark: usize, from: usize) -> (Option<String>, usize) {
    let least = from.max(mark.saturating_sub(PROMPT_MAX));
    // `[2.4.0-RELEASE][admin@muro]/root(3):` counts commands.
    let before = bytes[..mark].strip_suffix(b")").unwrap_or_default();
    let digits = before.iter().rev().take_while(|it| it.is_ascii_digit());
    let counted = digits.count() + 2;
    let is_counted = before.len() + 1 >= counted && bytes[mark - counted] == b'(';
    let mark = if is_counted { mark - counted } else { mark };
    let mut began = mark;
    let mut depth = 0;
    while began > least {
        let byte = bytes[began - 1];
        match byte {
            b']' => depth += 1,
            b'[' if depth > 0 => depth -= 1,
            b' ' if depth > 0 || began == mark || bytes[..began - 1].ends_with(b"]") => {}
            // `sumac ~ #`
            b' ' if is_place(&bytes[began..mark]) => {}
            _ if byte.is_ascii_alphanumeric() || b"@:/~._-+".contains(&byte) => {}
            _ => break,
        }
        began -= 1;
        if byte == b'[' && depth == 0 {
            break;
        }
    }
    let text = std::str::from_utf8(&bytes[began..mark]).unwrap_or_default();
    let text = text.trim().trim_start_matches('-');
    let inner = text.strip_prefix('[').and_then(|it| it.split(']').next());
    let is_bracketed = inner.is_some();
    let words = inner.unwrap_or(text);
    // `[13:41:15 oak ~]#`
    let timed = words
        .split_once(' ')
        .filter(|it| it.0.starts_with(|it: char| it.is_ascii_digit()));
    let words = timed
        .filter(|it| it.0.contains(':'))
        .map_or(words, |it| it.1);
    let is_apart = words.contains(" ~") || words.contains(" /");
    let is_named =
        is_bracketed || is_apart || words.contains([':', '@']) || !words.contains(['/', '~']);
    let host = words.split([':', ' ', '/', '~']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    // `C:\iperf>` names a directory.
    let is_named = is_named && !bytes[..began].ends_with(b"\\");
    let is_host =
        is_named && host.len() > 1 && host.starts_with(|it: char| it.is_ascii_alphabetic());
    // The domain names no other host.
    let short = host
        .split('.')
        .next()
        .filter(|_| host.parse::<IpAddr>().is_err());
    (is_host.then(|| String::from(short.unwrap_or(host))), began)
}

/// Options of ifconfig(8) that turn something on, or off with a dash.
const SWITCHES: &str = "rxcsum txcsum rxcsum6 txcsum6 tso tso4 tso6 lro toe vlanhwtag vlanhwfilter \
                        vlanhwcsum vlanhwtso vlanmtu";
/// Options of ifconfig(8) that take a number.
const NUMBERS: [&str; 2] = ["mtu", "txqueuelen"];

/// Options of ethtool(8) followed by pairs of name and value.
const ETHTOOL: &str = "-K --features --offload -C --coalesce -G --set-ring -A --pause -L --set-channels \
                       --set-priv-flags";

/// The variable that turns polling on for all interfaces in old kernels.
pub const POLLING_VARIABLE: &str = "kern.polling.enable";

/// Before the variables of FreeBSD's scheduler of polling.
pub const TUNING: &str = "kern.polling.";

/// Those by which Linux polls, from system calls or by a timer; the last part of their names.
pub const LINUX_POLLING: [&str; 3] = ["busy_poll", "busy_read", "gro_flush_timeout"];
/// The file that has packets taken by threads, and is 0 or 1.
pub const THREADED: &str = "threaded";

/// The files of an interface by which Linux polls; the last part of their names.
pub const DEFERRAL: [&str; 2] = ["gro_flush_timeout", "napi_defer_hard_irqs"];

/// Whether a name is that of an interface's file by which Linux polls.
fn is_file(name: &str) -> bool {
    name == THREADED || DEFERRAL.contains(&name)
}

/// What a setting of polling says, in few words with its unit: `busy_us=50`, `defer=2`, `threads`, `burst_max=150`. `None`
/// if it is another one.
pub fn polling_words(name: &str, value: &str) -> Option<String> {
    if let Some(tuned) = name.strip_prefix(TUNING) {
        return Some(format!("{tuned}={value}"));
    }
    let word = match name.rsplit('.').next().unwrap_or(name) {
        "busy_poll" | "busy_read" => "busy_us",
        "napi_defer_hard_irqs" => "defer",
        "gro_flush_timeout" => "flush_ns",
        THREADED if value == "1" => return Some(String::from("threads")),
        THREADED => "threads",
        _ => return None,
    };
    Some(format!("{word}={value}"))
}

/// What a command sets, as names and values; empty for one that only prints.
pub fn set_by(command: &ToolCommand) -> Vec<(String, String)> {
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
    let is_name = (name.contains('.') || is_file(name)) && !name.starts_with('-');
    (is_name && !value.is_empty()).then(|| (String::from(name), String::from(value)))
}

fn of_ifconfig(words: &[&str]) -> Vec<(String, String)> {
    let Some((interface, options)) = words.split_first() else {
        return Vec::new();
    };
    let mut set = Vec::new();
    for (at, word) in options.iter().enumerate() {
        let plain = word.strip_prefix('-').unwrap_or(word);
        let is_off = plain.len() < word.len();
        let value = if SWITCHES.split(' ').any(|it| it == plain) {
            Some(if is_off { "off" } else { "on" })
        } else {
            let number = options.get(at + 1).filter(|_| NUMBERS.contains(word));
            number.copied().filter(|it| is_count(it))
        };
        set.extend(value.map(|value| (format!("{interface}.{plain}"), String::from(value))));
    }
    set
}

fn of_ethtool(words: &[&str]) -> Vec<(String, String)> {
    let [option, interface, pairs @ ..] = words else {
        return Vec::new();
    };
    let is_name = interface.starts_with(|it: char| it.is_ascii_alphanumeric());
    if !is_name || !ETHTOOL.split(' ').any(|it| it == *option) {
        return Vec::new();
    }
    let pairs = pairs.chunks_exact(2);
    let is_value = |it: &str| is_count(it) || matches!(it, "on" | "off");
    pairs
        .take_while(|pair| is_value(pair[1]))
        .map(|pair| (format!("{interface}.{}", pair[0]), String::from(pair[1])))
        .collect()
}

fn is_count(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit())
}
