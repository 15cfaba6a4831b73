//! How prose stands on a page: sentences, headings, captions, rows and cases, who wrote what, and the hosts that lists
//! introduce.

use crate::lines::address;
use crate::lines::clause::{
    ClauseMode, KINDS, LISTINGS, MACHINES, RECEIVERS, SENDERS, is_common, is_in, setting, words_of,
};
use crate::lines::prose::{CONCLUSIONS, HEADING_MAX, SentenceMark};

/// Whether a word is of what a host is made of: its system, its processor, an interface.
pub fn is_part(word: &str) -> bool {
    const MADE_OF: &str = "freebsd linux debian ubuntu centos fedora mint release stable ghz mhz pentium celeron xeon \
        atom athlon opteron duron geode duo ryzen k6 thinkpad amd64 i386 poweredge dell ibm p2 p3 p4 piii pii";
    is_in(word, MADE_OF) || address::is_numbered(word)
}

/// Whether words are of what a host is made of.
fn is_made(text: &str) -> bool {
    let (words, _) = words_of(text);
    words.split(' ').any(is_part)
}

/// The host that a line of a list introduces: `carrot: Atom 330, re0`, `* gw1 - FreeBSD 9.1`, `sowa    Celeron 700`.
pub fn defined(line: &str) -> Option<&str> {
    const NONE: &str = "kernel cpu os hardware nic nics card cards system systems memory ram disk network driver software \
        setup date subject note version product status platform release processor model input output run cc bcc also";
    let is_mark = |it: char| it.is_whitespace() || "*-;|`'_+".contains(it);
    let line = line.trim().trim_start_matches(is_mark);
    let end = line.find(|it: char| !it.is_ascii_alphanumeric() && it != '-')?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(['*', '`', '\'', '_']);
    let apart = [
        "  ", ": ", " - ", " -- ", " (", " |", ", ", "\t", " : ", " = ",
    ];
    let is_apart = apart.iter().any(|it| rest.starts_with(it));
    let small = name.to_ascii_lowercase();
    // `nas = C3 800, re0`
    let is_kind = is_in(&small, KINDS) && rest.starts_with(" = ");
    let is_name = address::is_name(name)
        && (!is_common(&small) || is_kind)
        && !is_in(&small, NONE)
        && !is_made(&small);
    (is_apart && is_made(rest) && is_name).then_some(name)
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|it: char| !it.is_ascii_alphanumeric())
}

/// Words that a sentence gives as names of hosts: `They are called tick and tock`, `my firewall is called gate`.
pub fn listed(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let single = words
        .windows(2)
        .filter(|it| is_in(it[0], "called named hostname"));
    let single = single.map(|it| it[1]).chain(in_ways(&words));
    // `the name is quito`
    let told = words
        .windows(3)
        .filter(|it| it[0] == "name" && it[1] == "is");
    let single = single.chain(told.map(|it| it[2]));
    // `a short cable to em0 of spruce`
    let parts = words
        .windows(3)
        .filter(|it| address::is_numbered(bare(it[0])) && it[1] == "of");
    let single = single.chain(parts.map(|it| it[2]));
    // `iperf3 -s runs on the apu`
    let served = (3..words.len()).filter_map(|at| {
        let is_it = bare(words[at - 3]) == "s" && words[at - 2] == "runs" && words[at - 1] == "on";
        let is_the = usize::from(words[at] == "the");
        words.get(at + is_the).filter(|_| is_it).copied()
    });
    let single = single.chain(served);
    // `argon (Athlon 700, dc0), krypton (Duron 800, fxp0)`
    let made = text.match_indices(" (").filter_map(|(at, _)| {
        let name = text[..at]
            .rsplit(|it: char| it.is_whitespace() || it == '(')
            .next()?;
        let inner = text[at + 2..].split(')').next()?;
        is_made(inner).then_some(name)
    });
    // `duke is a P3/733`
    let kinds = words
        .windows(4)
        .filter(|it| it[1] == "is" && is_in(it[2], "a an") && is_made(it[3]));
    let kinds = kinds.map(|it| it[0]);
    // `brick is my desktop`, `oakley is the little file server`
    let owned = words.windows(6).filter(|it| {
        let small = |it: &&str| bare(it).to_ascii_lowercase();
        let is_kind = |it: &String| is_in(it, KINDS) || is_in(it, MACHINES) || it == "server";
        it[1] == "is"
            && is_in(it[2], "my our the a an")
            && it[3..].iter().map(small).any(|it| is_kind(&it))
    });
    let owned = owned.map(|it| it[0]);
    let marked = marked(&words);
    let names = single
        .chain(marked.iter().copied())
        .chain(kinds)
        .chain(owned)
        .chain(made);
    let names = names.map(bare);
    let called = |name: &str| {
        let mut near = words.windows(2).filter(|it| is_in(it[0], "called named"));
        near.any(|it| bare(it[1]) == name) || marked.contains(&name)
    };
    let is_name = |it: &&str| {
        let small = it.to_ascii_lowercase();
        let is_part = [KINDS, SENDERS, RECEIVERS]
            .iter()
            .any(|list| is_in(&small, list));
        address::is_name(it) && (!is_common(&small) || is_part && called(it))
    };
    names.filter(is_name).collect()
}

