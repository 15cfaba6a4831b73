//! What a sentence says of how hosts receive, clause by clause: whose setting it is, and which.

use std::collections::BTreeSet;
use std::rc::Rc;

use nicpoll_model::Side;

use crate::lines::clause::{
    ClauseMode, RECEIVERS, SENDERS, is_in, parts, phrase_at, setting, state_alone, turns_round,
    value_set, words_of,
};
use crate::lines::prose::{
    ALL_UNTOUCHED, CANNOT, LASTING, Modes, Sentence, SentenceKind, SentenceMark, UNTOUCHED, UNTUNED,
};
use crate::transcript::found::{HostNames, SwitchScope};

/// Phrases with which a sentence says that all is as before.
const UNCHANGED: &str = "same polling setting|same polling settings|nothing changed|nothing else changed|nothing is changed|nothing was changed|same settings|polling as before|\
    touch any setting|no setting changed|no other knob|no other setting|same conditions|same state|left the sysctls alone|settings unchanged|settings as before|everything else unchanged|polling as is|polling as it is|polling as it was|polling stays as";
/// Phrases of a sentence that turns polling off wherever it is on.
const ALL_OFF: &str = "everything off|everything is off|everything was off|everything back to 0|everything back to zero|\
    everything back to default|everything back to the defaults|everything back to stock|everything back to as|everything back to interrupts|all of it off";
/// Longer sentences tell no change.
const CHANGE_MAX: usize = 240;
/// Phrases of a sentence that is of several tests, each with a setting of its own.
const SERIES: &str = "with and without|with and then|\
    without and with|without and then|once with|once without";
/// A plain sentence that tells no change is a label if it is shorter.
const SHORT_MAX: usize = 60;
/// Most words of a clause that only adds a host to the one before: `and on egret`.
const ADDED_MAX: usize = 4;

/// Whose setting a clause tells, and which.
pub type Claim = (SwitchScope, bool);

/// Reads sentences in the order of the text.
#[derive(Clone)]
pub struct Reader<'a> {
    hosts: &'a HostNames,
    /// Whose setting it is if a sentence does not say it.
    whose: SwitchScope,
    /// Whether a sentence says that the setting of that host alone is changed.
    is_only: bool,
    /// The only host that polls, by commands and screens.
    alone: Option<SwitchScope>,
    /// The numbers that a variable may have, so that `1 on oak` sets it.
    values: Rc<BTreeSet<u32>>,
    /// Whether it says what `on` or `off` stands for.
    tells_states: bool,
    /// What was told last.
    last: Vec<Claim>,
    /// Whether the text names polling anywhere, and whether it has `i` for interrupts.
    knows_polling: bool,
    knows_letters: bool,
    /// The hosts that commands turn to polling anywhere.
    turned: Rc<BTreeSet<SwitchScope>>,
    /// The hosts that the last sentence says to be as they came.
    pub kept: Vec<SwitchScope>,
    /// The only host of the last sentence that names one.
    subject: Option<SwitchScope>,
    /// The hosts and ends that polled, by themselves or with all.
    polled: BTreeSet<SwitchScope>,
    /// The other end, if a label tells of one end alone that it polls: the other one, too, or no longer?
    pub left_open: Option<SwitchScope>,
    /// Whether the last sentence, and it or the one before, named polling or interrupts.
    pub is_topic: [bool; 2],
    /// Whether the last sentence tells a change, and whether it says that all is as before.
    pub changes: bool,
    pub keeps: bool,
}

/// Whether claims of one scope contradict each other: of columns whose hosts are not known.
pub fn is_torn(claims: &[Claim]) -> bool {
    let is_other = |one: &Claim, other: &Claim| one.0 == other.0 && one.1 != other.1;
    let is_torn = |one: &Claim| claims.iter().any(|it| is_other(one, it));
    claims.iter().any(is_torn)
}

/// Whether a clause says no more than that a host stays as it is: `and left oak alone`, `oak as it was`.
fn is_left_alone(clause: &str) -> bool {
    let has = |word: &str| clause.contains(word);
    let left = clause.starts_with(" and ") && (has(" left ") || has(" leave "));
    let ends = [
        " is not changed ",
        " was not changed ",
        " as it was ",
        " as before ",
        " as i said ",
        " as they were ",
        " unchanged ",
        " untouched ",
    ];
    let is_short = clause.split_whitespace().count() <= ADDED_MAX;
    let is_alone = is_short && clause.ends_with(" left alone ");
    is_alone
        || left && has(" alone ")
        || (left || is_short) && ends.iter().any(|it| clause.ends_with(it))
}

/// Whether a clause says that a host is as it came, in other words: `I changed nothing on oak`, `elm is still stock`.
fn stays_stock(clause: &str) -> bool {
    const NOTHING: &str = "nothing not never no";
    const CHANGED: &str = "changed change touch touched special";
    const STAYS: &str = "stays stay stayed remains is was still always runs";
    const STOCK: &str = "stock default defaults";
    let words: Vec<&str> = clause.split_whitespace().collect();
    let at = |list: &str| words.iter().position(|it| is_in(it, list));
    let is_unchanged = at(NOTHING)
        .zip(at(CHANGED))
        .is_some_and(|(no, it)| no.abs_diff(it) <= 3);
    let is_stock = at(STAYS)
        .zip(at(STOCK))
        .is_some_and(|(stays, stock)| stays < stock);
    // `stays what it is`
    let is_as_was = at(STAYS).is_some() && matches!(words[..], [.., "it", "was" | "is"]);
    is_unchanged && !clause.contains(" else ")
        || is_stock
        || is_as_was
        || words.last() == Some(&"stays")
}

