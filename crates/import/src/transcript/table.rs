//! Tables: results in cells and rates in sentences, compared with the known trials; and what rows say of the settings of
//! tests, by the names of cases or by their rates.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::ops::Range;

use nicpoll_model::{
    ImportedBasis, ImportedFigure, ImportedReading, ImportedTrial, SourcePlace, UnplacedFigure,
};

use crate::cursor::{self, Cursor, MeasuredNumber, MeasuredUnit};
use crate::lines::clause::{self, is_in};
use crate::lines::prose::{Sentence, SentenceKind, SentenceMark};
use crate::lines::{Budget, address, is_variable, layout};
use crate::plain::Plain;
use crate::transcript::claims::{Claim, Reader, is_torn};
use crate::transcript::found::{self, HostNames, Loose, Statement, SwitchScope, blank};

/// Most characters of a row's name that go into the workload's.
const NAME_MAX: usize = 40;
/// Most columns in a table.
const COLUMNS_MAX: usize = 64;
/// Most bytes read of a cell.
const CELL_MAX: usize = 200;

/// A cell: the range of its text, and the text.
type TextCell<'t> = (Range<usize>, &'t str);

/// A table: its columns, and the range of its rows.
pub struct TranscriptTable {
    file: u32,
    columns: Vec<ColumnHeading>,
    /// The line of the first row.
    line: u32,
    rows: Range<usize>,
    /// Whether bars stand between its cells; else a row has a cell for each column.
    is_barred: bool,
}

/// The heading of a column.
struct ColumnHeading {
    name: String,
    unit: Option<(MeasuredUnit, f64)>,
    is_polling: Option<bool>,
}

/// Finds all tables of a text: a row of dashes, the line before it, and the lines after it; or a heading that names a
/// unit, and the rows after it. `None` when there are more than the budget allows.
pub fn tables(text: &str, file: u32, budget: &mut Budget) -> Option<Vec<TranscriptTable>> {
    let mut found: Vec<TranscriptTable> = Vec::new();
    let mut at = 0;
    let mut before: Option<&str> = None;
    let mut is_open = false;
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        let from = at;
        at += line.len();
        let is_row = |it: &TranscriptTable| match it.is_barred {
            true => line.contains('|'),
            false => !cells(line, 0).is_empty(),
        };
        if is_rule(line) {
            let columns = line.split('|').filter(|it| it.contains('-')).count();
            is_open = columns > 1 && before.is_some();
            if let Some(head) = before.filter(|_| is_open) {
                budget.take(1)?;
                // Prose may be glued to the heading: its last cells are the table's.
                let cells = cells(head, 0);
                let first = cells.len().saturating_sub(columns.min(COLUMNS_MAX));
                let table = TranscriptTable::below(&cells[first..], file, (number + 1, at..at));
                found.push(table);
            }
        } else if is_open && found.last().is_some_and(is_row) {
            found.last_mut()?.rows.end = at;
        } else {
            let head = before.map(|it| cells(it, 0)).unwrap_or_default();
            let bars = ["|", "^", "!!"];
            let is_barred = before.is_some_and(|head| bars.iter().any(|it| head.contains(it)));
            let columns = cells(line, 0).len();
            // The names of rows may have no heading.
            let unnamed = usize::from(!is_barred && columns == head.len() + 1);
            let texts: Vec<&str> = head.iter().map(|it| it.1).collect();
            is_open = names_rates(&texts, is_barred) && columns == head.len() + unnamed;
            if is_open {
                budget.take(1)?;
                let head = [&vec![(0..0, ""); unnamed][..], &head].concat();
                let table = TranscriptTable::below(&head, file, (number, from..at));
                found.push(TranscriptTable { is_barred, ..table });
            }
        }
        let is_ruled = line.len() > 2 && line.trim().bytes().all(|it| b"|:-=+ ".contains(&it));
        if !is_ruled {
            before = Some(line).filter(|it| it.contains('|') || !cells(it, 0).is_empty());
        }
    }
    Some(found)
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains("--") && line.contains('|') && line.bytes().all(|it| b"|:- ".contains(&it))
}