/// Words where hosts stand in ways and lists: `stor-a3 -> stor-b1`, `cairn sends`.
fn in_ways<'t>(words: &[&'t str]) -> Vec<&'t str> {
    let is_digit = |it: char| it.is_ascii_digit();
    let ways = words.windows(3).filter(|it| is_in(it[1], "-> --> →"));
    let parts = words
        .windows(2)
        .filter(|it| is_in(bare(it[1]), "sends receives"));
    let parts = parts
        .map(|it| it[0])
        .filter(|it| !it.contains([',', '.', ')']));
    let found = ways.flat_map(|it| [it[0], it[2]]).chain(parts);
    // `e3` may stand for sin-e3.
    let found = found.filter(|it| it.contains('-') || !bare(it).ends_with(is_digit));
    found.collect()
}

/// Words in marks that do something: "`sink` takes what arrives", `**pike** and **tench** are twins`.
fn marked<'t>(words: &[&'t str]) -> Vec<&'t str> {
    const VERBS: &str = "is are has takes makes forwards sends receives runs was and - --";
    let is_marked =
        |it: &str| it.starts_with(['*', '`', '\'']) && it.ends_with(['*', '`', '\'', ':']);
    let is_one = |it: &&[&str]| is_marked(it[0]) && (is_in(it[1], VERBS) || it[1].starts_with('('));
    words
        .windows(2)
        .filter(is_one)
        .map(|it| bare(it[0]))
        .collect()
}

/// Two hosts that a sentence names by their places: `from fermin to isidoro`, `my pair, castor and pollux`, `tern blasts at
/// plover`.
pub fn paired(text: &str) -> Vec<&str> {
    const GROUPS: &str =
        "machines boxes hosts pair pcs computers dells servers mine ours they names have";
    const SAYS: &str = "is are called named names have";
    const SENDS: &str = "sends sending blasts blasting transmits throws throwing pushes";
    const TO: &str = "to towards into at";
    const NOT: &str = "nothing none something everything anything some soft softirq sys system user idle sy si us back from connected identical whatever found always any anywhere are \
        board boards card cards crossover direct five six seven eight ten for half good in its joined just kernel known means \
        memory mid my no now old new performance programs spent switch them twins wait went where with without different small big cheap fast slow";
    let mut depth = 0;
    // What stands in brackets tells more of a host.
    let is_plain = |it: &&str| {
        let was = depth;
        depth += it.matches('(').count() as i32 - it.matches(')').count() as i32;
        was == 0 && !it.starts_with('(')
    };
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|it| *it != ">")
        .filter(is_plain)
        .collect();
    let small: Vec<String> = words
        .iter()
        .map(|it| bare(it).to_ascii_lowercase())
        .collect();
    let is = |at: usize, list: &str| small.get(at).is_some_and(|it| is_in(it, list));
    let name = |at: usize| {
        let name = bare(words.get(at)?);
        let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
        let is_word = name.len() > 1
            && name.bytes().all(is_letter)
            && name.bytes().any(|it| it.is_ascii_lowercase());
        let is_name = address::is_name(name) && !is_common(&small[at]);
        (is_word && is_name && !is(at, NOT)).then_some(name)
    };
    let both = |one: usize, other: usize| Some(vec![name(one)?, name(other)?]);
    let ends = |at: usize| {
        words
            .get(at)
            .is_some_and(|it| !it.ends_with(|it: char| it.is_ascii_alphanumeric()))
    };
    let joins =
        |at: usize| is(at, "and to") || words.get(at).is_some_and(|it| ["+", "->"].contains(it));
    let found = (0..words.len()).filter_map(|at| match () {
        () if is(at, "from") && is(at + 2, TO) => both(at + 1, at + 3),
        () if is(at, "between") && is(at + 2, "and") => both(at + 1, at + 3),
        () if is(at, "on") && is(at + 2, "and") && is(at + 3, "on") => both(at + 1, at + 4),
        () if is(at, GROUPS) => (at + 1..at + 6).find_map(|next| {
            let is_told = ends(next - 1) || is(next - 1, SAYS);
            // `They are tundra, steppe and taiga`
            let listed = (next..words.len())
                .take_while(|it| name(*it).is_some() && words[*it].ends_with(','));
            let last = next + listed.count();
            let names =
                both(last, last + 2).filter(|_| is_told && joins(last + 1) && !ends(last))?;
            let names = Some(names).filter(|_| !is(at, "have") || is(last + 1, "and"))?;
            Some((next..last).filter_map(name).chain(names).collect())
        }),
        () if is(at + 1, SENDS) => {
            (at + 2..at + 6).find_map(|to| both(at, to + 1).filter(|_| is(to, TO)))
        }
        () => None,
    });
    found.flatten().collect()
}

