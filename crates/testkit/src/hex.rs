//! Bytes as recorded packets are written down.

/// Bytes from hexadecimal digits, two each; anything else separates.
///
/// # Panics
/// In the test, where a digit is left over.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|letter| Some(letter.to_digit(16)? as u8))
        .collect();
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => high << 4 | low,
            _ => panic!("a digit is left over in {text}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn digits_are_bytes_however_they_are_set_apart() {
        assert_eq!(hex("0800 45\n0A-ff"), [8, 0, 0x45, 10, 255]);
        assert!(hex("").is_empty());
    }
}