/// Whether cells are the heading of results: one names a rate or shares, and none begins with a number. Without bars, all
/// units are of results, unlike those of `vmstat` and `netstat`.
fn names_rates(cells: &[&str], is_barred: bool) -> bool {
    // `%usr` is of mpstat.
    let is_tool = |it: &str| it.starts_with('%') && it.len() > 1 && !is_barred;
    let is_head = |it: &str| !it.starts_with(|it: char| it.is_ascii_digit()) && !is_tool(it);
    let units = || cells.iter().filter_map(|it| unit_of(it));
    let is_result = |it: MeasuredUnit| is_rate(it) || it == MeasuredUnit::Percent;
    cells.len() > 1
        && cells.iter().all(|it| is_head(it))
        && units().any(|it| is_result(it.0))
        && (is_barred || units().all(|it| is_result(it.0)))
}

/// The cells of a row, without empty ones at its ends.
fn cells(line: &str, start: usize) -> Vec<TextCell<'_>> {
    let is_open = line.contains('|') && !line.trim_start().starts_with('|');
    let cells = match is_open {
        true => {
            let row = line.trim().trim_end_matches('|');
            row.split('|').map(str::trim).collect()
        }
        false => layout::cells(line),
    };
    let range = |it: &str| {
        let at = start + (it.as_ptr() as usize - line.as_ptr() as usize);
        at..at + it.len()
    };
    let cells = cells.into_iter().take(2 * COLUMNS_MAX);
    cells.map(|it| (range(it), it)).collect()
}

/// The part of a cell that is read.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(CELL_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl ColumnHeading {
    fn of((_, heading): &TextCell) -> Self {
        ColumnHeading {
            name: beginning(heading).chars().take(NAME_MAX).collect(),
            unit: unit_of(heading),
            is_polling: clause::setting(beginning(heading)),
        }
    }
}

impl TranscriptTable {
    /// The table with this heading, and the line and range of its rows.
    fn below(head: &[TextCell], file: u32, (line, rows): (u32, Range<usize>)) -> Self {
        TranscriptTable {
            file,
            columns: head.iter().map(ColumnHeading::of).collect(),
            line,
            rows,
            is_barred: true,
        }
    }

    /// The line number and the cells of each row.
    fn rows<'t>(&self, text: &'t str) -> impl Iterator<Item = (u32, Vec<TextCell<'t>>)> {
        let mut at = self.rows.start;
        let columns = self.columns.len();
        let rows = text[self.rows.clone()].split_inclusive('\n');
        rows.zip(self.line..).map(move |(row, line)| {
            let mut cells = cells(row, at);
            if !self.is_barred && cells.len() != columns {
                cells.clear();
            }
            cells.truncate(columns);
            at += row.len();
            (line, cells)
        })
    }
}

/// Reads sysctl variables from tables: a row that begins with a variable's name has its values in the other
/// columns.
///
/// # Errors
/// The index of the file in which the budget ends.
pub fn variables(
    (files, tables): (&[(String, String)], &[TranscriptTable]),
    budget: &mut Budget,
) -> Result<Vec<ImportedReading>, u32> {
    let plain = |text: &str| String::from(text.trim_matches(['`', '*']));
    let is_number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        (1..=24).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit())
    };
    // Some, such as net.ipv4.tcp_rmem, have three numbers.
    let is_value = |text: &str| {
        let numbers = || text.split_whitespace();
        (1..=3).contains(&numbers().count()) && numbers().all(is_number)
    };
    let mut readings = Vec::new();
    for table in tables {
        for (line, cells) in table.rows(&files[table.file as usize].1) {
            let name = cells.first().map(|(_, text)| plain(beginning(text)));
            let Some(name) = name.filter(|name| is_variable(name)) else {
                continue;
            };
            let columns = table.columns.iter().zip(&cells).skip(1);
            let values: Vec<_> = columns
                .map(|(column, (range, text))| (column, range, plain(beginning(text))))
                .filter(|(.., value)| is_value(value))
                .collect();
            budget.take(values.len()).ok_or(table.file)?;
            let is_one = values.len() == 1;
            readings.extend(
                values
                    .into_iter()
                    .map(|(column, range, value)| ImportedReading {
                        host: None,
                        name: match is_one {
                            true => name.clone(),
                            false => format!("{name}, {}", column.name),
                        },
                        value,
                        is_cumulative: false,
                        near_trial: None,
                        place: SourcePlace {
                            file: table.file,
                            line,
                            start_byte: range.start as u64,
                            end_byte: range.end as u64,
                        },
                    }),
            );
        }
    }
    Ok(readings)
}