/// Hosts whose names stand in marks: `hostname **otter**`, `my laptop, "marten"`.
pub fn called(text: &str) -> impl Iterator<Item = &str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let named = words.windows(2).filter_map(|it| {
        let before = it[0].trim_end_matches([',', ':']).to_ascii_lowercase();
        let name = it[1]
            .trim_start_matches('(')
            .strip_prefix(['*', '"', '`', '\''])?;
        let name = name.trim_start_matches('*');
        let end = name.find(|it: char| !it.is_ascii_alphanumeric() && it != '-')?;
        let is_closed = name[end..].starts_with(['*', '"', '`', '\'', ',']);
        let is_said = is_in(&before, "called named hostname has is") || is_in(&before, KINDS);
        let is_name = !is_common(&name[..end].to_ascii_lowercase());
        (is_said && is_closed && is_name && end > 1).then_some(&name[..end])
    });
    let mut names = named.collect::<Vec<&str>>();
    // `nas -> gw`, alone
    if let [one, "->" | "-->", other] = words[..] {
        let names_two = [one, other.trim_end_matches([':', ','])];
        names.extend(names_two.into_iter().filter(|it| address::is_name(it)));
    }
    names.into_iter()
}

/// Ranks in forums, and what else stands next to an author's name.
const ROLES: &str = "member moderator administrator admin guest new senior junior active known well registered location";

/// Whether a word is the number of a post: `#4`.
fn is_post_number(word: &str) -> bool {
    word.strip_prefix('#')
        .is_some_and(|it| it.parse::<u32>().is_ok())
}