/// Whether a clause is of all hosts that those before do not name.
fn is_of_others(clause: &str) -> bool {
    const OTHERS: [&str; 5] = [
        " other two ",
        " the others ",
        " the rest ",
        " all others ",
        " two others ",
    ];
    OTHERS.iter().any(|it| clause.contains(it))
}

/// Whether a sentence is of several tests, each with a setting of its own.
pub fn is_series(sentence: &Sentence) -> bool {
    let begins = sentence.has_any("first with|first without|first still");
    // `First interrupts on both, then polling on both:`
    let is_first = sentence.words.starts_with(" first ") && sentence.introduces;
    let begins = begins
        || is_first && sentence.names_polling() && sentence.has("interrupts")
        || sentence.has("first") && sentence.has_any("then with polling|then with busy polling");
    // `I wanted to see what happens with and without it`
    let asks = sentence.has("wanted want wondered wonder compare curious");
    sentence.has_any(SERIES) && !asks
        || sentence.runs() > 1 && sentence.has("then")
        || begins && sentence.has("then second next afterwards")
}

/// Whether a clause says which way a test runs: `oak to elm`.
fn is_way(clause: &str, scopes: &[SwitchScope]) -> bool {
    let words: Vec<&str> = clause.split_whitespace().collect();
    let bare = words.strip_prefix(&["from"]).unwrap_or(&words);
    scopes.len() == 2 && matches!(bare, [_, "to", _])
}

/// A sentence that is being read.
struct Reading<'s> {
    sentence: &'s Sentence,
    claims: Vec<Claim>,
    /// Settings whose hosts are not said, and hosts whose setting is not.
    bare: Vec<bool>,
    waiting: Vec<SwitchScope>,
    /// The hosts of the clause before, if it has only these, and if it stands behind a setting.
    label: Vec<SwitchScope>,
    listed: Vec<SwitchScope>,
    /// How many claims the clause before added with no more than hosts.
    added: usize,
    /// The hosts of all clauses before.
    subject: BTreeSet<SwitchScope>,
    /// The hosts that it names, and those that stay as they are.
    named: Vec<SwitchScope>,
    kept: Vec<SwitchScope>,
    /// Whether it begins with a title, `polling:`, of which the states follow.
    is_titled: bool,
    /// Whether the clause before has a claim.
    is_near: bool,
    is_topic: bool,
    changes: bool,
    /// Whether all words of its settings are those of a label.
    is_label: bool,
    /// Whether those of the bare ones are, so that no unknown word is a host.
    is_known: bool,
    /// Whether it is of a test before.
    is_past: bool,
    /// Whether it stands right before one.
    leads: bool,
    /// Whether only the hosts are meant whose setting another clause tells: `busy polling, at the receiver only`.
    is_only: bool,
}

impl<'s> Reading<'s> {
    /// Nothing is read yet of a sentence that names these hosts.
    fn of(sentence: &'s Sentence, named: Vec<SwitchScope>) -> Self {
        Reading {
            sentence,
            claims: Vec::new(),
            bare: Vec::new(),
            waiting: Vec::new(),
            label: Vec::new(),
            listed: Vec::new(),
            added: 0,
            subject: BTreeSet::new(),
            named,
            kept: Vec::new(),
            is_titled: false,
            is_near: false,
            is_topic: false,
            changes: false,
            is_label: true,
            is_known: true,
            is_past: false,
            leads: false,
            is_only: false,
        }
    }

    /// Forgets what was told before `now with polling`: `that was with interrupts, now with polling`.
    fn turns_over(&mut self, clause: &str, polls: Option<bool>) {
        if clause.starts_with(" now ") && polls.is_some() {
            self.bare.clear();
            self.claims.clear();
        }
    }

    /// Whether a clause shows how that was set, or where, which the one before tells.
    fn repeats(&self, clause: &str, polls: bool) -> bool {
        let mut shows = [" there ", " ifconfig ", " sysctl "].iter();
        shows.any(|it| clause.contains(it)) && self.claims.last().is_some_and(|it| it.1 == polls)
    }

    /// Takes a clause that names hosts and no setting.
    fn add(
        &mut self,
        clause: &str,
        (scopes, only): (Vec<SwitchScope>, bool),
        was_near: bool,
        is_topic: bool,
    ) {
        self.is_only |= only && !scopes.is_empty();
        let size = clause.split_whitespace().count();
        let has = |words: [&str; 3]| words.iter().any(|it| clause.contains(it));
        let begins = |words: [&str; 3]| words.iter().any(|it| clause.starts_with(it));
        let is_added = was_near && clause.starts_with(" and ") && size <= ADDED_MAX;
        let mut bare = self.bare.iter();
        let first = bare.next();
        let is_bare = self.claims.is_empty() && first.is_some() && bare.all(|it| Some(it) == first);
        let polls = match () {
            // `and on egret`
            () if is_added && !has([" from ", " to ", " with "]) => {
                self.claims.last().map(|it| it.1)
            }
            // `polling on (on oak, as always)`
            () if size == 2 && is_bare && begins([" on ", " at ", " in "]) => {
                self.bare.drain(..).next_back()
            }
            () => None,
        };
        if let Some(polls) = polls {
            let listed = std::mem::take(&mut self.listed).into_iter();
            let before = self.claims.len();
            let all = listed.chain(scopes);
            self.claims.extend(all.map(|it| (it, polls)));
            self.added = self.claims.len() - before;
            self.is_near = true;
        } else if was_near && size == scopes.len() {
            // `0 on lom, ternen and alke`
            self.listed.clone_from(&scopes);
            self.label.clone_from(&scopes);
            self.waiting.extend(scopes);
            self.is_near = true;
        } else if size <= ADDED_MAX + 1 || is_topic {
            if size <= scopes.len() + 1 {
                self.label.clone_from(&scopes);
            }
            self.waiting.extend(scopes);
        }
    }
}

