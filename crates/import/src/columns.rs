//! Plain numbers: one a line, or a column of a table. `#` begins a comment, as in ministat(1).

use nicpoll_model::FileError;

use crate::{Quantity, ToolRun, error};

/// The numbers of a column, from 1, each a run of its own. Columns are separated by blanks or commas.
pub fn parse(text: &str, column: usize) -> Result<Vec<ToolRun>, FileError> {
    let mut runs = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        let data = line.split('#').next().unwrap_or_default();
        let words = data.split([' ', '\t', ',', '\r']);
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        if words.is_empty() {
            continue;
        }
        let Some(word) = column.checked_sub(1).and_then(|it| words.get(it)) else {
            let columns = words.len();
            let message = format!("there is no column {column}: the line has {columns}");
            return Err(error(at, message));
        };
        let value = word.parse().ok().filter(|value: &f64| value.is_finite());
        let Some(value) = value else {
            return Err(error(at, unread(word, runs.is_empty())));
        };
        let mut run = ToolRun::new(at, Quantity::Number);
        run.value = Some(value);
        runs.push(run);
    }
    Ok(runs)
}

/// What to say of a word that is no number.
fn unread(word: &str, is_first: bool) -> String {
    let word: String = word.chars().take(40).collect();
    if is_first {
        format!(
            "'{word}' is no number, and the text is not that of iperf3 -J, iperf 2, netblast or netreceive; \
             comments begin with #"
        )
    } else {
        format!("'{word}' is no number; comments begin with #")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, column: usize) -> Vec<f64> {
        let runs = parse(text, column).unwrap();
        runs.into_iter().filter_map(|run| run.value).collect()
    }

    #[test]
    fn a_column_is_read() {
        assert_eq!(
            values("1\n\n# two\n2.5e3 # spike\r\n-3\n", 1),
            [1.0, 2500.0, -3.0]
        );
        assert_eq!(values("a 1\nb\t2\nc,3\n", 2), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        let fails = |text, column| parse(text, column).unwrap_err().to_string();
        assert_eq!(
            fails("1\n2\n3 4\n", 2),
            "line 1: there is no column 2: the line has 1"
        );
        assert_eq!(
            fails("1\n2\nx3\n", 1),
            "line 3: 'x3' is no number; comments begin with #"
        );
        assert!(fails("\nhello\n", 1).starts_with("line 2: 'hello' is no number, and the text"));
        assert!(fails("1\nnan\n", 1).contains("'nan' is no number"));
        assert!(fails("1\n", 0).contains("no column 0"));
    }
}