/// The author whose mail, post or comment begins with a line: `From: Tom <tom@example.net>`, `#4  tundra_k  Oct 4, 2014`.
pub fn author(line: &str) -> Option<&str> {
    const BY: &str =
        "From: |Posted by: |Posted by |Post by |Comment by |Reply by |Author: |Originator: ";
    const MONTHS: &str = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";
    let line = line.trim().trim_start_matches('>');
    let says = [" says: ", " wrote on "].iter().find_map(|it| {
        let name = line.split_once(it)?.0.trim_matches('*');
        (!name.contains(' ')).then_some(name)
    });
    // `tundra_k      Posts: 12`
    let posts = line.split_once("  ").and_then(|it| {
        let count = it.1.trim_start().strip_prefix("Posts: ")?;
        let name = it.0.split(',').next().unwrap_or_default();
        let is_role = is_in(&name.to_ascii_lowercase(), ROLES);
        count.parse::<u32>().ok().filter(|_| !is_role).map(|_| it.0)
    });
    // `halvorsen      Posted: Sun Jan 15, 2012 7:12 pm`
    let unnumbered = line.trim_start_matches(|it: char| it == '#' || it.is_ascii_digit());
    let posted = unnumbered
        .trim_start()
        .split_once("  ")
        .filter(|it| it.1.trim_start().starts_with("Posted: "));
    let says = says.or(posts).or(posted.map(|it| it.0));
    let by = BY.split('|').find_map(|it| line.strip_prefix(it));
    let said = by.or(says).or_else(|| {
        let mut words = line.split_whitespace();
        let (first, last) = (words.next()?, words.next_back()?);
        let is_post = line.len() <= HEADING_MAX && line.contains("20") && line.contains("  ");
        let name = if is_post_number(first) {
            words.next()?
        } else {
            first
        };
        // `rackmonkey     March 9, 2010, 20:14`
        let is_dated = line.split_once("  ").is_some_and(|(name, when)| {
            let mut when = when
                .split_whitespace()
                .take(2)
                .map(|it| it.get(..3).unwrap_or(""));
            // After the day of the week, perhaps.
            let month = when.find(|it| is_in(it, MONTHS)).unwrap_or("");
            let is_time =
                last.len() == 5 && last.as_bytes()[2] == b':' || is_in(last, "am pm AM PM");
            !name.contains(' ') && is_in(month, MONTHS) && is_time
        });
        let is_marked =
            is_post_number(first) || is_post_number(last) || is_dated || line.contains(" » ");
        (is_post && is_marked).then_some(name)
    });
    let said = said.or_else(|| poster(line))?;
    let end = said.find(['<', '(', ',']).unwrap_or(said.len());
    Some(said[..end].trim()).filter(|it| !it.is_empty())
}

/// The author in a line that has a date, a mark of a post, and else a name: `===== quenby | Sat 20 Jan 2024, 11:02 =====`.
fn poster(line: &str) -> Option<&str> {
    const VERBS: &str = "wrote posted commented replied";
    const POSTS: &str = "msg post message comment reply description";
    const WHEN: &str = "january february march april may june july august september october november december \
        monday tuesday wednesday thursday friday saturday sunday am pm at on by utc gmt";
    let is_edge = |it: char| !it.is_ascii_alphanumeric() && it != '_';
    let (mut is_dated, mut is_timed, mut is_marked, mut is_inner) = (false, false, false, false);
    let (mut names, mut verb): (Vec<&str>, Option<usize>) = (Vec::new(), None);
    let words: Vec<&str> = line.split_whitespace().collect();
    // `jwk (2017-10-09): Did you pin it?`
    let end = words.iter().take(4).position(|it| it.ends_with("):"));
    let head = &words[..end.map_or(words.len(), |at| at + 1)];
    for (at, word) in head.iter().enumerate() {
        is_inner |= word.starts_with('(');
        let plain = word.trim_matches(is_edge);
        let small = plain.to_ascii_lowercase();
        let is_year = |it: &str| it.len() == 4 && it.parse::<u32>().is_ok_and(|it| it / 100 == 20);
        if plain.starts_with(|it: char| it.is_ascii_digit()) || plain.is_empty() {
            is_dated |= plain.split(is_edge).any(is_year);
            is_timed |= plain.contains(':');
            is_marked |= plain.is_empty() && !word.contains('>') || word.starts_with('#');
        } else if is_in(&small, POSTS) {
            is_marked = true;
        } else if is_in(&small, VERBS) {
            verb = verb.or(Some(at));
        } else if !is_inner
            && verb.is_none()
            && !WHEN.split(' ').any(|it| it.starts_with(&small))
            && (names.is_empty() || !is_in(&small, ROLES))
        {
            names.push(plain);
        }
        is_inner &= !word.contains(')');
    }
    let next = verb.and_then(|at| words.get(at + 1));
    let is_when = |it: &str| it.starts_with(|it: char| it == '(' || it.is_ascii_digit());
    let is_told = next.is_some_and(|it| is_in(it, "on at") || is_when(it)) || end.is_some();
    let length: usize = head.iter().map(|it| it.len() + 1).sum();
    // `fernweh  |  Member  |  May 14, 2016  |  #1`
    let is_timed = is_timed || words.last().is_some_and(|it| is_post_number(it));
    // `#4  tundra_k`
    let is_alone =
        words.len() == 2 && is_post_number(words[0]) && !is_common(&words[1].to_ascii_lowercase());
    let is_head =
        is_alone || is_dated && (is_told || is_marked && is_timed) && length <= HEADING_MAX;
    let name = *names.first()?;
    let is_name = names.len() <= 3 && !is_in(name, "On Date Sent Subject");
    (is_head && is_name).then_some(name)
}

