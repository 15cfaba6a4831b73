//! Where sentences tell how hosts receive: from there on, or of a test before.
//!
//! A sentence that leads to a test, names polling or interrupts and cannot be read leaves the setting open from there
//! on, until the text is clear again; so does one whose writer does not know, and a heading that ends a section.

use std::collections::{BTreeSet, HashMap, HashSet};

use nicpoll_model::{ImportedTrial, Side, SourcePlace};

use crate::lines::clause::{ClauseMode, is_in};
use crate::lines::command::LINUX_POLLING;
use crate::lines::is_variable;
use crate::lines::prose::{Modes, RETRACTS, Sentence, SentenceKind, SentenceMark};
use crate::transcript::claims::{self, Claim, Reader, is_torn};
use crate::transcript::found::{
    self, Authors, Found, HostNames, PollingSwitch, Statement, SwitchScope, ToolSetting,
};
use crate::transcript::table::Cases;

/// The first headings of a text are its title.
const TITLE_LINES: usize = 3;
/// The last sentences before a test lead to it.
const LEAD: usize = 2;
/// Words of a writer who is sorry for what he said or did, and not for what is missing.
const ERRORS: &str =
    "not wrong wrongly forgot mistake never still actually mistyped typo was were wasn weren";
/// Most tests that a sentence takes back.
const RETRACTED_MAX: usize = 16;

/// Most sentences and switches above that are looked at for a test with a number.
const ABOVE_MAX: usize = 512;

/// Later tests are not numbered in sentences.
const NUMBER_MAX: usize = 64;

/// A switch of one trial alone, with the trial's place.
pub type SingleSwitch = (SourcePlace, PollingSwitch);

/// What sentences tell from their place on, what they tell of single trials, and what rows of results tell of theirs.
pub fn told(
    found: &Found,
    statements: &[Statement],
    trials: &[ImportedTrial],
) -> (Vec<PollingSwitch>, Vec<SingleSwitch>, Vec<SingleSwitch>) {
    // What a command says that sets a variable is no screen.
    let readings = found.readings.iter().filter(|it| !is_variable(&it.name));
    let screens = found.cpu.iter().map(|it| it.states.place);
    let mut screens: Vec<SourcePlace> = screens.chain(readings.map(|it| it.place)).collect();
    screens.sort();
    // A box in between is the one under test if commands set no other.
    let mut set = found.switches.iter().filter_map(|it| match &it.scope {
        SwitchScope::Host(host) => Some(host),
        _ => None,
    });
    let first = set.next();
    let mut ends = trials
        .iter()
        .flat_map(|it| [&it.sender, &it.receiver])
        .flatten();
    let is_one = set.all(|it| Some(it) == first) && ends.all(|it| Some(it) != first);
    let tested = first.filter(|_| is_one).map(String::as_str);
    let mut polls = found.switches.iter().filter_map(|it| match &it.scope {
        SwitchScope::Host(host) if it.is_polling == Some(true) => Some(host.as_str()),
        _ => None,
    });
    let alone = polls.next();
    let alone = alone.filter(|one| polls.all(|it| it == *one));
    let commands = found.switches.iter().filter(|it| it.is_command);
    let mut teller = Teller {
        statements,
        hosts: &found.hosts,
        authors: &found.authors,
        trials,
        screens,
        switches: &found.switches,
        commands: commands.map(|it| it.place).collect(),
        cases: Cases::default(),
        in_runs: false,
        is_headed: false,
        turns: BTreeSet::new(),
        kept: 0,
        found: Vec::new(),
        single: Vec::new(),
    };
    let turned = found.switches.iter();
    let turned = turned.filter(|it| it.is_polling == Some(true) && it.scope != SwitchScope::All);
    let reader = Reader::of(&found.hosts, tested, alone);
    let knows_polling = statements.iter().any(|it| it.sentence.names_polling());
    let is_variable = |it: &ToolSetting| LINUX_POLLING.iter().any(|name| it.name.ends_with(name));
    let set = found.knobs.iter().filter(|it| is_variable(it));
    let set = set.flat_map(|it| it.value.parse().into_iter().chain([0, 1]));
    let said = statements.iter().flat_map(|it| it.sentence.values());
    // The file `threaded` is 0 or 1.
    let is_file = statements.iter().any(|it| it.sentence.has("threaded"));
    let said = said.chain([0, 1].into_iter().filter(|_| is_file));
    let has_letters = |it: &Modes| it.are_letters && it.polls.contains(&false);
    let mut modes = statements.iter().filter_map(|it| it.sentence.modes);
    let knows_letters = modes.any(|it| has_letters(&it));
    let knows = (knows_polling, knows_letters, set.chain(said).collect());
    teller.tell(&reader.turn(turned.map(|it| it.scope.clone()), knows));
    let tabled = teller.of_results();
    (teller.found, teller.single, tabled)
}

