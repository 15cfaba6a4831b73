//! Tables on a screen that is too small for them.
//!
//! A figure is shown whole or not at all, because without its leading digits it is another one; and
//! where lines are short, rows are shown before titles and heads.

use super::tables::WatchTable;

/// Between columns where there is room, and where there is not.
const SPACINGS: [u16; 2] = [2, 1];
/// A first column that is cut is not cut below this.
const NAME_WIDTH_MIN: u16 = 6;
/// Above the rows of a table: its title and its head.
const TITLE: u16 = 1;
const HEAD: u16 = 1;
/// A table of so many lines has its title and head even if not all rows fit: somebody can scroll those.
const SCROLLED_LINES: u16 = 6;

/// How a table is fitted into a width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnFit {
    /// Width of each column that is shown; those after them are left out.
    pub widths: Vec<u16>,
    /// Between columns.
    pub spacing: u16,
}

/// Which parts of a table are shown besides its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFit {
    /// Whether it has a line for its title.
    pub has_title: bool,
    /// Whether it has a line for the words over its columns.
    pub has_head: bool,
}

impl WatchTable {
    /// Lines that it takes with title, head and all rows; without rows a word stands in their place.
    pub fn lines(&self) -> u16 {
        match self.row_lines() {
            0 => TITLE + HEAD,
            rows => rows.saturating_add(TITLE + HEAD),
        }
    }

    fn row_lines(&self) -> u16 {
        u16::try_from(self.rows.len()).unwrap_or(u16::MAX)
    }

    /// Columns for a width: as wide as the widest text of each. Where that is too much the first is cut, then they stand
    /// closer, then the last ones are left out.
    pub fn columns_in(&self, available: u16) -> ColumnFit {
        let width = |(column, head): (usize, &&str)| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(head.chars().count()) as u16
        };
        let mut widths: Vec<u16> = self.head.iter().enumerate().map(width).collect();
        loop {
            for spacing in SPACINGS {
                if let Some(widths) = with_first_cut(&widths, spacing, available) {
                    return ColumnFit { widths, spacing };
                }
            }
            if widths.len() <= 1 {
                let spacing = SPACINGS[0];
                return ColumnFit { widths, spacing };
            }
            widths.pop();
        }
    }

    /// What is shown in so many lines.
    pub fn rows_in(&self, lines: u16) -> RowFit {
        let rows = self.row_lines().max(1);
        RowFit {
            has_title: lines > rows || lines >= SCROLLED_LINES,
            has_head: lines > rows.saturating_add(TITLE) || lines >= SCROLLED_LINES,
        }
    }
}

/// The widths with the first one cut so that all fit; `None` where even that is too much.
fn with_first_cut(widths: &[u16], spacing: u16, available: u16) -> Option<Vec<u16>> {
    let gaps = spacing * widths.len().saturating_sub(1) as u16;
    let excess = (widths.iter().sum::<u16>() + gaps).saturating_sub(available);
    let (first, rest) = widths.split_first()?;
    let cut = first.checked_sub(excess)?;
    (cut >= NAME_WIDTH_MIN.min(*first)).then(|| [&[cut], rest].concat())
}

/// Shares out lines among tables that want so many each: where there are too few, each gets one in turn.
pub fn share_lines(wanted: &[u16], available: u16) -> Vec<u16> {
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
            let fit = table.columns_in(available);
            let gaps = fit.spacing * (fit.widths.len() as u16 - 1);
            let taken = fit.widths.iter().sum::<u16>() + gaps;
            if fit.widths.len() > 1 {
                assert!(taken <= available, "{available}: {fit:?}");
            }
            for (column, width) in fit.widths.iter().enumerate().skip(table.figures_from) {
                let cells = table.rows.iter().map(|row| row[column].len() as u16);
                assert!(cells.max() <= Some(*width), "{available}: {fit:?}");
            }
        }
        assert_eq!(table.columns_in(90).spacing, 2);
        assert_eq!(table.columns_in(53).widths.len(), 8);
    }

    #[test]
    fn rows_come_before_heads_and_titles() {
        let table = table();
        let fit = |lines| {
            let fit = table.rows_in(lines);
            (fit.has_title, fit.has_head)
        };
        assert_eq!(fit(2), (false, false));
        assert_eq!(fit(3), (true, false));
        assert_eq!(fit(4), (true, true));
    }

    #[test]
    fn too_few_lines_are_shared_and_none_is_lost() {
        assert_eq!(share_lines(&[4, 4, 3], 20), [4, 4, 3]);
        assert_eq!(share_lines(&[4, 4, 3], 7), [3, 2, 2]);
        assert_eq!(share_lines(&[100, 3], 8), [5, 3]);
        assert_eq!(share_lines(&[], 8), Vec::<u16>::new());
    }
}
