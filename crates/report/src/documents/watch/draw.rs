//! Draws the screen of a watch: a frame from a sample. The caller owns the terminal.
//!
//! On a small screen a figure is shown whole or not at all, because without its leading digits it is another one;
//! rows are shown before titles and heads.

use nicpoll_model::{WatchSample, WatchStart};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState, Wrap};

use super::tables::{WatchScale, WatchTable, cost, tables};

/// Columns between tables side by side,
const SPACING: u16 = 2;
/// and least columns of a screen that has such tables.
const SIDE_BY_SIDE_MIN: u16 = 60;
/// Most lines of a message.
const MESSAGE_LINES_MAX: u16 = 4;
/// Minimum lines of interrupts, drops and counters, however many interfaces there are.
const BOTTOM_LINES_MIN: u16 = 6;

const KEYS: &str = "q quit  s scale  up/down select  p polling on/off";

/// The content of a watch's screen.
#[derive(Clone, Copy, Debug)]
pub struct WatchView<'a> {
    /// The start of the watch.
    pub start: &'a WatchStart,
    /// `None` before the first interval has ended.
    pub sample: Option<&'a WatchSample>,
    /// Unit of interface rates.
    pub scale: WatchScale,
    /// Index of the selected interface.
    pub selected: usize,
    /// Result of a key; may be empty.
    pub message: &'a str,
    /// Converts text for the locale ([`crate::with_micros`]).
    pub in_locale: fn(&str) -> String,
}

/// Draws the screen of a watch.
pub fn draw_watch(frame: &mut Frame, view: &WatchView) {
    let message = (view.in_locale)(view.message);
    let message_lines = message_lines(&message, frame.area().width);
    let message = Paragraph::new(message).wrap(Wrap { trim: true });
    let cost = match view.sample {
        None => String::from("the first interval has not ended"),
        Some(sample) => (view.in_locale)(&cost(&sample.cost)),
    };
    let foot_lines = [&*cost, KEYS].map(|line| self::message_lines(line, frame.area().width));
    let [top, body, said, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(message_lines),
        Constraint::Length(foot_lines.iter().sum()),
    ])
    .areas(frame.area());
    frame.render_widget(Line::styled(title(view), Modifier::BOLD), top);
    frame.render_widget(message, said);
    if let Some(sample) = view.sample {
        let tables = tables(sample, view.scale, view.start.storm_threshold_entries);
        draw_tables(frame, tables, view.selected, body);
    }
    let foot = Text::from(vec![Line::raw(cost), Line::styled(KEYS, Modifier::BOLD)]);
    frame.render_widget(Paragraph::new(foot).wrap(Wrap { trim: true }), bottom);
}

fn title(view: &WatchView) -> String {
    let netns = view.start.netns.as_deref();
    let netns = netns.map_or_else(String::new, |name| format!("  netns {name}"));
    let elapsed = view.sample.map_or(0.0, |sample| sample.elapsed_seconds);
    format!(
        "nicpoll watch{netns}  {elapsed:.0} s, every {} s, in {}",
        view.start.interval_seconds,
        view.scale.name()
    )
}

/// Returns the most lines that a message takes without breaking words: for each of its own lines one more than its
/// letters need.
fn message_lines(message: &str, width: u16) -> u16 {
    let width = usize::from(width.max(1));
    let lines = message
        .lines()
        .map(|line| line.chars().count().div_ceil(width));
    let lines: usize = lines.sum();
    let spare = usize::from(lines > 1);
    u16::try_from(lines + spare)
        .unwrap_or(u16::MAX)
        .min(MESSAGE_LINES_MAX)
}