/// Whether a text is a heading of Textile: `h2. Results`.
fn is_textile(text: &str) -> bool {
    let number = text.strip_prefix('h').and_then(|it| it.split_once(". "));
    number.is_some_and(|it| it.0.len() == 1 && it.0.bytes().all(|it| it.is_ascii_digit()))
}

/// A line behind the number of its section: `A1. Router polls`, `3.2  With polling`.
fn without_number(line: &str) -> &str {
    let is_number =
        |it: &str| it.len() <= 4 && it.ends_with(|it: char| it.is_ascii_digit()) || it.len() == 1;
    let parts = [line.split_once(". "), line.split_once("  ")];
    let parts = parts.into_iter().flatten();
    let mut parts = parts.filter(|it| is_number(it.0) && !it.0.starts_with('#'));
    parts.next().map_or(line, |it| it.1.trim_start())
}

/// Whether a line is the heading of a section: `2.1 With interrupts`.
fn is_section(line: &str) -> bool {
    let (number, title) = line.split_once(' ').unwrap_or((line, ""));
    let is_number = |it: &str| it.len() == 1 && it.bytes().all(|it| it.is_ascii_digit());
    let is_one = number.contains('.') && number.split('.').all(is_number);
    is_one && title.starts_with(|it: char| it.is_ascii_uppercase()) && title.split(' ').count() <= 4
}

/// Whether a text begins with `(a)` or `2)`.
fn is_numbered(text: &str) -> bool {
    let number = text.strip_prefix('(').unwrap_or(text).split_once(") ");
    number.is_some_and(|it| it.0.len() <= 2 && it.0.bytes().all(|it| it.is_ascii_alphanumeric()))
}

/// Whether a text is in brackets as what is said of the lines above, and neither begins with a number in brackets nor
/// leaves something as it was.
pub fn is_aside(text: &str) -> bool {
    let inner = text.trim().trim_start_matches(['\'', '*', '_']);
    let inner = inner.strip_prefix('(');
    let number = inner.and_then(|it| it.split_once(')'));
    let is_numbered = number.is_some_and(|it| it.0.len() <= 2);
    let mut leaves = ["left", "unchanged", "untouched", "still"].iter();
    inner.is_some() && !is_numbered && !leaves.any(|it| text.contains(it))
}

/// Whether a text is the caption of a listing: `Listing 3: what top says`.
pub fn is_caption(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let what = words
        .next()
        .unwrap_or("")
        .trim_end_matches('.')
        .to_ascii_lowercase();
    let said = words.next().unwrap_or("");
    let number = said.trim_end_matches([':', '.', ',', ')']);
    // `C.1` is in an appendix.
    let number = number
        .split_once('.')
        .filter(|it| it.0.len() == 1)
        .map_or(number, |it| it.1);
    let is_of_number = |it: u8| it.is_ascii_digit() || b"-.".contains(&it);
    let is_number =
        number.starts_with(|it: char| it.is_ascii_digit()) && number.bytes().all(is_of_number);
    // `Listing 1 is the first run` is a sentence.
    let is_apart =
        text.ends_with(number) || said.ends_with([':', '.', ',', ')']) || words.next() == Some("-");
    is_in(&what, LISTINGS) && is_number && is_apart
}

/// The letter of a case and what it stands for: `B ... polling on saturn`, `(b) polling on the sender`.
fn case(line: &str) -> Option<[&str; 2]> {
    const MARKS: [&str; 6] = ["...", "=", ")", ":", "-", "."];
    let line = line
        .trim_start_matches("- ")
        .trim_start_matches(['(', '*', ' ']);
    let (letter, rest) = line.split_at_checked(1)?;
    let rest = rest.trim_start_matches(['*', ' ']);
    let mark = MARKS.iter().find(|it| rest.starts_with(**it))?;
    let said = rest[mark.len()..].trim_start_matches(['*', ' ']);
    let is_letter = letter.bytes().all(|it| it.is_ascii_alphabetic());
    let (_, clauses) = words_of(said);
    let mut modes = clauses.iter().map(|it| ClauseMode::of(it, false));
    let is_said = modes.any(|it| it.polls.is_some() && !it.is_unreal);
    (is_letter && is_said && said.len() <= HEADING_MAX).then_some([letter, said])
}