/// Makes trials of table figures, or adds them to trials that already have the same rate, and so with figures
/// in prose; all others are unplaced.
///
/// # Errors
/// The index of the file in which the budget ends.
pub fn place(
    trials: &mut Vec<ImportedTrial>,
    loose: Vec<Loose>,
    (files, tables): (&[(String, String)], &[TranscriptTable]),
    hosts: &HostNames,
    unplaced: &mut Vec<UnplacedFigure>,
    budget: &mut Budget,
) -> Result<(), u32> {
    let mut known = Known::of(trials);
    let mut next_test = trials.iter().map(|it| it.test).max().unwrap_or(0) + 1;
    let mut placed: HashMap<(u32, u32), Vec<Range<usize>>> = HashMap::new();
    for table in tables {
        for (line, cells) in table.rows(&files[table.file as usize].1) {
            let unit = LazyCell::new(|| cells.first().and_then(|(_, text)| unit_of(text)));
            let is_polling = LazyCell::new(|| said_of_all(&cells, hosts));
            for (column, cell) in table.columns.iter().zip(&cells).skip(1) {
                let unit = || column.unit.or_else(|| *unit);
                let Some((figure, unit)) = figure((table.file, line), cell, unit) else {
                    continue;
                };
                budget.take(1).ok_or(table.file)?;
                let place = placed.entry((table.file, line)).or_default();
                place.push(cell.0.clone());
                let mut leave = |why: &str| {
                    let why = format!("below '{}': {why}", column.name);
                    unplaced.push(found::unplaced(&figure.printed, &why, figure.place));
                };
                if !is_rate(unit) {
                    leave(of_prose(unit));
                    continue;
                }
                let setting = column.is_polling.or_else(|| *is_polling);
                let setting = setting.map(|it| if it { "polling" } else { "interrupt" });
                if let Some(same) = known.find(trials, figure.value, setting) {
                    trials[same].quoted_again.push(figure.place);
                    continue;
                }
                let Some(setting) = setting else {
                    let why =
                        "neither its column nor its row says under which setting it was measured";
                    leave(why);
                    continue;
                };
                let trial = of_cell(figure, setting, cells[0].1, next_test);
                next_test += 1;
                known.add(&trial, trials.len());
                trials.push(trial);
            }
        }
    }
    for figure in loose {
        let cells = placed.get(&(figure.place.file, figure.place.line));
        let start = figure.place.start_byte as usize;
        if cells.is_some_and(|cells| cells.iter().any(|cell| cell.contains(&start))) {
            continue;
        }
        let (value, unit) = figure.value;
        match known.find(trials, value, None).filter(|_| is_rate(unit)) {
            Some(same) => trials[same].quoted_again.push(figure.place),
            None => {
                let why = of_prose(unit);
                unplaced.push(found::unplaced(&figure.printed, why, figure.place));
            }
        }
    }
    Ok(())
}

/// The bare numbers in rows of at least two lines that are not among `known`, by their lines: their unit stands above the
/// table, or nowhere.
pub fn bare(
    statements: &[Statement],
    known: &HashMap<(u32, u32), Vec<String>>,
) -> Vec<UnplacedFigure> {
    const APART: u32 = 2;
    let is_of_number = |it: char| it.is_ascii_digit() || ".,".contains(it);
    let is_number = |it: &&String| {
        it.starts_with(|it: char| it.is_ascii_digit()) && it.chars().all(is_of_number)
    };
    let has_both = |it: &&Statement| {
        let cells = &it.sentence.cells;
        cells.iter().any(|it| !is_number(&it)) && cells.iter().any(|it| is_number(&it))
    };
    let rows: Vec<&Statement> = statements.iter().filter(has_both).collect();
    let is_next = |one: &&Statement, next: &&Statement| {
        let is_near = next.place.line <= one.place.line + APART;
        is_near && one.place.file == next.place.file
    };
    let tables = rows.chunk_by(is_next).filter(|it| it.len() > 1);
    let numbers = tables.flatten().flat_map(|row| {
        let known = known.get(&(row.place.file, row.place.line));
        let cells = row.sentence.cells.iter().filter(is_number);
        let cells = cells.filter(move |cell| {
            // `5` is not told by `75 %`.
            let printed = known.into_iter().flatten();
            let mut numbers = printed.flat_map(|it| it.split(|it| !is_of_number(it)));
            !numbers.any(|it| it == cell.as_str())
        });
        let why = "a number in a table without a unit";
        cells.map(|it| found::unplaced(it, why, row.place))
    });
    numbers.collect()
}