fn draw_tables(frame: &mut Frame, tables: [WatchTable; 7], selected: usize, area: Rect) {
    let [
        traffic,
        polls,
        mut histogram,
        cpu,
        interrupts,
        drops,
        protocols,
    ] = tables;
    // Only the selected interface's histogram is shown.
    let name = polls.rows.get(selected).map(|row| &row[0]);
    histogram.rows.retain(|row| row.first() == name);
    let above = [
        (&traffic, Some(selected)),
        (&polls, Some(selected)),
        (&histogram, None),
        (&cpu, None),
    ];
    // With few lines, the CPUs come before the histogram.
    let wanted = [
        traffic.lines(),
        polls.lines(),
        cpu.lines(),
        histogram.lines(),
        BOTTOM_LINES_MIN,
    ];
    let shares = share_lines(&wanted, area.height);
    let mut below = area;
    for ((table, selected), share) in above.into_iter().zip([0, 1, 3, 2]) {
        let halves = Layout::vertical([Constraint::Length(shares[share]), Constraint::Fill(1)]);
        let [top, rest] = halves.areas(below);
        draw_table(frame, table, selected, top);
        below = rest;
    }
    let tables = [&interrupts, &drops, &protocols];
    for (table, area) in tables.into_iter().zip(places_below(tables, below)) {
        draw_table(frame, table, None, area);
    }
}

/// Where interrupts, drops and counters are drawn: the latter next to the interrupts, in no more columns than they
/// need while those lack some, or below each other on a narrow screen.
fn places_below(tables: [&WatchTable; 3], area: Rect) -> [Rect; 3] {
    let [interrupts, drops, protocols] = tables;
    if area.width < SIDE_BY_SIDE_MIN {
        let shares = share_lines(&tables.map(WatchTable::lines), area.height);
        return Layout::vertical(shares).areas(area);
    }
    let room = area.width.saturating_sub(SPACING);
    let wanted = drops.width().max(protocols.width()).min(room / 2);
    let whole = interrupts
        .width()
        .max(interrupts.title.chars().count() as u16);
    let right = wanted.max(room.saturating_sub(whole));
    let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Length(right)]);
    let [left, right] = halves.spacing(SPACING).areas(area);
    let halves = Layout::vertical([Constraint::Length(drops.lines()), Constraint::Fill(1)]);
    let [top, rest] = halves.areas(right);
    [left, top, rest]
}

fn draw_table(frame: &mut Frame, table: &WatchTable, selected: Option<usize>, area: Rect) {
    let (has_title, has_head) = table.rows_in(area.height);
    let (widths, spacing) = table.columns_in(area.width);
    let left_out = table.head.len() - widths.len().min(table.head.len());
    let mut block = Block::new();
    if has_title {
        let title = title_in(&table.title, left_out, area.width);
        block = block.title(Line::styled(title, Modifier::BOLD));
    }
    if table.rows.is_empty() {
        frame.render_widget(Paragraph::new("  none").block(block), area);
        return;
    }
    let cell = |column: usize, text: &str| {
        let line = Line::raw(text.to_owned());
        Cell::from(if column < table.figures_from {
            line
        } else {
            line.right_aligned()
        })
    };
    let rows = table.rows.iter().map(|row| {
        let cells = row.iter().zip(&widths).enumerate();
        Row::new(cells.map(|(column, (text, width))| cell(column, &with_end(text, *width))))
    });
    let mut drawn = Table::new(rows, widths.iter().copied());
    if has_head {
        let head = table.head.iter().take(widths.len()).enumerate();
        let head = Row::new(head.map(|(column, text)| cell(column, text)));
        drawn = drawn.header(head.style(Style::new().add_modifier(Modifier::DIM)));
    }
    let drawn = drawn
        .column_spacing(spacing)
        .row_highlight_style(Modifier::REVERSED)
        .block(block);
    let mut state = TableState::new().with_selected(selected);
    frame.render_stateful_widget(drawn, area, &mut state);
}