/// The listings that a sentence's words name by their numbers, and whether the first is its own: `Listing 9: saturn during
/// Listing 1`.
pub fn listings(words: &str) -> (Vec<String>, bool) {
    let words: Vec<&str> = words.split_whitespace().collect();
    let is_letter = |it: &str| it.len() == 1 && it.bytes().all(|it| it.is_ascii_alphabetic());
    let named = (0..words.len()).filter(|at| is_in(words[*at], LISTINGS));
    // `C.1` is in an appendix.
    let number = |at: usize| {
        let at = at + 1 + usize::from(words.get(at + 1).is_some_and(|it| is_letter(it)));
        let digits = |it: &&&str| it.bytes().all(|it| it.is_ascii_digit());
        // `Listing 3-1`
        let parts: Vec<&str> = words[at..]
            .iter()
            .take(2)
            .take_while(digits)
            .copied()
            .collect();
        (!parts.is_empty()).then(|| parts.join("-"))
    };
    let numbers = named.filter_map(|at| Some(format!("{} {}", words[at], number(at)?)));
    let numbers = numbers.collect();
    (numbers, words.first().is_some_and(|it| is_in(it, LISTINGS)))
}

/// The cells of a row: between bars, apart by several spaces, or a case and what it stands for. Empty if it is none.
pub fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    if let Some(case) = case(line) {
        return case.into();
    }
    let is_barred = is_barred(line);
    let is_mark = |it: char| it.is_whitespace() || "'*`".contains(it);
    if is_barred {
        let bars = ["||", "!!", "^"]
            .into_iter()
            .find(|it| line[1..].contains(it))
            .unwrap_or("|");
        let inner = line.trim_matches(['|', '!', '^']);
        return inner
            .split(bars)
            .map(|it| it.trim_matches(is_mark))
            .collect();
    }
    let parts: Vec<&str> = line
        .split("  ")
        .map(|it| it.trim_matches(is_mark))
        .filter(|it| !it.is_empty())
        .collect();
    let is_row = parts.len() >= 3
        && parts
            .iter()
            .all(|it| it.len() < 40 && !it.ends_with(['.', ';']));
    if is_row { parts } else { Vec::new() }
}

/// Whether a line is a row between bars, or a head of a wiki's table between carets.
fn is_barred(line: &str) -> bool {
    line.starts_with(['|', '!']) || line.starts_with("^ ") && line.trim_end().ends_with('^')
}

/// Whether a line is a row of a table, by the lines before and after it.
fn is_row(line: &str, near: [Option<&str>; 2]) -> bool {
    let is_one = |line: &str| !cells(line).is_empty();
    is_barred(line) || is_one(line) && near.iter().flatten().any(|it| is_one(it))
}

/// Whether a line is a rule, or the head of a screen of top or nstat.
fn is_rule(line: &str) -> bool {
    let is_ruled = line.len() > 2 && line.bytes().all(|it| it.is_ascii_punctuation());
    let begins = |it: &&str| line.starts_with(it);
    let heads = [
        "last pid", "top - ", "#kernel", "#+B", "#+E", "#+b", "#+e", "Mem: ", "Swap: ", "MiB Mem",
        "Tasks: ",
    ];
    is_ruled || heads.iter().any(begins)
}

/// Whether a line is the key of a case: `R1.`, `B`.
fn is_key(line: &str) -> bool {
    let key = line.trim_end_matches(['.', ':', ')']);
    let digits = key.strip_prefix(|it: char| it.is_ascii_uppercase());
    digits.is_some_and(|it| it.len() <= 2 && it.bytes().all(|it| it.is_ascii_digit()))
}