impl<'a> Reader<'a> {
    /// `tested` is the host whose setting it is if a sentence does not say it, `alone` the only one that commands and
    /// screens show to poll.
    pub fn of(hosts: &'a HostNames, tested: Option<&str>, alone: Option<&str>) -> Self {
        let host = |it| SwitchScope::Host(String::from(it));
        Reader {
            hosts,
            whose: tested.map_or(SwitchScope::All, host),
            is_only: false,
            alone: alone.map(host),
            values: Rc::default(),
            tells_states: false,
            last: Vec::new(),
            knows_polling: false,
            knows_letters: false,
            turned: Rc::default(),
            kept: Vec::new(),
            subject: None,
            polled: BTreeSet::new(),
            left_open: None,
            is_topic: [false; 2],
            changes: false,
            keeps: false,
        }
    }

    /// Takes the hosts that commands turn to polling anywhere: `left as it was` does not say that they use interrupts. In
    /// a text that does not name polling (`knows_polling`), `oak off` is of something else; in one that has `i` for
    /// interrupts (`knows_letters`), `i/p` are states; in one that sets a variable to 50 (`values`), `oak at 50` is of that.
    pub fn turn(
        mut self,
        hosts: impl Iterator<Item = SwitchScope>,
        (knows_polling, knows_letters, values): (bool, bool, BTreeSet<u32>),
    ) -> Self {
        self.turned = Rc::new(hosts.collect());
        self.values = Rc::new(values);
        self.knows_polling = knows_polling;
        self.knows_letters = knows_letters;
        self
    }

    /// The claims of a sentence, or `None` when it names polling or interrupts and cannot be read. `is_single` when it
    /// tells of a test before, and so of no change; `leads` when it stands right before one.
    pub fn read(
        &mut self,
        sentence: &Sentence,
        is_single: bool,
        leads: bool,
    ) -> Option<Vec<Claim>> {
        // `1) Both on.`
        let is_numbered = sentence.is_numbered() || sentence.names_run();
        let sentence = &sentence.without_number();
        self.tells_states |= sentence.defines_states();
        self.kept.clear();
        if let Some(said) = self.by_notation(sentence, is_numbered) {
            return said;
        }
        let mut reading = Reading::of(sentence, self.scopes(&sentence.words, "").0);
        (reading.is_past, reading.leads) = (is_single, leads);
        for (clause, next) in sentence.clauses.iter().zip(1..) {
            // `Interrupts: 9400 per second`
            let counts = sentence.clauses.get(next).is_some_and(|it| {
                setting(clause) == Some(false)
                    && !clause.trim_start_matches(" and").trim().contains(' ')
                    && it[1..].starts_with(|it: char| it.is_ascii_digit())
            });
            if !counts {
                self.clause(&mut reading, clause);
            }
        }
        let is_plain = sentence.kind == SentenceKind::Plain && !sentence.introduces;
        let is_short = !self.values.is_empty() || sentence.words.len() <= SHORT_MAX;
        let is_label = reading.is_label && is_short;
        let is_lasting = sentence.lasts_always();
        let is_told = leads && !reading.claims.is_empty();
        let is_said =
            is_single || !is_plain || reading.changes || is_label || is_lasting || is_told;
        // `no polling there, ever`
        let is_never = !is_said && sentence.has_any(LASTING);
        self.changes = reading.changes;
        let is_bare = reading.waiting.is_empty();
        let is_bare = is_bare && reading.claims.is_empty();
        self.keeps = sentence.has_any(UNCHANGED);
        let keeps = self.keeps(&reading) || self.keeps;
        self.take_subject(&mut reading);
        let (is_topic, mut claims) = (reading.is_topic, self.claims(reading, is_single));
        let is_series = is_series(sentence);
        if is_never {
            claims.retain(|it| !it.1 && it.0 != SwitchScope::All);
        }
        if !is_said && !is_never || is_series || sentence.words.len() > CHANGE_MAX {
            claims.clear();
        }
        self.is_topic = [is_topic, is_topic || self.is_topic[0]];
        self.left_open = self.open_end(sentence, &claims, is_bare);
        if let Some(varied) = self.varied(sentence).filter(|_| claims.is_empty()) {
            (self.whose, self.is_only) = (varied, true);
        }
        let is_torn = is_torn(&claims);
        let polled = claims
            .iter()
            .filter(|it| it.1 && !is_torn)
            .map(|it| it.0.clone());
        self.polled.extend(polled);
        if !claims.is_empty() && !is_torn {
            self.last.clone_from(&claims);
        }
        let is_of_one = self.hosts.named_in(&sentence.words).len() == 1;
        let cannot = claims.is_empty() && is_of_one && sentence.has_any(CANNOT);
        let cannot = cannot || sentence.has_any(ALL_UNTOUCHED);
        if (!claims.is_empty() || !is_topic || cannot) && !sentence.asks {
            self.add_untouched(sentence, &mut claims);
        }
        // A reboot turns nothing on.
        let is_off = self.last == [(SwitchScope::All, false)];
        let are_alike = matches!(self.last[..], [(SwitchScope::All, _)]);
        let moves = sentence.moves(are_alike) && !(is_off && sentence.has("rebooted"));
        let is_open = claims.is_empty() && !keeps && (is_topic || moves);
        (!is_open).then_some(claims)
    }

