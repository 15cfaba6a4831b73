//! The lines of figures of one stream of iperf, and which of them is that of the whole test.
//!
//! What must hold: a line is added, and the whole found, in the same time however many lines there are.

use std::ops::Deref;

use crate::IperfLine;

/// The lines, in the order in which they came.
#[derive(Clone, Debug)]
pub struct Lines<T> {
    all: Vec<T>,
    latest_end: f64,
    whole: Option<usize>,
}

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Lines {
            all: Vec::new(),
            latest_end: 0.0,
            whole: None,
        }
    }
}

impl<T> Deref for Lines<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.all
    }
}

impl<T: AsRef<IperfLine>> Lines<T> {
    pub fn add(&mut self, line: T) {
        let figures = line.as_ref();
        if figures.end > self.latest_end {
            self.latest_end = figures.end;
            self.whole = None;
        }
        if figures.start == 0.0 && figures.end >= self.latest_end {
            self.whole = Some(self.all.len());
        }
        self.all.push(line);
    }

    /// The position of the line of the whole test: the last one from 0 that reaches to the latest end.
    pub fn whole(&self) -> Option<usize> {
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_the_last_line_from_0_that_reaches_to_the_end() {
        let mut lines: Lines<IperfLine> = Lines::default();
        let mut wholes = Vec::new();
        for (start, end) in [
            (0.0, 1.0),
            (1.0, 2.0),
            (0.0, 2.0),
            (0.0, 1.5),
            (2.0, 3.0),
            (0.0, 3.0),
            (0.0, 3.0),
        ] {
            lines.add(IperfLine {
                start,
                end,
                ..IperfLine::default()
            });
            wholes.push(lines.whole());
        }
        assert_eq!(
            wholes,
            [Some(0), None, Some(2), Some(2), None, Some(5), Some(6)]
        );
        assert_eq!(lines.len(), 7);
    }
}