/// What the cells of a row say of both ends, which may have a column each: a cell that names a host or one end says
/// nothing of the other.
fn said_of_all(cells: &[TextCell], hosts: &HostNames) -> Option<bool> {
    let said = |(_, text): &TextCell| {
        let (words, clauses) = clause::words_of(beginning(text));
        let parts = clause::parts(&words);
        let is_host = |it: &str| hosts.has(it) || is_like_host(it);
        let is_of_one = parts.sender != parts.receiver || words.split(' ').any(is_host);
        clause::agreed(&clauses).map(|it| (it, is_of_one))
    };
    let mut said = cells.iter().filter_map(said);
    let (first, is_of_one) = said.next()?;
    let is_one = !is_of_one && said.all(|it| it == (first, false));
    is_one.then_some(first)
}

fn is_rate(unit: MeasuredUnit) -> bool {
    matches!(
        unit,
        MeasuredUnit::BitsPerSecond | MeasuredUnit::PacketsPerSecond
    )
}

/// Why a figure that no tool printed has no place.
fn of_prose(unit: MeasuredUnit) -> &'static str {
    match unit {
        MeasuredUnit::PacketsPerSecond => {
            "a rate of packets in a sentence: nothing says of which test it is"
        }
        MeasuredUnit::BitsPerSecond => "a rate in a sentence: nothing says of which test it is",
        _ => "a figure in the text that no tool printed",
    }
}

/// Trials by rate.
struct Known(HashMap<u64, Vec<usize>>);

impl Known {
    /// A key shared by rates that are equal when printed with three digits.
    fn key(value: f64) -> u64 {
        let digits = value.abs().max(1e-9).log10().floor();
        ((value / 10f64.powf(digits - 2.0)).round() as u64) * 64 + (digits.clamp(0.0, 63.0) as u64)
    }

    fn of(trials: &[ImportedTrial]) -> Self {
        let mut known = Known(HashMap::new());
        for (index, trial) in trials.iter().enumerate() {
            known.add(trial, index);
        }
        known
    }

    fn add(&mut self, trial: &ImportedTrial, index: usize) {
        let rates = trial
            .figures
            .iter()
            .filter(|it| it.name.ends_with("per_second"))
            .map(|it| it.value);
        let mut keys: Vec<u64> = rates.chain(trial.value).map(Self::key).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            self.0.entry(key).or_default().push(index);
        }
    }

    /// The trial with this rate and, if given, this setting.
    fn find(&self, trials: &[ImportedTrial], value: f64, setting: Option<&str>) -> Option<usize> {
        let candidates = self.0.get(&Self::key(value))?.iter().take(32);
        let fits =
            |it: &&usize| setting.is_none_or(|setting| trials[**it].setting.starts_with(setting));
        candidates.copied().find(|it| fits(&it))
    }
}

/// The rate in a cell; without a unit of its own, it has that of its column or row, and need not be a rate.
fn figure(
    (file, line): (u32, u32),
    (range, text): &TextCell,
    unit: impl Fn() -> Option<(MeasuredUnit, f64)>,
) -> Option<(ImportedFigure, MeasuredUnit)> {
    let plain = Plain::of(beginning(text));
    let mut cursor = Cursor::new(&plain.bytes, 0);
    let found = cursor::measured_or(&mut cursor, unit)?;
    let (value, unit) = (found.value, found.unit);
    // Others with a unit of their own are read as prose is.
    let is_bare = text.ends_with(|it: char| it.is_ascii_digit());
    (is_rate(unit) || is_bare).then_some(())?;
    let name = match unit {
        MeasuredUnit::PacketsPerSecond => "packets_per_second",
        _ => "bits_per_second",
    };
    let figure = ImportedFigure {
        name: String::from(name),
        side: None,
        value,
        printed: text.chars().take(80).collect(),
        basis: ImportedBasis::Inferred,
        place: SourcePlace {
            file,
            line,
            start_byte: range.start as u64,
            end_byte: range.end as u64,
        },
        since: None,
    };
    Some((figure, unit))
}