/// What a line is by its marks, and by the lines before and after it. `is_new` where no sentence goes on.
fn mark_of(line: &str, [before, after]: [Option<&str>; 2], is_new: bool) -> SentenceMark {
    let is_alone = |near: Option<&str>| near.is_some_and(str::is_empty);
    let numbered = line;
    let line = without_number(line);
    let is_short = line.len() <= HEADING_MAX && !line.ends_with(['.', '!', '?', ',', ';']);
    let begins = line.starts_with(|it: char| it.is_ascii_uppercase()) || is_numbered(line);
    let is_section_of =
        numbered.len() > line.len() && numbered.starts_with(|it: char| it.is_ascii_digit());
    let is_title =
        begins && (line.split(' ').count() <= 6 || setting(line).is_some() || is_section_of);
    let is_apart = after.is_some_and(is_rule) || is_alone(before) && is_alone(after);
    let is_whole = !line.contains(". ") && !line.contains(".) ");
    let is_marked = line.starts_with(['=', '#', '*']) || is_textile(line);
    let is_conclusion = ["=>", "==>"].iter().any(|it| line.starts_with(it));
    match () {
        () if is_row(line, [before, after]) || case(line).is_some() => SentenceMark::Row,
        // Markup has blank lines around its headings; a listing has none around its comments.
        () if line.starts_with("# ") && !is_alone(after) => SentenceMark::Comment,
        () if is_key(line) && is_alone(before) => SentenceMark::Heading,
        () if is_short && is_marked && !is_conclusion => SentenceMark::Heading,
        () if is_short && is_whole && is_section(line) => SentenceMark::Heading,
        () if is_short && is_whole && line.ends_with(':') && is_new => SentenceMark::Heading,
        () if is_short && is_whole && is_title && is_apart => SentenceMark::Heading,
        () if is_short && is_alone(before) && after.is_some_and(is_rule) => SentenceMark::Heading,
        () => SentenceMark::None,
    }
}