    /// Who polls by a heading or the label of a test that says no more: `4) oak only`, `receiver only`, `neither`.
    fn who_polls(&self, sentence: &Sentence, is_numbered: bool) -> Option<Vec<Claim>> {
        let bare = self.without_hosts(&sentence.words);
        let words: Vec<&str> = bare.split_whitespace().collect();
        let is_end = |it: &str| it == "@" || is_in(it, SENDERS) || is_in(it, RECEIVERS);
        let is_who = match words[..] {
            [end, "only"] | ["only", end] => is_end(end),
            [one] => is_in(one, "neither nobody") || is_numbered && one == "both",
            _ => false,
        };
        let is_heading = sentence.kind == SentenceKind::Heading && !sentence.introduces;
        let is_it = is_who && (is_heading || is_numbered) && self.knows_polling;
        is_it.then(|| self.only(&sentence.words))
    }

    /// What a sentence says that tells what words or marks mean, or that uses such marks as `on/off`.
    fn by_notation(
        &mut self,
        sentence: &Sentence,
        is_numbered: bool,
    ) -> Option<Option<Vec<Claim>>> {
        if let Some(who) = self.who_polls(sentence, is_numbered) {
            self.last.clone_from(&who);
            return Some(Some(who));
        }
        if sentence.defines() || sentence.concludes() || sentence.is_of_that() {
            return Some(Some(Vec::new()));
        }
        let is_all_off = sentence.has_any(ALL_OFF) || sentence.is_default();
        let is_all_off = self.knows_polling && !sentence.asks && is_all_off;
        if is_all_off {
            self.last = vec![(SwitchScope::All, false)];
            return Some(Some(self.last.clone()));
        }
        let modes = sentence.modes?;
        let Modes { polls, is_all, .. } = modes;
        let claims = match polls {
            // `P / P` may be anything, and is not what was set before.
            _ if modes.are_letters && !self.knows_letters => None,
            [one, other] if one == other => Some(vec![(SwitchScope::All, one)]),
            // The sender comes first.
            _ if is_all => Some(
                Side::ALL
                    .map(SwitchScope::End)
                    .into_iter()
                    .zip(polls)
                    .collect(),
            ),
            _ => None,
        };
        if let Some(claims) = &claims {
            self.last.clone_from(claims);
        }
        Some(claims)
    }

    /// Keeps the only host that a sentence names; `it` in the next one is that.
    fn take_subject(&mut self, reading: &mut Reading) {
        let sentence = reading.sentence;
        let is_of_it = ["its", "it"].iter().any(|it| sentence.find(it) == Some(0));
        match <[SwitchScope; 1]>::try_from(std::mem::take(&mut reading.named)) {
            Ok([one]) => self.subject = Some(one),
            Err(named) if !named.is_empty() => self.subject = None,
            // `It never polls`
            Err(_) if is_of_it && reading.claims.is_empty() && !reading.bare.is_empty() => {
                reading.waiting.extend(self.subject.clone());
            }
            Err(_) => {}
        }
    }

    /// The other end, if it is not said whether it polls, too. `is_bare` if the sentence names no host.
    fn open_end(
        &self,
        sentence: &Sentence,
        claims: &[Claim],
        is_bare: bool,
    ) -> Option<SwitchScope> {
        let is_change =
            sentence.switches() || sentence.has("too also as then changed keeps kept still stays");
        match claims {
            // Whether the other end polls, too, is not said.
            [(SwitchScope::Host(name), true)] if self.hosts.is_between(name) => None,
            [(scope, true)] if is_bare && Some(scope) == self.alone.as_ref() => {
                Some(SwitchScope::All)
            }
            // `oak without:`, and then `oak with:`
            [(scope, true)] if self.last == [(scope.clone(), false)] => None,
            [(scope, true)] if !is_change => self
                .other(scope)
                .filter(|it| !self.is_kept(sentence, it))
                .filter(|it| self.polled.contains(it) || self.polled.contains(&SwitchScope::All)),
            _ => None,
        }
    }

    /// Whether a sentence says that a host stays as it is.
    fn is_kept(&self, sentence: &Sentence, scope: &SwitchScope) -> bool {
        let is_end = matches!(scope, SwitchScope::End(_));
        let mut kept = sentence.clauses.iter().filter(|it| is_left_alone(it));
        kept.any(|it| {
            let named = self.scopes(it, "").0;
            named.contains(scope) || is_end && !named.is_empty()
        })
    }

    /// Adds what a sentence says of hosts that are as they came.
    fn add_untouched(&mut self, sentence: &Sentence, claims: &mut Vec<Claim>) {
        let mut others = self.untouched(sentence);
        if !claims.is_empty() {
            others.retain(|it| it.0 != SwitchScope::All);
            others.retain(|it| claims.iter().all(|one| one.0 != it.0));
        }
        self.kept = others.iter().map(|it| it.0.clone()).collect();
        claims.append(&mut others);
    }