/// Reads the sentences of all texts.
struct Teller<'a> {
    statements: &'a [Statement],
    hosts: &'a HostNames,
    authors: &'a Authors,
    trials: &'a [ImportedTrial],
    /// The places of output that is of no trial.
    screens: Vec<SourcePlace>,
    /// What commands and screens tell.
    switches: &'a [PollingSwitch],
    /// The places of commands that turn polling on or off.
    commands: Vec<SourcePlace>,
    cases: Cases,
    /// Whether a label of a run says its setting.
    in_runs: bool,
    /// Whether a heading since the last test says a setting.
    is_headed: bool,
    /// The places of sentences on the way of tests that leave settings open.
    turns: BTreeSet<SourcePlace>,
    /// How many of those found say only that hosts are as they came.
    kept: usize,
    found: Vec<PollingSwitch>,
    single: Vec<SingleSwitch>,
}

/// Returns the test in the same file that a statement concludes or refers to. `since` is the last conclusion.
fn test_of<'t>(
    Statement {
        place, sentence, ..
    }: &Statement,
    before: &'t [ImportedTrial],
    since: &mut SourcePlace,
    is_of_case: bool,
) -> Option<&'t ImportedTrial> {
    let of = match sentence.kind == SentenceKind::Conclusion {
        true => {
            let from = std::mem::replace(since, *place);
            let last = before.last();
            last.filter(|it| it.place > from && (is_of_case || is_label(sentence)))
        }
        false => referred(sentence, before).map(|at| &before[at]),
    };
    of.filter(|it| it.place.file == place.file)
}

impl<'a> Teller<'a> {
    /// Reads all, each author with a copy of `fresh`.
    fn tell(&mut self, fresh: &Reader<'a>) {
        let mut readers: HashMap<&str, Reader> = HashMap::new();
        let mut heading: Option<&Statement> = None;
        // `3) Only oak polls.` heads a test, too.
        let mut numbered: Option<&Statement> = None;
        let mut since = SourcePlace::default();
        let mut seen: HashSet<&str> = HashSet::new();
        self.take_cases(fresh);
        for (index, statement) in self.statements.iter().enumerate() {
            let Statement {
                place, sentence, ..
            } = statement;
            if index > 0
                && !self
                    .authors
                    .is_one(&self.statements[index - 1].place, place)
            {
                heading = None;
            }
            let reader = readers.entry(self.authors.of(place));
            let reader = reader.or_insert_with(|| fresh.clone());
            if !sentence.cells.is_empty() && !self.heads_test(index) {
                continue;
            }
            let is_conclusion = sentence.kind == SentenceKind::Conclusion;
            let before = self.trials.partition_point(|it| it.place < *place);
            let is_of_case = is_conclusion && self.cases.named(sentence, || false).is_some();
            let of = test_of(statement, &self.trials[..before], &mut since, is_of_case);
            // A whole sentence that is there again is quoted.
            let is_quoted = sentence.is_whole && !seen.insert(&sentence.words);
            let is_of_none = is_conclusion && of.is_none() || is_quoted;
            if is_of_none || self.is_of_none(index, before) {
                continue;
            }
            let read = self.read(reader, index, before, of.is_some());
            let is_torn = read.as_ref().is_some_and(|it| is_torn(it));
            let read = read.filter(|_| !is_torn);
            let is_taken = of.is_none() && takes_back(sentence, &read, reader);
            self.retract(statement, before, is_taken);
            let near = of
                .or(self.trials.get(before))
                .or(self.trials[..before].last());
            match of {
                Some(of) => {
                    let claims = read.into_iter().flatten();
                    let single = claims.map(|it| (of.place, switch(it, statement, near)));
                    self.single.extend(single);
                }
                None if sentence.doubts() => self.doubt(index, before, near),
                None if claims::is_series(sentence) => {
                    self.take_series(statement, before, near, reader);
                }
                // A heading's setting ends with its section.
                None => {
                    self.bypass(statement, before, near);
                    let is_heading = sentence.kind == SentenceKind::Heading && !sentence.introduces;
                    let ends =
                        |it: &mut &Statement| is_heading && sentence.level <= it.sentence.level;
                    let is_over = heading.take_if(ends).is_some() && !sentence.turns_round();
                    let is_open = is_torn || is_over;
                    let last = before.checked_sub(1).map(|at| self.trials[at].place);
                    self.is_headed = heading
                        .or(numbered)
                        .is_some_and(|it| self.is_in_force(it, place, last));
                    if self.take_claims((index, before), near, (read, is_open), reader) {
                        heading = is_heading.then_some(statement);
                        numbered = sentence.is_numbered().then_some(statement);
                    }
                }
            }
        }
    }