/// Fits a title into a width, with the number of hidden columns, which is never left out.
fn title_in(title: &str, left_out: usize, width: u16) -> String {
    let said = match left_out {
        0 => String::new(),
        1 => String::from(" (1 column does not fit)"),
        _ => format!(" ({left_out} columns do not fit)"),
    };
    let room = usize::from(width).saturating_sub(said.chars().count());
    if title.chars().count() <= room {
        return title.to_owned() + &said;
    }
    // Whole words only: a figure without its end is another one. A remark in brackets is left out as a whole.
    let begun: String = title.chars().take(room).collect();
    let remark = begun.rfind(" (").filter(|at| !begun[*at..].contains(')'));
    let end = remark
        .or_else(|| begun.rfind(' '))
        .or_else(|| title.find(' '));
    title[..end.unwrap_or(title.len())].trim_end().to_owned() + &said
}

/// Fits a text into a width, with its first word if there is room, and always its end: the names of a card's
/// interrupts differ at the end.
fn with_end(text: &str, width: u16) -> String {
    let (letters, width) = (text.chars().count(), usize::from(width));
    if letters <= width {
        return String::from(text);
    }
    let first = text.split(' ').next().unwrap_or_default();
    let first = if first.chars().count() < width {
        first
    } else {
        ""
    };
    let left = width.saturating_sub(first.chars().count() + 1);
    let end: String = text.chars().skip(letters - left).collect();
    format!("{first}~{end}")
}

/// Spaces between columns with and without room.
const SPACINGS: [u16; 2] = [2, 1];
/// Minimum width of a cut first column.
const NAME_WIDTH_MIN: u16 = 6;
/// Lines above the rows of a table: its title and its head.
const TITLE: u16 = 1;
const HEAD: u16 = 1;
/// Lines from which a table shows title and head even if not all rows fit.
const SCROLLED_LINES: u16 = 6;

impl WatchTable {
    /// Returns the lines of title, head and all rows; without rows one word replaces them.
    fn lines(&self) -> u16 {
        match self.row_lines() {
            0 => TITLE + HEAD,
            rows => rows.saturating_add(TITLE + HEAD),
        }
    }

    fn row_lines(&self) -> u16 {
        u16::try_from(self.rows.len()).unwrap_or(u16::MAX)
    }

    /// Returns the width of each column: that of its widest text.
    fn column_widths(&self) -> Vec<u16> {
        let width = |(column, head): (usize, &&str)| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(head.chars().count()) as u16
        };
        self.head.iter().enumerate().map(width).collect()
    }

    /// Returns the width of all columns with room between them.
    fn width(&self) -> u16 {
        let widths = self.column_widths();
        widths.iter().sum::<u16>() + SPACINGS[0] * widths.len().saturating_sub(1) as u16
    }

    /// Fits the columns into a width. If they do not fit, the first is cut, then the spacing, then the last columns
    /// are left out. Returns the widths of the shown columns, and the spacing.
    fn columns_in(&self, available: u16) -> (Vec<u16>, u16) {
        let mut widths = self.column_widths();
        loop {
            for spacing in SPACINGS {
                if let Some(widths) = with_first_cut(&widths, spacing, available) {
                    return (widths, spacing);
                }
            }
            if widths.len() <= 1 {
                return (widths, SPACINGS[0]);
            }
            widths.pop();
        }
    }

    /// Returns whether this many lines have room for the title, and for the head.
    fn rows_in(&self, lines: u16) -> (bool, bool) {
        let rows = self.row_lines().max(1);
        let has_more = |than: u16| lines > than || lines >= SCROLLED_LINES;
        (has_more(rows), has_more(rows.saturating_add(TITLE)))
    }
}

/// Cuts the first width to fit all; `None` if that is not enough.
fn with_first_cut(widths: &[u16], spacing: u16, available: u16) -> Option<Vec<u16>> {
    let gaps = spacing * widths.len().saturating_sub(1) as u16;
    let excess = (widths.iter().sum::<u16>() + gaps).saturating_sub(available);
    let (first, rest) = widths.split_first()?;
    let cut = first.checked_sub(excess)?;
    (cut >= NAME_WIDTH_MIN.min(*first)).then(|| [&[cut], rest].concat())
}

