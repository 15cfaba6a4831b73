//! Why a file that people write cannot be read: the line, and what would be right there.

use std::ops::Range;

use thiserror::Error;

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct FileError {
    /// Where in the text, counted from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl FileError {
    /// An error at a span of a text, in bytes.
    pub fn at(text: &str, span: Range<usize>, message: String) -> Self {
        let before = text.as_bytes().get(..span.start).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        FileError { line, message }
    }
}
