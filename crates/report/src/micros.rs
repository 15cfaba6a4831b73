//! The unit of a millionth of a second, in the letters that a terminal can show.
//!
//! What must hold: only the unit behind a number changes, and never the length of a line.

/// Text for people with microseconds as their locale can show them: `200 us` is `200 µs` where letters are UTF-8, and
/// `20µs` is `20us` elsewhere.
pub fn with_micros(text: &str, is_utf8: bool) -> String {
    if !is_utf8 {
        return text.replace("µs", "us");
    }
    let mut parts = text.split(" us");
    let mut shown = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let is_unit = shown.ends_with(|c: char| c.is_ascii_digit())
            && !part.starts_with(|c: char| c.is_alphanumeric());
        shown.push_str(if is_unit { " µs" } else { " us" });
        shown.push_str(part);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_written_as_the_locale_can_show_them() {
        let text = "period 200 us, at most 1.5 us.\nfor 20µs those who use us use --period 50us\n";
        assert_eq!(
            with_micros(text, true),
            "period 200 µs, at most 1.5 µs.\nfor 20µs those who use us use --period 50us\n"
        );
        assert_eq!(
            with_micros(text, false),
            "period 200 us, at most 1.5 us.\nfor 20us those who use us use --period 50us\n"
        );
    }
}