    /// Whether a heading's setting is that of what stands at a place, since the last test: a screen may tell that it was
    /// not in force.
    fn is_in_force(
        &self,
        heading: &Statement,
        place: &SourcePlace,
        last: Option<SourcePlace>,
    ) -> bool {
        let shows = |it: &PollingSwitch| it.is_polling == Some(false) && !it.is_command;
        let at = |at| self.switches.partition_point(|it| it.place < at);
        let mut since = self.switches[at(heading.place)..at(*place)].iter();
        Some(heading.place) > last && !since.any(shows)
    }

    /// Takes what a statement claims from its place on, or leaves the setting open; returns whether it claims something.
    fn take_claims(
        &mut self,
        (index, before): (usize, usize),
        near: Option<&ImportedTrial>,
        (read, is_open): (Option<Vec<Claim>>, bool),
        reader: &mut Reader,
    ) -> bool {
        let statement = &self.statements[index];
        let switch = |claim: Claim| {
            // Who stays as he is was not changed.
            let is_kept = reader.kept.contains(&claim.0);
            let switch = switch(claim, statement, near);
            let is_command = switch.is_command && !is_kept;
            PollingSwitch {
                is_command,
                ..switch
            }
        };
        let is_open = is_open || self.hides(index, before, &read, reader);
        let is_open = is_open || self.is_unread_run(&statement.sentence, &read);
        let is_open = is_open && !self.explains(index, before);
        // `I touched no setting` closes what a sentence on the way of the test left open.
        let is_turn = |it: &SourcePlace| self.turns.contains(it);
        while reader.keeps
            && self
                .found
                .pop_if(|it| it.is_polling.is_none() && is_turn(&it.place))
                .is_some()
        {}
        let claims = read.unwrap_or_default();
        if claims.is_empty() && is_open {
            let is_over = statement.sentence.kind == SentenceKind::Heading;
            let is_turn = statement.sentence.turns_round() || is_over;
            self.turns.extend(is_turn.then_some(statement.place));
            self.found.push(open(switch((SwitchScope::All, false))));
        }
        let other = reader.left_open.iter().filter(|_| before > 0).cloned();
        self.found.extend(other.map(|it| open(switch((it, false)))));
        let is_kept = |it: &&Claim| reader.kept.contains(&it.0);
        self.kept += claims.iter().filter(is_kept).count();
        let is_told = !claims.is_empty();
        self.found.extend(claims.into_iter().map(switch));
        reader.left_open = None;
        is_told
    }

    /// Whether a sentence that names no host stands next to the commands for the test that follows: these say what is set.
    fn explains(&self, index: usize, before: usize) -> bool {
        const OTHERS: &str = "same too also both all other others likewise ditto again each either everywhere here there \
            still stays stay";
        const SHORT_MAX: usize = 4;
        let Statement {
            place, sentence, ..
        } = &self.statements[index];
        let last = before.checked_sub(1).map(|at| self.trials[at].place);
        let next = self.trials.get(before).map(|it| it.place);
        let first = self.commands.partition_point(|it| Some(*it) <= last);
        let is_set = self.commands.get(first).is_some_and(|it| {
            next.is_some_and(|next| *it < next) && self.authors.is_one(it, place)
        });
        let tells = |it: &String| {
            let words = it.split_whitespace();
            let is_short = words.clone().count() <= SHORT_MAX;
            (is_short || ClauseMode::of(it, true).is_topic)
                && words.clone().any(|it| is_in(it, OTHERS))
        };
        let is_plain = !sentence.clauses.iter().any(tells) && !sentence.moves(false);
        let is_plain = is_plain && !sentence.has_any(RETRACTS);
        if self.is_headed && !sentence.has_any(RETRACTS) {
            return true;
        }
        is_set && is_plain && self.hosts.meant_in(&sentence.words).is_empty()
    }