/// Shares out lines among tables; if there are too few, each gets one in turn.
fn share_lines(wanted: &[u16], available: u16) -> Vec<u16> {
    let mut shares = vec![0; wanted.len()];
    let mut left = available;
    while left > 0
        && shares
            .iter()
            .zip(wanted)
            .any(|(share, wanted)| share < wanted)
    {
        for (share, wanted) in shares.iter_mut().zip(wanted) {
            if *share < *wanted && left > 0 {
                *share += 1;
                left -= 1;
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    /// Returns the start of a watch, and a sample.
    fn start_and_sample() -> (WatchStart, WatchSample) {
        serde_json::from_str(include_str!("sample.json")).unwrap()
    }

    /// Makes a view in bits, with the first interface selected.
    fn view<'a>(start: &'a WatchStart, sample: Option<&'a WatchSample>) -> WatchView<'a> {
        WatchView {
            start,
            sample,
            scale: WatchScale::Bits,
            selected: 0,
            message: "",
            in_locale: |text| String::from(text),
        }
    }

    /// Returns the screen as text, without trailing blanks.
    fn screen(view: &WatchView, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw_watch(frame, view)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
        (0..height)
            .map(|y| String::from(line(y).trim_end()))
            .collect()
    }

    const SCREEN: &str = include_str!("screen.txt");

    #[test]
    fn the_whole_screen_is_as_it_is_kept() {
        let (start, sample) = start_and_sample();
        let view = WatchView {
            message: "em0: every value is as it was",
            ..view(&start, Some(&sample))
        };
        let drawn = screen(&view, 100, 26).join("\n") + "\n";
        assert_eq!(drawn, SCREEN, "\n{drawn}");
    }

    #[test]
    fn scale_and_selection_are_the_views() {
        let (start, sample) = start_and_sample();
        let mut view = view(&start, Some(&sample));
        (view.scale, view.selected) = (WatchScale::Packets, 1);
        let drawn = screen(&view, 100, 26);
        assert!(drawn[0].ends_with("in packets"), "{drawn:#?}");
        assert!(drawn[3].contains("12.5 kp/s"), "{drawn:#?}");
        let mut terminal = Terminal::new(TestBackend::new(100, 26)).unwrap();
        terminal.draw(|frame| draw_watch(frame, &view)).unwrap();
        let is_reversed = |y| {
            terminal.backend().buffer()[(0, y)]
                .modifier
                .contains(Modifier::REVERSED)
        };
        assert!(is_reversed(4) && !is_reversed(3));
        // The screen is empty before the first sample, and no size is too small to draw on.
        view.sample = None;
        assert!(screen(&view, 100, 26)[24].contains("first interval"));
        view.sample = Some(&sample);
        for (width, height) in [(80, 24), (20, 5), (1, 1)] {
            screen(&view, width, height);
        }
    }

    #[test]
    fn a_narrow_screen_shows_figures_whole_and_a_short_one_shows_rows() {
        let (start, mut sample) = start_and_sample();
        sample.cpu[0].system_ratio = 0.603;
        let view = view(&start, Some(&sample));
        for width in 20..110 {
            let drawn = screen(&view, width, 40);
            // "60.3" without its first digit is another figure.
            let words = drawn.iter().flat_map(|line| line.split_whitespace());
            let cut: Vec<&str> = words.filter(|word| ["0.3", ".3"].contains(word)).collect();
            assert_eq!(cut, Vec::<&str>::new(), "{width}: {drawn:#?}");
        }
        assert!(
            screen(&view, 70, 40)
                .iter()
                .any(|line| line.contains("60.3"))
        );
        let short = screen(&view, 100, 9);
        for row in ["em0", "em1", "60.3"] {
            let found = short.iter().any(|line| line.contains(row));
            assert!(found, "{row}: {short:#?}");
        }
    }

    #[test]
    fn microseconds_are_as_the_locale_can_show_them() {
        let (start, _) = start_and_sample();
        let view = WatchView {
            message: "em0: the period is 200 us",
            in_locale: |text| crate::with_micros(text, true),
            ..view(&start, None)
        };
        let drawn = screen(&view, 80, 24);
        let found = drawn.iter().any(|line| line.ends_with("200 µs"));
        assert!(found, "{drawn:#?}");
    }

    #[test]
    fn a_long_message_has_room() {
        assert_eq!(message_lines("", 80), 0);
        assert_eq!(message_lines("short", 80), 1);
        assert_eq!(message_lines(&"word ".repeat(20), 80), 3);
        assert_eq!(message_lines(&"word ".repeat(500), 80), MESSAGE_LINES_MAX);
    }
}

#[cfg(test)]
mod fitting {
    use super::*;

    fn table() -> WatchTable {
        let row = |core: &str| {
            let shares = ["60.3", "0.0", "12.5", "<0.1", "27.1", "100.0", "0.0"];
            std::iter::once(core)
                .chain(shares)
                .map(String::from)
                .collect()
        };
        WatchTable {
            title: String::from("CPU"),
            head: vec![
                "core", "user", "nice", "system", "irq", "softirq", "idle", "steal",
            ],
            figures_from: 1,
            rows: vec![row("processor-0"), row("processor-1")],
        }
    }

    #[test]
    fn no_figure_is_cut_at_any_width() {
        let table = table();
        for available in 0..90 {
            let (widths, spacing) = table.columns_in(available);
            let gaps = spacing * (widths.len() as u16 - 1);
            let taken = widths.iter().sum::<u16>() + gaps;
            if widths.len() > 1 {
                assert!(taken <= available, "{available}: {widths:?}");
            }
            for (column, width) in widths.iter().enumerate().skip(table.figures_from) {
                let cells = table.rows.iter().map(|row| row[column].len() as u16);
                assert!(cells.max() <= Some(*width), "{available}: {widths:?}");
            }
        }
        assert_eq!(table.columns_in(90).1, 2);
        assert_eq!(table.columns_in(53).0.len(), 8);
    }

    #[test]
    fn a_name_keeps_its_end_and_a_title_says_what_does_not_fit() {
        let names = [
            "36 virtio0-input.0",
            "42 virtio1-input.0",
            "LOC Local timer interrupts",
        ];
        assert_eq!(
            names.map(|name| with_end(name, 14)),
            ["36~io0-input.0", "42~io1-input.0", "LOC~interrupts"]
        );
        assert_eq!(
            names.map(|name| with_end(name, 6)),
            ["36~t.0", "42~t.0", "LOC~ts"]
        );
        assert_eq!(with_end(names[0], 18), names[0]);
        let title = "CPU, % (exact); 1,230 context switches/s";
        assert_eq!(title_in(title, 0, 40), title);
        assert_eq!(
            title_in(title, 3, 40),
            "CPU, % (exact); (3 columns do not fit)"
        );
        assert!(title_in(title, 1, 10).contains("1 column"));
        let title = "dropped packets (places without any left out)";
        assert_eq!(title_in(title, 0, 28), "dropped packets");
        assert_eq!(title_in(title, 2, 19), "dropped (2 columns do not fit)");
    }

    #[test]
    fn rows_come_before_heads_and_titles() {
        let table = table();
        assert_eq!(table.rows_in(2), (false, false));
        assert_eq!(table.rows_in(3), (true, false));
        assert_eq!(table.rows_in(4), (true, true));
    }

    #[test]
    fn too_few_lines_are_shared_and_none_is_lost() {
        assert_eq!(share_lines(&[4, 4, 3], 20), [4, 4, 3]);
        assert_eq!(share_lines(&[4, 4, 3], 7), [3, 2, 2]);
        assert_eq!(share_lines(&[100, 3], 8), [5, 3]);
        assert_eq!(share_lines(&[], 8), Vec::<u16>::new());
    }
}