/// The rate in a cell below a heading.
fn rate_of(cell: &str, heading: &str) -> Option<MeasuredNumber> {
    let plain = Plain::of(beginning(cell));
    let mut cursor = Cursor::new(&plain.bytes, 0);
    cursor::measured_or(&mut cursor, || unit_of(heading)).filter(|it| is_rate(it.unit))
}

/// The unit in a heading: `UDP (Mbit/s)`.
fn unit_of(heading: &str) -> Option<(MeasuredUnit, f64)> {
    let plain = Plain::of(beginning(heading));
    let starts = plain.bytes.iter().enumerate().filter(|(at, _)| {
        let before = at.checked_sub(1).map_or(b' ', |at| plain.bytes[at]);
        !before.is_ascii_alphanumeric()
    });
    let mut units = starts.filter_map(|(at, _)| cursor::read(&mut Cursor::new(&plain.bytes, at)));
    // `interrupts` is a setting there.
    units.find(|it| it.0 != MeasuredUnit::Count)
}

fn of_cell(figure: ImportedFigure, setting: &str, row: &str, test: u32) -> ImportedTrial {
    let letters = row.chars().map(|it| {
        if it.is_ascii_alphanumeric() {
            it.to_ascii_lowercase()
        } else {
            '-'
        }
    });
    let name: String = letters.take(NAME_MAX).collect();
    let parts: Vec<&str> = name.split('-').filter(|it| !it.is_empty()).collect();
    let mut trial = blank("table", figure.place);
    trial.workload = format!("table-{}", parts.join("-"));
    trial.setting = String::from(setting);
    trial.setting_basis = ImportedBasis::Inferred;
    trial.setting_place = Some(figure.place);
    trial.quantity = figure.name.clone();
    trial.value = Some(figure.value);
    trial.test = test;
    trial.notes.push(String::from(
        "A cell of a table: it does not say who counted.",
    ));
    trial.figures.push(figure);
    trial
}

/// Whether a cell may be the name of a host.
fn is_like_host(cell: &str) -> bool {
    const MEASURES: &str = "loss lost rate result results received sent throughput idle cpu retr jitter remark remarks \
        note notes comment comments";
    let small = cell.to_ascii_lowercase();
    let is_word = !cell.contains([' ', ',']);
    is_word && address::is_name(cell) && !clause::is_common(cell) && !is_in(&small, MEASURES)
}

/// A cell as a sentence.
fn text_of(cell: &str) -> Option<Sentence> {
    Sentence::of(cell, SentenceMark::Row, false)
}

/// The only host or end that a cell names.
fn only_scope(cell: &str, reader: &Reader) -> Option<SwitchScope> {
    let named = reader.scopes(&text_of(cell)?.words, "").0;
    <[SwitchScope; 1]>::try_from(named).ok().map(|[one]| one)
}

/// A rate in a row of results, and what is said of its test.
pub struct RatedCell {
    /// Of the row.
    pub place: SourcePlace,
    rate: MeasuredNumber,
    pub claims: Vec<Claim>,
}

/// The cases that tables give names, and what each says of hosts or ends: `B | polling | interrupts`.
#[derive(Default)]
pub struct Cases {
    head: Vec<String>,
    all: Vec<(String, Vec<Claim>)>,
    /// The rates of each row of results, and what the row says.
    results: Vec<RatedCell>,
}

impl Cases {
    /// Most cases, and most rates of results.
    const MAX: usize = 64;
    const RESULTS_MAX: usize = 512;