    /// Whether a case, `(a) polling off on both`, is the head of the test that follows.
    fn heads_test(&self, index: usize) -> bool {
        let Statement {
            place, sentence, ..
        } = &self.statements[index];
        let first = self.trials.partition_point(|it| it.place < *place);
        let next = self.trials.get(first).filter(|_| sentence.is_case());
        next.is_some_and(|trial| {
            let after = self.statements[index + 1..].iter();
            let mut between = after.take_while(|it| it.place < trial.place);
            between
                .all(|it| it.sentence.cells.is_empty() && it.sentence.kind != SentenceKind::Heading)
        })
    }

    /// Takes the cases of all tables: one at the end tells of runs above, too.
    fn take_cases(&mut self, fresh: &Reader<'a>) {
        for statement in self.statements {
            let cells = &statement.sentence.cells;
            if !cells.is_empty() {
                self.cases.row(cells, statement.place, &mut fresh.clone());
            }
        }
    }

    /// What rows of results tell of the tests whose rates they have.
    fn of_results(&self) -> Vec<SingleSwitch> {
        let of = |trial: &ImportedTrial| {
            let cell = self.cases.of_result(trial, self.trials)?;
            let at = self.statements.partition_point(|it| it.place < cell.place);
            let statement = self.statements.get(at)?;
            let switch = |it: &Claim| (trial.place, switch(it.clone(), statement, Some(trial)));
            Some(cell.claims.iter().map(switch).collect::<Vec<_>>())
        };
        self.trials.iter().filter_map(of).flatten().collect()
    }

    /// What a statement says itself, of a case, or of a test with a number.
    fn read(
        &self,
        reader: &mut Reader,
        index: usize,
        before: usize,
        is_single: bool,
    ) -> Option<Vec<Claim>> {
        let statement = &self.statements[index];
        let sentence = &statement.sentence;
        let read = reader.read(sentence, is_single, self.leads(index, before));
        let begins = sentence.words.split_whitespace().next().unwrap_or_default();
        let is_named = sentence.has("configuration config cfg")
            || is_in(begins, "run test case experiment no nr number");
        let leads = || is_named && self.leads(index, before);
        let of_case = self.cases.named(sentence, leads);
        let is_other = of_case.is_some() || sentence.same_as().is_some();
        // What a table tells of more hosts says more.
        let told = of_case.as_ref().map_or(0, Vec::len);
        let read = read.filter(|it| it.len() >= told && (!it.is_empty() || !is_other));
        read.or(of_case)
            .or_else(|| self.as_in_test(statement, before))
    }

    /// How the ends of the test received with whose number a statement says that the setting is the same.
    fn as_in_test(
        &self,
        Statement {
            place, sentence, ..
        }: &Statement,
        before: usize,
    ) -> Option<Vec<Claim>> {
        let number = sentence.same_as()?;
        let of = headed(self.statements, self.trials, place, number);
        let of = of.or_else(|| nth_test(&self.trials[..before], number.parse().ok()?));
        let trial = self.trials[..before].get(of?)?;
        let claim = |host: &String, is_box: bool| {
            let scope = SwitchScope::Host(host.clone());
            let last = |all: &[PollingSwitch]| {
                let until = all.partition_point(|it| it.place < trial.place);
                let mut near = all[..until].iter().rev().take(ABOVE_MAX);
                let is_all = |it: &PollingSwitch| !is_box && it.scope == SwitchScope::All;
                let of = near.find(|it| it.scope == scope || is_all(it))?;
                Some((of.place, of.is_polling))
            };
            let said = [last(self.switches), last(&self.found)];
            let polls = said.into_iter().flatten().max_by_key(|it| it.0)?.1?;
            Some((scope, polls))
        };
        let ends = Side::ALL.map(|side| found::end(trial, side));
        let ends = ends.into_iter().flatten().filter_map(|it| claim(it, false));
        let between = self.hosts.boxes().filter_map(|it| claim(it, true));
        let all: Vec<Claim> = ends.chain(between).collect();
        // `oak is left as in 3`
        let named = self.hosts.named_in(&sentence.words);
        let is_meant = |it: &Claim| match &it.0 {
            SwitchScope::Host(name) => named.is_empty() || named.contains(&name.as_str()),
            _ => true,
        };
        let all: Vec<Claim> = all.into_iter().filter(is_meant).collect();
        (!all.is_empty()).then_some(all)
    }