    /// Hosts that are as they came receive by interrupts: those that a clause names, or all while none was said to poll.
    fn untouched(&self, sentence: &Sentence) -> Vec<Claim> {
        let has = |clause: &str, phrases: &str| {
            phrases.split('|').any(|it| phrase_at(clause, it).is_some())
        };
        // `I never changed a thing about oak's driver, it takes its interrupts as they come`
        let subject = self.scopes(&sentence.words, "").0;
        let of = |(at, clause): (usize, &String)| {
            let mut scopes = self.scopes(clause, &sentence.words).0;
            if scopes.is_empty() && subject.len() == 1 && clause.starts_with(" it ") {
                scopes.clone_from(&subject);
            }
            // `oak and elm always run with the defaults`
            let label = sentence.clauses[..at].last();
            let label = label.filter(|_| clause.starts_with(" and ") && !scopes.is_empty());
            let label = label.filter(|it| it.split_whitespace().count() == 1);
            scopes.extend(label.into_iter().flat_map(|it| self.scopes(it, "").0));
            // `oak with re0, and elm, Debian 12, nothing tuned`
            let mut before = sentence.clauses[..at].iter().rev();
            let nearest = before.find_map(|it| self.hosts.named_in(it).pop());
            let is_kept = is_left_alone(clause) || stays_stock(clause);
            let is_untuned = has(clause, UNTUNED) || is_kept && clause.starts_with(" and ");
            if let Some(name) = nearest.filter(|_| scopes.is_empty())
                && (is_untuned || has(clause, ALL_UNTOUCHED))
            {
                scopes.push(SwitchScope::Host(String::from(name)));
            }
            let is_of_all = scopes.is_empty() || scopes.contains(&SwitchScope::All);
            match is_of_all {
                false if is_kept => scopes,
                true if is_kept && !scopes.is_empty() && clause.contains(" stock ") => {
                    vec![SwitchScope::All]
                }
                true if has(clause, ALL_UNTOUCHED) => vec![SwitchScope::All],
                false if is_untuned || has(clause, UNTOUCHED) || has(clause, ALL_UNTOUCHED) => {
                    scopes
                }
                _ => Vec::new(),
            }
        };
        // `oak, GENERIC, which cannot poll`
        let phrase = CANNOT.split('|').find_map(|it| sentence.find(it));
        let cannot = phrase.and_then(|at| {
            let before = &sentence.words[..=at];
            let named = self.hosts.named_in(before);
            // `fed from the desktop that cannot poll`
            let of = before.strip_suffix(" that ");
            let own = of.and_then(|it| it.rsplit(' ').next());
            let is_own = own.is_none_or(|it| !self.hosts.named_in(&format!(" {it} ")).is_empty());
            is_own.then_some(())?;
            let last = named
                .iter()
                .max_by_key(|it| before.rfind(&it.to_ascii_lowercase()))?;
            Some(SwitchScope::Host(String::from(*last)))
        });
        let scopes = sentence.clauses.iter().enumerate();
        let scopes: BTreeSet<SwitchScope> = scopes.flat_map(of).chain(cannot.clone()).collect();
        let is_open = |it: &SwitchScope| match it {
            SwitchScope::All => self.polled.is_empty(),
            other => {
                // `As it came` is not of later commands.
                let is_new = sentence.has_any(ALL_UNTOUCHED)
                    || sentence.has_any("is stock|is plain|is default");
                let is_polled = |it: &SwitchScope| {
                    self.polled.contains(it) || !is_new && self.turned.contains(it)
                };
                // `Both poll` is not of one that cannot.
                let is_of_all = is_polled(&SwitchScope::All) && Some(other) != cannot.as_ref();
                !is_polled(other) && !is_of_all
            }
        };
        let scopes = scopes.into_iter().filter(is_open);
        scopes.map(|it| (it, false)).collect()
    }

    /// The hosts or ends that a clause names, and whether no others are meant. In a sentence that names a host, what
    /// hosts are made of stands for none.
    pub fn scopes(&self, clause: &str, sentence: &str) -> (Vec<SwitchScope>, bool) {
        let is_named = !self.hosts.named_in(sentence).is_empty();
        let named = match is_named {
            true => self.hosts.named_in(clause),
            false => self.hosts.meant_in(clause),
        };
        let parts = parts(clause);
        let ends = [
            "ends",
            "the ends",
            "both ends",
            "the two ends",
            "end hosts",
            "the end hosts",
        ];
        let mut ends = ends.iter().map(|it| format!(" {it} "));
        let scopes = match (parts.sender, parts.receiver) {
            // Of no box in between.
            _ if ends.any(|it| clause.starts_with(&it)) => Side::ALL.map(SwitchScope::End).to_vec(),
            _ if parts.all => vec![SwitchScope::All],
            _ if !named.is_empty() => {
                let of = |name: &&str| SwitchScope::Host(String::from(*name));
                named.iter().map(of).collect()
            }
            (true, false) => vec![SwitchScope::End(Side::Sender)],
            (false, true) => vec![SwitchScope::End(Side::Receiver)],
            (true, true) => vec![SwitchScope::All],
            (false, false) => Vec::new(),
        };
        (scopes, parts.only && !parts.all)
    }

    /// What a cell says that names hosts in a column of what polls: `db3 only`, `neither`.
    pub fn only(&self, cell: &str) -> Vec<Claim> {
        let Some(sentence) = Sentence::of(cell, SentenceMark::Row, false) else {
            return Vec::new();
        };
        let is_none = sentence.has("neither none nobody no nowhere");
        let (scopes, _) = self.scopes(&sentence.words, "");
        match &scopes[..] {
            _ if is_none => vec![(SwitchScope::All, false)],
            [one] if *one != SwitchScope::All => {
                let other = self.other(one).map(|it| (it, false));
                [(one.clone(), true)].into_iter().chain(other).collect()
            }
            _ => scopes.into_iter().map(|it| (it, true)).collect(),
        }
    }

    /// Whether a cell is the name of a host.
    pub fn is_host(&self, cell: &str) -> bool {
        let named = self.hosts.named_in(&words_of(cell).0);
        named.iter().any(|it| it.eq_ignore_ascii_case(cell))
    }