    /// Reads a row: of cases in columns of hosts, or of a host in columns of cases.
    pub fn row(&mut self, cells: &[String], place: SourcePlace, reader: &mut Reader) {
        const KEYS: &str = "run test case no nr experiment setting configuration phase round";
        let is_head =
            |it: &String| is_in(it.trim_end_matches('.').to_ascii_lowercase().as_str(), KEYS);
        let texts: Vec<&str> = cells.iter().map(String::as_str).collect();
        if cells.first().is_some_and(is_head) || names_rates(&texts, true) {
            self.head = cells.to_vec();
            return;
        }
        let has_hosts = self.head.iter().any(|it| reader.is_host(it));
        let said: Vec<Option<bool>> = (0..cells.len())
            .map(|at| {
                let is_host = self.head.get(at).is_some_and(|it| reader.is_host(it));
                self.said(cells, at, (has_hosts, is_host))
            })
            .collect();
        let names_hosts = |at: usize| self.is_topic(at) && !reader.only(&cells[at]).is_empty();
        let is_case = cells.len() == 2 && cells[0].len() == 1 || (0..cells.len()).any(names_hosts);
        if said.iter().all(Option::is_none) && !is_case {
            self.result(cells, place, &[]);
            let is_word = |it: &String| it.contains(|it: char| it.is_ascii_alphabetic());
            let is_number = |it: &String| it.starts_with(|it: char| it.is_ascii_digit());
            if cells.iter().any(is_word) && !cells[1..].iter().any(is_number) {
                self.head = cells.to_vec();
            }
            return;
        }
        let of_row = only_scope(&cells[0], reader).filter(|_| said[0].is_none());
        // The first column may be a host's, too.
        let is_host = self.head.first().is_some_and(|it| reader.is_host(it));
        let first = self.host_of(0, &cells[0], has_hosts, reader);
        let first = first.filter(|_| is_host).zip(said[0]);
        let mut of_results = match first {
            Some(claim) => vec![claim],
            None => self.told(&cells[0], 0, reader),
        };
        for (at, said) in said.iter().enumerate().skip(1) {
            let (case, scope) = match (&of_row, self.host_of(at, &cells[0], has_hosts, reader)) {
                (_, Some(scope)) => (&cells[0], Some(scope)),
                (Some(host), None) => (self.head.get(at).unwrap_or(&cells[0]), Some(host.clone())),
                (None, None) => (&cells[0], None),
            };
            // A number alone is no sentence.
            let words = text_of(case).map(|it| String::from(it.words.trim()));
            let case = words
                .unwrap_or_else(|| case.trim_end_matches(['.', ')', ':']).to_ascii_lowercase());
            let claims = match (scope, said) {
                (Some(scope), Some(polls)) => vec![(scope, *polls)],
                (Some(scope), None) => self.like_another(&case, &cells[at], &scope),
                (None, _) => self.told(&cells[at], at, reader),
            };
            if of_row.is_none() {
                of_results.extend_from_slice(&claims);
            }
            if !reader.is_host(&case) {
                self.add(case, claims);
            }
        }
        self.result(cells, place, &of_results);
    }

    /// Adds what is told of a case.
    fn add(&mut self, case: String, claims: Vec<Claim>) {
        if claims.is_empty() || case.is_empty() || self.all.len() == Self::MAX {
            return;
        }
        match self.all.iter_mut().find(|it| it.0 == case) {
            Some(known) if known.1.len() < Self::MAX => known.1.extend(claims),
            Some(_) => {}
            None => self.all.push((case, claims)),
        }
    }

    /// The host whose states a column has, in a row that begins with a cell. Next to columns of hosts, one with the same
    /// cells is of a host, too.
    fn host_of(
        &self,
        at: usize,
        first: &str,
        has_hosts: bool,
        reader: &Reader,
    ) -> Option<SwitchScope> {
        let head = self.head.get(at)?;
        if has_hosts && is_in(&head.to_ascii_lowercase(), "other peer") {
            // `birch | other`, of `alder to birch`
            let own: Vec<_> = self
                .head
                .iter()
                .filter_map(|it| only_scope(it, reader))
                .collect();
            let mut named = reader.scopes(&text_of(first)?.words, "").0;
            named.retain(|it| !own.contains(it));
            return <[SwitchScope; 1]>::try_from(named).ok().map(|[one]| one);
        }
        let like = Some(head).filter(|it| has_hosts && is_like_host(it));
        only_scope(head, reader).or(like.cloned().map(SwitchScope::Host))
    }

    /// What a cell tells that is of no host's column: who polls, or a sentence.
    fn told(&self, cell: &str, at: usize, reader: &mut Reader) -> Vec<Claim> {
        if self.is_topic(at) {
            return reader.only(cell);
        }
        let sentence = text_of(cell);
        let read = sentence.and_then(|it| reader.read(&it, true, false));
        read.unwrap_or_default()
    }

    /// What `as in A` and `same` tell of a host.
    fn like_another(&self, case: &str, cell: &str, scope: &SwitchScope) -> Vec<Claim> {
        let known = |name: &str| self.all.iter().rev().find(|it| it.0 == name);
        let words = text_of(cell).map_or(String::new(), |it| it.words);
        let is_same = words.contains(" same ") || words.contains(" as ");
        let mut others = self.all.iter().rev().filter(|it| it.0 != case);
        let other = words.split(' ').find_map(known).or(others.next());
        let other = other.filter(|_| is_same);
        let of_it = other
            .iter()
            .flat_map(|it| &it.1)
            .filter(|it| it.0 == *scope);
        of_it.cloned().collect()
    }

