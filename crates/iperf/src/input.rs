//! Payload from a file or from standard input, in place of the pattern.
//!
//! What must hold: no more than one block is in memory; a source that has nothing yet does not keep the
//! stream from looking at its signals and its clock.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::event::PollFlags;

use nicpoll_traffic::sockets;

/// Where payload comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

/// What a source has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Block<'a> {
    /// A whole block, or what is left before the end.
    Ready(&'a [u8]),
    /// Nothing yet, or not enough. Some time was spent waiting for it.
    NotYet,
    /// Nothing any more.
    End,
}

/// Cuts what is read into blocks.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    block: Vec<u8>,
    filled: usize,
    is_at_end: bool,
}

impl Source {
    /// Opens what is to be read in blocks of `block_bytes`, 1 at least.
    pub(super) fn open(input: &Input, block_bytes: usize) -> io::Result<Self> {
        let file = match input {
            Input::File(path) => File::open(path)?,
            // Not std's handle, which would read ahead.
            Input::Stdin => File::from(io::stdin().as_fd().try_clone_to_owned()?),
        };
        Ok(Source {
            file,
            block: vec![0; block_bytes.max(1)],
            filled: 0,
            is_at_end: false,
        })
    }

    /// The next block, or that there is none. Waits no longer than until the signals have to be looked
    /// at again.
    pub(super) fn next_block(&mut self) -> io::Result<Block<'_>> {
        while !self.is_at_end && self.filled < self.block.len() {
            if !sockets::poll_once(&self.file, PollFlags::IN)? {
                return Ok(Block::NotYet);
            }
            match self.file.read(&mut self.block[self.filled..]) {
                Ok(0) => self.is_at_end = true,
                Ok(read) => self.filled += read,
                Err(error) if sockets::is_no_progress(&error) => return Ok(Block::NotYet),
                Err(error) => return Err(error),
            }
        }
        match std::mem::take(&mut self.filled) {
            0 => Ok(Block::End),
            filled => Ok(Block::Ready(&self.block[..filled])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn source(path: &std::path::Path, block_bytes: usize) -> Source {
        Source::open(&Input::File(path.to_owned()), block_bytes).unwrap()
    }

    #[test]
    fn a_file_is_read_in_blocks_to_its_last_byte() {
        let path = std::env::temp_dir().join(format!("nicpoll-input-{}", std::process::id()));
        std::fs::write(&path, b"abcdefgh").unwrap();
        let mut source = source(&path, 3);
        std::fs::remove_file(&path).unwrap();
        for block in [&b"abc"[..], b"def", b"gh"] {
            assert_eq!(source.next_block().unwrap(), Block::Ready(block));
        }
        assert_eq!(source.next_block().unwrap(), Block::End);
        assert_eq!(source.next_block().unwrap(), Block::End);
    }

    #[test]
    fn a_pipe_without_enough_is_waited_for_in_slices() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut source = Source {
            file: File::from(std::os::fd::OwnedFd::from(reader)),
            block: vec![0; 4],
            filled: 0,
            is_at_end: false,
        };
        writer.write_all(b"ab").unwrap();
        assert_eq!(source.next_block().unwrap(), Block::NotYet);
        writer.write_all(b"cdef").unwrap();
        assert_eq!(source.next_block().unwrap(), Block::Ready(b"abcd"));
        drop(writer);
        assert_eq!(source.next_block().unwrap(), Block::Ready(b"ef"));
        assert_eq!(source.next_block().unwrap(), Block::End);
    }

    #[test]
    fn what_is_not_there_cannot_be_opened() {
        let missing = Input::File("/nonexistent/payload".into());
        assert!(Source::open(&missing, 1).is_err());
    }
}
