//! Standard error, where everything goes that is no result.
//!
//! What must hold: what cannot be told, because the disk is full or nobody reads any more, changes nothing
//! else. What the program was asked for is done all the same, and its exit status says how that went.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line as `eprintln!` does, which panics when it cannot.
#[macro_export]
macro_rules! tell {
    ($($words:tt)*) => {
        $crate::stderr::print(::std::format_args!("{}\n", ::std::format_args!($($words)*)))
    };
}

/// Writes a text at once, as a whole, so that the lines of several threads do not mix.
pub fn print(text: impl Display) {
    let _ = io::stderr().lock().write_all(text.to_string().as_bytes());
}