    /// Takes the rates of a row, with what it or the heading of their column says of their tests, if anything.
    fn result(&mut self, cells: &[String], place: SourcePlace, claims: &[Claim]) {
        let heads = self.head.iter().map(String::as_str);
        let heads = heads.chain(std::iter::repeat(""));
        let names_all = |it: &str| clause::parts(&clause::words_of(it).0).all;
        let is_of_all = cells.iter().any(|it| names_all(it));
        let of = |(cell, head): (&String, &str)| {
            let rate = rate_of(cell, head)?;
            let of_column = || clause::setting(head).map(|it| (SwitchScope::All, it));
            let (mut claims, is_of_all) = match claims.is_empty() {
                true => (of_column().into_iter().collect(), names_all(head)),
                false => (claims.to_vec(), is_of_all),
            };
            // `polling` alone may be of one end.
            let is_bare = claims == [(SwitchScope::All, true)] && !is_of_all;
            if is_bare || is_torn(&claims) {
                claims.clear();
            }
            Some(RatedCell {
                place,
                rate,
                claims,
            })
        };
        let results = cells.iter().zip(heads).filter_map(of);
        let free = Self::RESULTS_MAX.saturating_sub(self.results.len());
        self.results.extend(results.take(free));
    }

    /// What the only row says that has the rate of a trial, if no other trial has that.
    pub fn of_result(&self, trial: &ImportedTrial, trials: &[ImportedTrial]) -> Option<&RatedCell> {
        let is_of = |cell: &RatedCell, trial: &ImportedTrial| {
            let is_rate = |it: f64| (it - cell.rate.value).abs() <= 1.01 * cell.rate.half_step;
            cell.place.file == trial.place.file && trial.value.is_some_and(is_rate)
        };
        let mut cells = self.results.iter().filter(|it| is_of(it, trial));
        let cell = cells.next().filter(|_| cells.next().is_none())?;
        let is_other = |it: &ImportedTrial| it.place != trial.place && is_of(cell, it);
        (!cell.claims.is_empty() && !trials.iter().any(is_other)).then_some(cell)
    }

    /// Whether a column is of polling: `polling on`.
    fn is_topic(&self, at: usize) -> bool {
        let head = self.head.get(at);
        head.is_some_and(|it| clause::setting(it) == Some(true))
    }

    /// The setting that a cell names, by itself or under a heading that names polling or a host alone.
    fn said(
        &self,
        cells: &[String],
        at: usize,
        (has_hosts, is_host): (bool, bool),
    ) -> Option<bool> {
        let cell = cells[at].as_str();
        clause::setting(cell).or_else(|| {
            let head = self.head.get(at)?;
            let is_topic = clause::setting(head) == Some(true) || has_hosts && is_like_host(head);
            let word = cell.to_ascii_lowercase();
            let is = |words: &str| is_topic && is_in(&word, words);
            let is_value = |it: &u32| is_host || clause::setting(head) == Some(true) && *it < 2;
            let value = word.parse::<u32>().ok().filter(is_value);
            is("on yes x deferred deferral polled")
                .then_some(true)
                .or(is("off no - normal stock default defaults").then_some(false))
                .or(value.map(|it| it > 0))
        })
    }

    /// What a heading, a label, a caption or a sentence that leads to a test says that names one case.
    pub fn named(&self, sentence: &Sentence, leads: impl Fn() -> bool) -> Option<Vec<Claim>> {
        let is_alone = |it: &(String, Vec<Claim>)| sentence.words.trim() == it.0;
        let is_head = sentence.introduces || sentence.kind != SentenceKind::Plain || leads();
        let is_head = is_head || self.all.iter().any(is_alone);
        let mut named = self
            .all
            .iter()
            .filter(|it| is_head && sentence.is_of_case(&it.0) && !is_torn(&it.1))
            .filter(|it| !clause::is_common(&it.0) && !is_in(&it.0, "from to on at in with"));
        let first = named.next()?;
        named.all(|it| it.1 == first.1).then(|| first.1.clone())
    }
}
