//! Where the frames come from that are sent.

/// Frames, one after the other.
pub(super) trait FrameSource: Send {
    /// Writes the next frame to the start of memory that has room for it, and returns its length; `None` at the end.
    fn write(&mut self, into: &mut [u8]) -> Option<usize>;
}