    /// Whether a statement says nothing of tests: a question, a title, or the label of a screen.
    fn is_of_none(&self, index: usize, before: usize) -> bool {
        let Statement {
            place, sentence, ..
        } = &self.statements[index];
        let next = self.trials.get(before).map(|it| it.place);
        let screen = self
            .screens
            .get(self.screens.partition_point(|it| it < place));
        let is_of_screen =
            sentence.introduces && screen.is_some_and(|it| next.is_none_or(|next| *it < next));
        let is_head = sentence.kind == SentenceKind::Heading || index == 0;
        // The name of a site or of its author may stand above it.
        let above = &self.statements[..index];
        let mut above = above.iter().rev().take(TITLE_LINES);
        let is_top =
            index < TITLE_LINES && above.all(|it| it.sentence.kind == SentenceKind::Heading);
        let is_first = is_head && before == 0 && is_top;
        let is_title =
            is_first || sentence.has("subject topic tags keywords categories filed synopsis");
        let is_conclusion = sentence.kind == SentenceKind::Conclusion;
        sentence.asks || is_of_screen || is_title && !sentence.introduces && !is_conclusion
    }

    /// Whether a statement may change a setting in words that are not understood.
    fn hides(
        &self,
        index: usize,
        before: usize,
        read: &Option<Vec<Claim>>,
        reader: &Reader,
    ) -> bool {
        let is_begun = before > 0 || self.found.len() > self.kept;
        let sentence = &self.statements[index].sentence;
        if sentence.is_of_interrupts() || sentence.compares() {
            return false;
        }
        let is_nothing = read.as_ref().is_none_or(Vec::is_empty);
        let sentence = &self.statements[index].sentence;
        let is_of_hosts = || !reader.scopes(&sentence.words, "").0.is_empty();
        if is_nothing && self.may_set(index, before) && is_of_hosts() {
            return true;
        }
        // `Both busy:`
        let is_short = sentence.words.split_whitespace().count() <= 2;
        if is_nothing && is_begun && sentence.introduces && is_short && sentence.parts().all {
            return true;
        }
        let hints = is_nothing && sentence.hints();
        let is_unread = read.is_none();
        // A command in it says what it sets.
        let place = &self.statements[index].place;
        let next = self.commands.partition_point(|it| it < place);
        let is_within = |it: &SourcePlace| it.file == place.file && it.start_byte < place.end_byte;
        let is_begun = is_begun && !self.commands.get(next).is_some_and(is_within);
        // `Then I ticked the box on both`
        let is_done = is_nothing && sentence.has("then now next") && sentence.parts().all;
        let is_open = reader.changes && (is_unread || is_done);
        is_begun && (is_open || (is_unread || hints) && self.leads(index, before))
    }

    /// Whether a statement on hosts leads to a test after another one, and may set something in words that are not
    /// understood, as no other does since that test.
    fn may_set(&self, index: usize, before: usize) -> bool {
        let last = before.checked_sub(1).map(|at| self.trials[at].place);
        let is_told = self.found.last().map(|it| it.place) > last;
        last.is_some()
            && !is_told
            && self.statements[index].sentence.may_set()
            && self.leads(index, before)
    }