    /// The same; of several hosts only those that something is on: `since tater is weak I turned it off on biscuit`.
    fn scopes_at(&self, clause: &str, sentence: &str) -> (Vec<SwitchScope>, bool) {
        let (mut scopes, only) = self.scopes(clause, sentence);
        let is_at = |it: &SwitchScope| match it {
            SwitchScope::Host(name) => {
                clause.contains(&format!(" on {} ", name.to_ascii_lowercase()))
            }
            _ => false,
        };
        let lists = [" and ", " or "].iter().any(|it| clause.contains(it));
        if scopes.len() > 1 && !lists && scopes.iter().any(is_at) {
            scopes.retain(is_at);
        }
        (scopes, only)
    }

    fn clause(&mut self, reading: &mut Reading, clause: &str) {
        let mode = ClauseMode::of(clause, reading.is_topic);
        let (scopes, only) = self.scopes_at(clause, &reading.sentence.words);
        reading.is_topic |= mode.is_topic;
        reading.changes |= mode.changes;
        // `in my second run of yesterday`
        if mode.is_unreal && !(reading.is_past && clause.contains(" yesterday ")) {
            return;
        }
        reading.turns_over(clause, mode.polls);
        let is_threads = clause.contains(" threaded ") && !mode.is_named;
        let is_kept = is_left_alone(clause);
        if is_kept || is_threads || is_way(clause, &scopes) {
            reading.kept.extend(scopes.into_iter().filter(|_| is_kept));
            return;
        }
        let was_near = std::mem::take(&mut reading.is_near);
        let added = std::mem::take(&mut reading.added);
        let label = std::mem::take(&mut reading.label);
        let is_it = clause.trim_start_matches(" i e").starts_with(" it ");
        let is_pronoun = is_it && mode.is_named || clause.contains(" there ");
        let polls = mode.polls.or_else(|| self.short(reading, clause, &scopes));
        let polls = polls.or_else(|| self.with_it(reading.sentence, clause));
        reading.is_label &=
            polls.is_none() || Sentence::is_label(clause, &self.hosts.named_in(clause));
        reading.subject.extend(scopes.iter().cloned());
        match polls {
            // `server: polling, client: interrupts`
            Some(polls) if scopes.is_empty() && !label.is_empty() => {
                reading.waiting.retain(|it| !label.contains(it));
                reading
                    .claims
                    .extend(label.into_iter().map(|it| (it, polls)));
            }
            // `only gen polls, the other two on interrupts`
            Some(polls)
                if scopes.is_empty() && !reading.claims.is_empty() && is_of_others(clause) =>
            {
                reading.claims.insert(0, (SwitchScope::All, polls));
            }
            // `tyto back to interrupts (enable=0 there)`
            Some(polls) if scopes.is_empty() && reading.repeats(clause, polls) => {}
            // `juno stays as it is: it uses interrupts`
            Some(polls) if scopes.is_empty() && is_pronoun && reading.subject.len() == 1 => {
                let subject = reading.subject.iter().cloned();
                reading.claims.extend(subject.map(|it| (it, polls)));
            }
            // `oak as before, that is, still taking interrupts`
            Some(false) if scopes.is_empty() && !reading.kept.is_empty() => {
                let kept = reading.kept.drain(..);
                reading.claims.extend(kept.map(|it| (it, false)));
            }
            Some(polls) if scopes.is_empty() => self.bare(reading, clause, (polls, is_pronoun)),
            Some(polls) => {
                if clause.starts_with(" and ") {
                    // `gen polls, and oak and sink do not`
                    let added = reading.claims.iter_mut().rev().take(added);
                    added.for_each(|it| it.1 = polls);
                    // `client and server polling`
                    reading
                        .claims
                        .extend(label.into_iter().map(|it| (it, polls)));
                }
                self.claim(reading, (scopes, only), polls);
            }
            None => reading.add(clause, (scopes, only), was_near, mode.is_topic),
        }
    }

    /// Takes a setting of which the clause does not say whose it is. That may be among the words that are not known: `it
    /// does not know polling` is of a host that is not named here.
    fn bare(&self, reading: &mut Reading, clause: &str, (polls, is_pronoun): (bool, bool)) {
        // What stands before `with polling` tells no host.
        let with = [" with ", " without ", " no "].iter();
        let with = with.filter_map(|it| clause.find(it)).max();
        let is_known = Sentence::is_label(&clause[with.unwrap_or(0)..], &[]);
        let is_short = clause.split_whitespace().count() <= 3;
        reading.is_titled = polls && is_short && clause.trim_end().ends_with("polling");
        // A command is typed on one host.
        let is_command = polls && clause.contains(" ifconfig ") && self.polled.len() != 1;
        let is_known = is_known || reading.bare.contains(&polls);
        reading.is_known &= is_known && !is_command && (!is_pronoun || !reading.waiting.is_empty());
        reading.bare.push(polls);
    }

    /// Takes what a clause says of the hosts that it names, and of all others if it is of them `only`.
    fn claim(
        &mut self,
        reading: &mut Reading,
        (scopes, only): (Vec<SwitchScope>, bool),
        polls: bool,
    ) {
        for scope in scopes {
            if only && polls {
                self.polled.insert(scope.clone());
            }
            let other = self.other(&scope).or(Some(SwitchScope::All));
            let other = other.filter(|_| only);
            reading.claims.extend(other.map(|it| (it, !polls)));
            reading.claims.push((scope, polls));
        }
        reading.is_near = true;
    }

    /// What `first without it` says, below a sentence on polling.
    fn with_it(&self, sentence: &Sentence, clause: &str) -> Option<bool> {
        let is_first = sentence.clauses.first().is_some_and(|it| it == clause);
        let is_of_it = self.is_topic[1] && is_first && clause.split_whitespace().count() <= 4;
        let said = [(" without it ", false), (" with it ", true)];
        let said = said.iter().find(|it| clause.ends_with(it.0));
        said.filter(|_| is_of_it).map(|it| it.1)
    }