/// Splits the text between findings into sentences: their ranges, and what their marks say.
/// The first line is whole if `is_from_start`; a line that `is_said` for itself begins another.
pub fn sentences(
    text: &str,
    is_from_start: bool,
    is_said: impl Fn(usize) -> bool,
) -> Vec<(std::ops::Range<usize>, SentenceMark)> {
    let mut found = Vec::new();
    let mut open: Option<usize> = None;
    let mut at = 0;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (index, line) in lines.iter().enumerate() {
        let lead = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        let start = at + lead;
        let end = start + trimmed.len();
        let is_new = is_said(at);
        at += line.len();
        let near = [index.checked_sub(1), Some(index + 1)];
        let near = near.map(|at| at.and_then(|at| lines.get(at)).map(|it| it.trim()));
        let is_concluding = CONCLUSIONS.split(' ').any(|it| trimmed.starts_with(it));
        let begins = is_concluding && !is_barred(trimmed)
            || trimmed.starts_with("- ")
            || defined(trimmed).is_some()
            || is_new;
        // What is left of a line of a tool is no heading.
        let mark = match !begins && (index > 0 || is_from_start) {
            true => mark_of(trimmed, near, open.is_none()),
            false => SentenceMark::None,
        };
        // `; Busy polling : a process that waits looks for itself`
        let is_term = trimmed.starts_with("; ") && trimmed.contains(" : ");
        let is_none = trimmed.is_empty() || is_rule(trimmed) || is_term;
        if is_none || begins || mark != SentenceMark::None {
            found.extend(open.take().map(|from| (from..start, SentenceMark::None)));
        }
        if is_none {
            continue;
        }
        if mark != SentenceMark::None {
            found.push((start..end, mark));
            continue;
        }
        let mut from = open.take().unwrap_or(start);
        for (mark, letter) in line.match_indices(['.', '!', '?', ':', ';']) {
            let mark = at - line.len() + mark + 1;
            let is_last = text[mark..].starts_with('\n') || mark == text.len();
            let before = &text[..mark - 1];
            let mut short = ["vs", "i.e", "e.g", "approx", "ca", "resp"].iter();
            let begun = text.get(from..mark).unwrap_or("");
            let is_begun = is_caption(begun) && begun.split_whitespace().count() == 2;
            let is_short = short.any(|it| before.ends_with(it)) || is_begun;
            // `ifconfig em0 polling; ifconfig em1 polling`
            let next = text[mark..].split_whitespace().next().unwrap_or("");
            let is_command = letter == ";" && is_in(next, "ifconfig sysctl echo ethtool");
            let goes_on = letter == ":" || is_command || !text[mark..].starts_with([' ', ')']);
            if mark > from && !is_short && (is_last || !goes_on) {
                found.push((from..mark, SentenceMark::None));
                from = mark;
            }
        }
        open = text[from..end.max(from)]
            .contains(|it: char| it.is_alphanumeric())
            .then_some(from);
    }
    found.extend(open.map(|from| (from..text.len(), SentenceMark::None)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_a_post_names_its_author() {
        let lines = [
            ("===== quenby | Sat 20 Jan 2024, 11:02 =====", "quenby"),
            (">>> msg 4, 2007-03-13 11:30, Wim Aerts", "Wim"),
            ("bsd_dad wrote (22 Oct 2023, 08:05):", "bsd_dad"),
            (
                "**pihlaja-m** commented on Feb 8, 2023 (via email)",
                "pihlaja-m",
            ),
            (
                "#4  tundra_k  (Member, 2 posts)      May 3, 2013, 00:31",
                "tundra_k",
            ),
            (
                "**jwk** (2017-10-09): Did you pin the IRQs? On a pair I see",
                "jwk",
            ),
            ("#4  oldmanriver", "oldmanriver"),
            ("fernweh  |  Member  |  May 14, 2016  |  #1", "fernweh"),
            (
                "kalle_p  |  Well-Known Member  |  May 14, 2016  |  #2",
                "kalle_p",
            ),
            (
                "#1   noodle_code          Posted: Tue Feb 15, 2005 9:12 pm",
                "noodle_code",
            ),
            (
                "marrakesh  (Moderator, 9120 posts)             Posted 11 Feb 2017, 21:40",
                "marrakesh",
            ),
            ("Comment 2   Ilja Kareev   2014-03-19 19:30:47 UTC", "Ilja"),
        ];
        for (line, name) in lines {
            assert_eq!(author(line), Some(name), "{line}");
        }
        for line in [
            "On Mon, May 09, 2005 at 02:20:31PM -0300, Rodrigo wrote:",
            "\u{ab} Reply #1 on: April 03, 2017, 07:30:02 pm \u{bb}",
            "Then, on 12 May 2012 at 14:05, I posted the numbers of both",
            "start: 1363123411.104112890",
            "-  kestrel",
            "#2  TCP",
        ] {
            assert_eq!(author(line), None, "{line}");
        }
    }

    #[test]
    fn hosts_are_named_in_pairs_by_their_places() {
        for (text, names) in [
            ("From fermin to isidoro, as yesterday", "fermin isidoro"),
            (
                "a cable between anvil (igb0) and hammer (em0)",
                "anvil hammer",
            ),
            ("They are tundra, steppe and taiga.", "tundra steppe taiga"),
            (
                "My pair is jules and vincent (7.2 too, em)",
                "jules vincent",
            ),
            ("tern blasts 64 byte payload at plover", "tern plover"),
            ("0 on mars and on venus as well", "mars venus"),
        ] {
            assert_eq!(paired(text).join(" "), names, "{text}");
        }
        for text in [
            "it went from interrupts to polling",
            "between six and eight percent",
            "I have nothing to tune",
            "Both boxes are fast and busy",
        ] {
            assert!(paired(text).is_empty(), "{text}: {:?}", paired(text));
        }
        let words: Vec<&str> = "`sink` takes it, and **pike** (8 cores) sends"
            .split(' ')
            .collect();
        assert_eq!(marked(&words), ["sink", "pike"]);
    }

    #[test]
    fn listings_are_named_by_all_parts_of_their_numbers() {
        let words = " listing 3 2 cpu states during listing 3 1 ";
        let names = ["listing 3-2", "listing 3-1"].map(String::from);
        assert_eq!(listings(words), (names.to_vec(), true));
    }

    #[test]
    fn a_text_is_cut_into_sentences_labels_and_headings() {
        let text = "We ran it twice. On the\nserver this was\nseen:\n\nSecond run\n----------\n=> fine\n- first: it ran\n";
        let found: Vec<(&str, bool)> = sentences(text, true, |_| false)
            .into_iter()
            .map(|(range, mark)| (text[range].trim(), mark == SentenceMark::Heading))
            .collect();
        assert_eq!(
            found,
            [
                ("We ran it twice.", false),
                ("On the\nserver this was\nseen:", false),
                ("Second run", true),
                ("=> fine", false),
                ("- first: it ran", false),
            ]
        );
    }
}