    /// Whether a statement leads to a test, and no command says what it introduces.
    fn leads(&self, index: usize, before: usize) -> bool {
        let Statement {
            place, sentence, ..
        } = &self.statements[index];
        let next = self.trials.get(before).map(|it| it.place);
        let set = self.commands.partition_point(|it| it < place);
        let set = self.commands.get(set).zip(next.as_ref());
        let is_set =
            sentence.introduces && !sentence.moves(false) && set.is_some_and(|it| it.0 < it.1);
        let after = self.statements.get(index + LEAD);
        let is_last = after.is_none_or(|it| next.is_some_and(|next| it.place > next));
        let is_head = sentence.introduces || sentence.kind == SentenceKind::Heading;
        !is_set && (is_last || is_head)
    }

    /// Leaves the tests before open if a sentence takes back what is said of them, and not of which.
    fn retract(&mut self, statement: &Statement, before: usize, is_of_any: bool) {
        let is_of_any = is_of_any
            && !statement.sentence.retracts_screens()
            && !statement.sentence.has_any("correction below");
        if is_of_any && statement.sentence.has_any(RETRACTS) {
            // Of the tests since the last command.
            let last = self.commands.partition_point(|it| *it < statement.place);
            let since = last.checked_sub(1).map(|at| self.commands[at]);
            let file = self.trials[..before].iter().rev();
            let file = file.take_while(|it| it.place.file == statement.place.file);
            let is_own = |it: &ImportedTrial| self.authors.is_one(&it.place, &statement.place);
            let is_told =
                |it: &&ImportedTrial| since.is_none_or(|since| since < it.place) && is_own(it);
            let is_none = self.trials[..before].last().is_some_and(|it| !is_told(&it));
            let file = file.filter(|_| !is_none);
            let open = |it: &ImportedTrial| {
                let all = switch((SwitchScope::All, false), statement, Some(it));
                (it.place, open(all))
            };
            let file = file.filter(|it| is_own(it));
            // `I typed em1, the wrong interface. So oak was polling in test 5.`
            let named = self
                .next_named(statement)
                .and_then(|it| nth_test(self.trials, it));
            let named = named.map(|at| self.trials[at].test);
            let file = file.filter(|it| named.is_none_or(|named| it.test == named));
            self.single.extend(file.take(RETRACTED_MAX).map(open));
        }
    }

    /// The number of the test that a sentence or the next one names.
    fn next_named(&self, statement: &Statement) -> Option<usize> {
        let from = self
            .statements
            .partition_point(|it| it.place < statement.place);
        let mut near = self.statements[from..].iter().take(LEAD);
        near.find_map(|it| it.sentence.run_number().map(|it| it.0))
    }

    /// Takes the settings of two tests from `first without polling, then with it on oak`, or leaves open the tests that a
    /// sentence tells of, each with another setting.
    fn take_series(
        &mut self,
        statement: &Statement,
        before: usize,
        near: Option<&ImportedTrial>,
        reader: &Reader,
    ) {
        // A command in the sentence cuts it.
        let first = self
            .trials
            .get(before)
            .map_or(statement.place, |it| it.place);
        let all = open(switch((SwitchScope::All, false), statement, near));
        let next = self.next_trials(&first, before);
        let parts = statement.sentence.words.split_once(" then ");
        let parts = parts.filter(|_| !statement.sentence.has("still"));
        if let (Some((one, other)), [first, second]) = (parts, &next[..]) {
            let read = |text: &str| {
                let part = Sentence::of(text, SentenceMark::None, false)?;
                let claims = reader.clone().read(&part, true, true)?;
                (!claims.is_empty()).then_some(claims)
            };
            if let Some(both) = read(one).zip(read(other)) {
                for (place, claims) in [(first, both.0), (second, both.1)] {
                    let told = claims.into_iter().map(|it| switch(it, statement, near));
                    self.single.extend(told.map(|it| (*place, it)));
                }
                return;
            }
        }
        self.single
            .extend(next.into_iter().map(|it| (it, all.clone())));
    }

    /// Whether it is the label of a run, of which nothing is understood where others tell their settings.
    fn is_unread_run(&mut self, sentence: &Sentence, read: &Option<Vec<Claim>>) -> bool {
        // `Test E` says nothing.
        let is_run = sentence.begins_run() && sentence.words.split_whitespace().count() > 2;
        let is_empty = read.as_ref().is_none_or(Vec::is_empty);
        self.in_runs |= is_run && !is_empty;
        is_run && is_empty && self.in_runs && !sentence.turns_round()
    }