    /// A clause with `@` in place of hosts.
    fn without_hosts(&self, clause: &str) -> String {
        let mut bare = String::from(clause);
        for host in self.hosts.named_in(clause) {
            let small = host.to_ascii_lowercase().replace('-', " ");
            bare = bare.replace(&format!(" {small} "), " @ ");
        }
        bare
    }

    /// Whether a sentence tells states of hosts and nothing else, as `test B: oak off, elm on` does, and `TSO: oak off` not.
    fn is_of_states(&self, sentence: &Sentence) -> bool {
        let is_plain = |it: &str| {
            it.len() == 1 || is_in(it, "default defaults") || Sentence::is_label(it, &["@"])
        };
        sentence.clauses.iter().all(|it| {
            let bare = self.without_hosts(it);
            state_alone(&bare).is_some() || bare.split_whitespace().all(is_plain) || turns_round(it)
        })
    }

    /// What a clause that names neither says: `sink does not`, `but not on sink`, `sink too`, `switched it off`.
    fn short(&self, reading: &Reading, clause: &str, scopes: &[SwitchScope]) -> Option<bool> {
        let sentence = reading.sentence;
        let is_label = sentence.introduces || sentence.kind == SentenceKind::Heading;
        let bare = self.without_hosts(clause);
        let is_of_states = self.is_of_states(sentence);
        let is_number = |it: u8| it.is_ascii_digit();
        let leads =
            (reading.leads || sentence.parts().all) && !sentence.words.bytes().any(is_number);
        let is_bare = self.knows_polling
            && (is_of_states && (self.tells_states || is_label || leads)
                || self.tells_states && is_label);
        // `so now it's on at the two ends`
        let is_it = self.knows_polling
            && clause
                .split_whitespace()
                .take(4)
                .any(|it| is_in(it, "it its"));
        let is_topic = reading.is_topic || sentence.names_polling();
        let is_of_hosts = !scopes.is_empty() && (is_bare || is_topic || is_it);
        let state = state_alone(&bare);
        // `One stream, on:`, `5. On, on.`, where the text says what `on` means
        let is_run = is_label || reading.leads && sentence.clauses.iter().all(|it| it == clause);
        if self.tells_states && is_run && scopes.is_empty() && is_in(clause.trim(), "on off") {
            return Some(clause == " on ");
        }
        // `TSO: oak off`
        let is_other = is_label && !scopes.is_empty() && !is_of_hosts && state.is_some();
        let state = state.filter(|_| is_of_hosts);
        let mut words = clause.split_whitespace();
        let is_also =
            words.any(|it| is_in(it, "too likewise also")) || clause.contains(" as well ");
        let size = clause.split_whitespace().count();
        let is_added = size <= ADDED_MAX + 2;
        let begins = [" but not ", " not ", " and not "]
            .iter()
            .any(|it| clause.starts_with(it));
        let is_negated = clause.ends_with(" not ") || begins;
        // What was told last of other hosts.
        let others = self.last.iter().chain(&reading.claims);
        let mut others = others.filter(|it| it.0 != SwitchScope::All && !scopes.contains(&it.0));
        let last = others.next_back().filter(|_| !scopes.is_empty());
        // `polling on elm, the same on oak`
        let is_same = clause.starts_with(" the same on ") && !reading.claims.is_empty();
        let like = last.filter(|_| (is_also || is_same) && is_added || is_negated);
        let like = like.map(|it| it.1 != (is_negated && !(is_also && is_added)));
        let is_any = !scopes.is_empty() || reading.is_topic || is_label;
        // `oak at 50, elm at 0`
        let values = || {
            sentence
                .clauses
                .iter()
                .filter_map(|it| value_set(&self.without_hosts(it)))
        };
        let is_pair = |it: &u32| *it != 1 && values().any(|other| (other > 1) != (*it > 1));
        let is_known = |it: &u32| self.values.contains(it) || is_pair(it);
        let is_value = |it: &u32| is_known(it) && !sentence.counts_others();
        let value = value_set(&bare).filter(|it| !scopes.is_empty() && is_value(it));
        let value = value.map(|it| it > 0);
        state.or(like).or(value).or_else(|| {
            ClauseMode::elliptic(&bare, reading.is_topic, is_label).filter(|_| is_any && !is_other)
        })
    }

    /// The claims of a sentence that was read.
    fn claims(&self, mut reading: Reading, is_single: bool) -> Vec<Claim> {
        if reading.is_titled && !reading.claims.is_empty() {
            reading.bare.clear();
        }
        let Some(polls) = reading.bare.first().copied() else {
            return reading.claims;
        };
        if self.keeps(&reading) {
            let last = self.last.iter().filter(|it| it.1).cloned();
            let last: Vec<Claim> = last.collect();
            let alone = self.alone.iter().map(|it| (it.clone(), true));
            return if last.is_empty() {
                alone.collect()
            } else {
                last
            };
        }
        let said = reading.claims.iter().map(|it| it.1);
        let is_one = reading
            .bare
            .iter()
            .copied()
            .chain(said)
            .all(|it| it == polls);
        // `My desktop ryzen: no busy polling, plain interrupts for the whole evening`
        let lasts = reading.sentence.has_any(LASTING) || reading.sentence.lasts_always();
        let lasting = lasts && reading.subject.len() == 1;
        if is_one && reading.claims.is_empty() && lasting {
            return reading.subject.into_iter().map(|it| (it, polls)).collect();
        }
        // `polling on vr0, still none on elm`
        if let ([(scope, said)], [_]) = (&reading.claims[..], &reading.bare[..])
            && let Some(other) = self.other(scope).filter(|_| *said != polls)
            && reading.sentence.has("none there")
        {
            return vec![(scope.clone(), *said), (other, polls)];
        }
        let is_known = reading.is_known && (is_single || !Self::has_stranger(&reading));
        if !is_one || reading.claims.is_empty() && !is_known {
            return Vec::new();
        }
        if reading.claims.is_empty() {
            let is_none = reading.waiting.is_empty() || reading.waiting.len() > 2;
            if is_none || is_single {
                let whose = self.whose(polls);
                // Only that one is changed: the others stay as they came.
                if self.is_only && polls && whose == self.whose {
                    let others = self.other(&whose).unwrap_or(SwitchScope::All);
                    return vec![(others, false), (whose, true)];
                }
                reading.waiting = vec![whose];
            }
            let mut claims: Vec<Claim> = Vec::new();
            for scope in reading.waiting {
                let other = self.other(&scope).filter(|_| reading.is_only);
                claims.extend(other.map(|it| (it, !polls)));
                claims.push((scope, polls));
            }
            return claims;
        }
        reading.claims
    }

