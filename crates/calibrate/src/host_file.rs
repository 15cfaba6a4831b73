//! Writing fitted numbers into host files: the lines that are marked so, and nothing else.

use nicpoll_model::FileError;
use nicpoll_sim::HostModel;

/// How the remark on a fitted number begins.
const MARK: &str = "# fitted";
/// Remarks stand in this column where the number leaves room.
const REMARK_COLUMN: usize = 29;

/// The text of a host file with the numbers of `host` in the lines that are marked as fitted.
///
/// # Errors
/// The line that is marked and gives no number of a host.
pub fn with_fitted(text: &str, host: &HostModel) -> Result<String, FileError> {
    let mut written = String::with_capacity(text.len());
    let mut section = "";
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        let Some((number, remark)) = line.split_once(MARK) else {
            written.push_str(line);
            continue;
        };
        let name = number.split('=').next().unwrap_or_default().trim();
        let value = host.get(&format!("{section}.{name}")).ok_or_else(|| FileError {
            line: index + 1,
            message: format!(
                "this line is marked '{MARK}' but gives no number of a host; write NAME = NUMBER {MARK}"
            ),
        })?;
        let number = format!("{name} = {value}");
        written.push_str(&format!("{number:<REMARK_COLUMN$}{MARK}{remark}"));
    }
    Ok(written)
}

/// The numbers that a host file marks as fitted: `cpu.tick_ns` and the like.
pub fn fitted_fields(text: &str) -> Vec<String> {
    let mut section = "";
    let mut fields = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        if let Some((number, _)) = line.split_once(MARK) {
            let name = number.split('=').next().unwrap_or_default().trim();
            fields.push(format!("{section}.{name}"));
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_lines_change() {
        let text = "# fits\nname = \"x\"\n[cpu]\nhz = 1000 # stated\ntick_ns = 5  # fitted: work\n\
                    [card]\npoll_ns=7 # fitted";
        let mut host = HostModel::default();
        host.set("cpu.tick_ns", 1234).unwrap();
        host.set("card.poll_ns", 8).unwrap();
        let written = with_fitted(text, &host).unwrap();
        let expected = "# fits\nname = \"x\"\n[cpu]\nhz = 1000 # stated\n\
                        tick_ns = 1234               # fitted: work\n\
                        [card]\npoll_ns = 8                  # fitted";
        assert_eq!(written, expected);
        assert_eq!(fitted_fields(text), ["cpu.tick_ns", "card.poll_ns"]);
        assert_eq!(with_fitted(&written, &host).as_ref(), Ok(&written));
    }

    #[test]
    fn a_mark_without_a_number_is_refused() {
        let error = with_fitted("[cpu]\n\nherz = 5 # fitted\n", &HostModel::default()).unwrap_err();
        assert_eq!(error.line, 3);
    }
}