    /// The tests between a place and the next statement.
    fn next_trials(&self, place: &SourcePlace, before: usize) -> Vec<SourcePlace> {
        let until = self.statements.partition_point(|it| it.place <= *place);
        let until = self.statements.get(until).map(|it| it.place);
        let next = self.trials[before..].iter().map(|it| it.place);
        next.take(RETRACTED_MAX)
            .take_while(|it| until.is_none_or(|until| *it < until))
            .collect()
    }

    /// Leaves the boxes in between out of the next test if a sentence says that it runs without them.
    fn bypass(&mut self, statement: &Statement, before: usize, near: Option<&ImportedTrial>) {
        const DIRECT: &str = "back to back|crossed cable|crossover cable|direct cable|cable direct|cable directly|\
            directly to|straight to|straight into|right into|without the router|without the firewall";
        let sentence = &statement.sentence;
        let boxes: Vec<&str> = self.hosts.boxes().map(String::as_str).collect();
        let named = self.hosts.named_in(&sentence.words).into_iter();
        let mut without = named.filter(|it| {
            let phrase = format!("without {}", it.to_ascii_lowercase());
            sentence.has_any(&phrase)
        });
        let left_out = match without.next() {
            Some(one) => vec![one],
            None if sentence.has_any(DIRECT) => boxes,
            None => Vec::new(),
        };
        let next = self.trials.get(before);
        for (between, next) in left_out.into_iter().filter_map(|it| Some((it, next?))) {
            let scope = SwitchScope::Host(String::from(between));
            let none = open(switch((scope, false), statement, near));
            self.single.push((next.place, none));
        }
    }

    /// Whether what stands below a statement, or below the next, is a screen.
    fn leads_to_screen(&self, index: usize) -> bool {
        let below = |at: usize| {
            let place = &self.statements.get(at)?.place;
            let next = self.statements.get(at + 1);
            let screen = self
                .screens
                .get(self.screens.partition_point(|it| it < place))?;
            let is_next = next.is_none_or(|next| *screen < next.place);
            (screen.file == place.file && is_next).then_some(())
        };
        below(index).or(below(index + 1)).is_some()
    }

    /// Leaves open what the writer does not know: of the next test if the sentence introduces it, or from here on.
    fn doubt(&mut self, index: usize, before: usize, near: Option<&ImportedTrial>) {
        let statement = &self.statements[index];
        // `I can't tell which state this was in`, right after a test.
        let above = index.checked_sub(2).map(|at| self.statements[at].place);
        let last = self.trials[..before].last();
        // `CPU was not recorded in this run`
        let is_of_it = !statement.sentence.introduces
            && statement.sentence.has("this that it these those")
            && !statement.sentence.has("cpu mpstat vmstat")
            && !self.leads_to_screen(index);
        if let Some(last) = last.filter(|it| is_of_it && Some(it.place) > above) {
            let all = switch((SwitchScope::All, false), statement, near);
            self.single.push((last.place, open(all)));
        }
        let named = self.hosts.named_in(&statement.sentence.words);
        let mut scopes: Vec<SwitchScope> = named
            .iter()
            .map(|it| SwitchScope::Host(String::from(*it)))
            .collect();
        if scopes.is_empty() {
            scopes.push(SwitchScope::All);
        }
        let open = scopes
            .into_iter()
            .map(|it| open(switch((it, false), statement, near)));
        let next = self.next_trials(&statement.place, before);
        if next.is_empty() || !statement.sentence.introduces {
            self.found.extend(open);
        } else {
            // Of one host it is not known, and so not of the test.
            let all = self::open(switch((SwitchScope::All, false), statement, near));
            self.single.extend(next.iter().map(|it| (*it, all.clone())));
        }
    }
}

/// Whether a sentence may take back what the text says of settings. `No slot is free, sorry.` takes back nothing.
fn takes_back(sentence: &Sentence, read: &Option<Vec<Claim>>, reader: &Reader) -> bool {
    let is_slip = sentence.has_any("sorry|by mistake");
    let is_excuse = is_slip && !sentence.has(ERRORS);
    let is_topic = reader.is_topic[usize::from(!is_slip)];
    // `We left oak as it was by mistake, so both polled` tells of the next.
    let is_next = is_slip && read.as_ref().is_some_and(|it| !it.is_empty());
    (is_topic || sentence.has("sysctl ifconfig")) && !is_next && !is_excuse
}