    /// Whether a sentence says that polling is still on, and not where: nothing changes.
    fn keeps(&self, reading: &Reading) -> bool {
        let is_told = reading.sentence.has_any("i had read|i have read|i read");
        let is_on = reading.claims.is_empty() && reading.bare == [true];
        let is_known = self.last.iter().any(|it| it.1) || self.alone.is_some();
        is_on
            && is_known
            && !is_told
            && reading.sentence.has("still")
            && !reading.sentence.parts().all
    }

    /// Whether a plain sentence begins with a clause whose words may name whose setting it is.
    fn has_stranger(reading: &Reading) -> bool {
        let sentence = reading.sentence;
        let is_plain = sentence.kind == SentenceKind::Plain && !sentence.introduces;
        let is_strange = |it: &String| {
            let has_subject = it.contains(" is ") || it.split_whitespace().count() > ADDED_MAX;
            has_subject && !Sentence::is_label(it, &[]) && !ClauseMode::of(it, false).is_topic
        };
        is_plain && reading.waiting.is_empty() && sentence.clauses.first().is_some_and(is_strange)
    }

    /// The only host whose setting a sentence says to be changed: `only on oak I play with polling`.
    fn varied(&self, sentence: &Sentence) -> Option<SwitchScope> {
        const VARIES: &str = "play with|played with|fiddle with|i change|i changed|i switch|i vary|is changed|is switched|was changed|\
            was switched|are changed|is varied";
        let is_topic = sentence.has("polling poll napi module knob ifconfig")
            || sentence.has_any("the setting|settings");
        let is_varied = sentence.has_any(VARIES) && is_topic;
        let host = <[SwitchScope; 1]>::try_from(self.scopes(&sentence.words, "").0).ok();
        let is_host = |it: &SwitchScope| matches!(it, SwitchScope::Host(_));
        host.map(|[one]| one)
            .filter(|it| is_varied && !sentence.asks && is_host(it))
    }

    /// Whose setting it is if a sentence does not say it: of the only host that polled by itself before, or of all.
    fn whose(&self, polls: bool) -> SwitchScope {
        let mut all = self.polled.iter();
        // No other one is said to poll.
        let is_other =
            |it: &SwitchScope| *it != SwitchScope::All && Some(it) != self.alone.as_ref();
        let alone = self.alone.clone().filter(|_| !all.clone().any(is_other));
        match (all.next(), all.next()) {
            _ if polls && alone.is_some() => alone.unwrap_or(SwitchScope::All),
            (Some(one), None) if polls => one.clone(),
            _ => self.whose.clone(),
        }
    }

    /// The other end or host of two.
    fn other(&self, scope: &SwitchScope) -> Option<SwitchScope> {
        match scope {
            SwitchScope::End(side) => Some(SwitchScope::End(side.other())),
            SwitchScope::Host(name) => {
                let other = self.hosts.other(name);
                other.map(|it| SwitchScope::Host(String::from(it)))
            }
            SwitchScope::All => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a sentence tells: whose, and `+` for polling or `-` for interrupts.
    fn told_by(text: &str) -> String {
        let mut hosts = HostNames::default();
        ["gen", "sink"].iter().for_each(|it| hosts.add(it));
        let knows = (true, true, BTreeSet::from([50, 60]));
        let mut reader = Reader::of(&hosts, None, None).turn(std::iter::empty(), knows);
        let mark = match text.strip_prefix("== ") {
            Some(_) => SentenceMark::Heading,
            None => SentenceMark::None,
        };
        let claims = reader.read(
            &Sentence::of(text, mark, false).unwrap(),
            false,
            !text.ends_with('?'),
        );
        let mut all: Vec<String> = claims
            .iter()
            .flatten()
            .map(|(scope, polls)| {
                let whose = match scope {
                    SwitchScope::All => "both",
                    SwitchScope::Host(name) => name,
                    SwitchScope::End(side) => side.name(),
                };
                format!("{whose}{}", if *polls { '+' } else { '-' })
            })
            .collect();
        all.sort();
        all.join(" ")
    }

    #[test]
    fn a_sentence_tells_whose_setting_it_is_and_which() {
        let cases = include_str!("claims.txt");
        let mut wrong = Vec::new();
        for line in cases
            .lines()
            .filter(|it| !it.is_empty() && !it.starts_with("# "))
        {
            let (text, expected) = line.rsplit_once('|').unwrap();
            let told = told_by(text.trim());
            if told != expected.trim() {
                wrong.push(format!("{text} | {told}, not {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