/// The same, without what it says.
fn open(switch: PollingSwitch) -> PollingSwitch {
    PollingSwitch {
        is_polling: None,
        is_command: false,
        ..switch
    }
}

/// What a claim switches; ends and all hosts are those of the nearest trial.
fn switch(
    (scope, polls): Claim,
    Statement {
        place, sentence, ..
    }: &Statement,
    near: Option<&ImportedTrial>,
) -> PollingSwitch {
    let end = |side| near.and_then(|it| found::end(it, side).cloned());
    let both = Side::ALL.map(end);
    let scope = match scope {
        SwitchScope::End(side) => end(side).map_or(SwitchScope::End(side), SwitchScope::Host),
        scope => scope,
    };
    PollingSwitch {
        place: *place,
        ends: match both {
            [Some(one), Some(other)] if scope == SwitchScope::All => vec![one, other],
            _ => Vec::new(),
        },
        scope,
        is_polling: Some(polls),
        is_command: sentence.kind == SentenceKind::Plain
            && (sentence.switches() || polls && sentence.has("ifconfig"))
            && !sentence.has("still"),
        is_lasting: sentence.lasts(),
        is_told: true,
        is_heading: sentence.kind == SentenceKind::Heading && !sentence.parts().all,
        interface: None,
    }
}

/// Whether a conclusion is a label of what stands before, and no judgement.
fn is_label(sentence: &Sentence) -> bool {
    let is_topic = |it: &&String| ClauseMode::of(it, false).is_topic;
    let mut topics = sentence.clauses.iter().filter(is_topic).peekable();
    topics.peek().is_some() && topics.all(|it| Sentence::is_label(it, &[]))
}

/// The test before that a sentence in the past tense names: `the second run was with polling off`.
fn referred(sentence: &Sentence, trials: &[ImportedTrial]) -> Option<usize> {
    let is_past =
        sentence.has("was were had above polled") || sentence.has_any("please read|read my");
    let is_now = sentence.introduces || sentence.has("now");
    if is_now || sentence.kind == SentenceKind::Heading || !is_past {
        return None;
    }
    if sentence.has_any("last run|last test|previous run|previous test") {
        return trials.len().checked_sub(1);
    }
    // `My first post was with interrupts`, with a single test before.
    let is_post = sentence.has("post mail message numbers figures results");
    let first = trials.first().filter(|_| is_post);
    if first.is_some_and(|first| trials.iter().all(|it| it.test == first.test)) {
        return Some(0);
    }
    nth_test(trials, sentence.run_number()?.0)
}

/// The first trial below the last sentence above a place that begins with a number, or with a test of that number.
pub fn headed(
    statements: &[Statement],
    trials: &[ImportedTrial],
    place: &SourcePlace,
    number: &str,
) -> Option<usize> {
    let is_head = |it: &&Statement| {
        let mut words = it.sentence.words.split_whitespace();
        let is_one = |it: Option<&str>| it == Some(number);
        let first = words.next();
        let is_run = first.is_some_and(|it| is_in(it, "run test round section case entry step"));
        let next = words.next();
        // `2) oak polls`, and not `2.4 Run 7`.
        let is_part = next.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
        is_one(first) && !is_part || is_run && is_one(next)
    };
    let here = statements.partition_point(|it| it.place < *place);
    let above = statements[..here].iter().rev().take(ABOVE_MAX);
    let mut heads = above.filter(|it| it.place.file == place.file);
    let head = heads.find(is_head)?;
    Some(trials.partition_point(|trial| trial.place < head.place))
}

/// The first trial of the test with this number, from 1.
pub fn nth_test(trials: &[ImportedTrial], number: usize) -> Option<usize> {
    let mut known = None;
    let mut firsts = trials.iter().enumerate().filter(|(_, it)| {
        let is_first = known != Some(it.test);
        known = Some(it.test);
        is_first
    });
    let number = number.checked_sub(1).filter(|it| *it < NUMBER_MAX)?;
    firsts.nth(number).map(|(at, _)| at)
}
