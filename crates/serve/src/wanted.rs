//! Between the server and whoever makes its pages: a socket on which a page is asked for, and comes as an open file.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg,
    socketpair,
};
use serde::{Deserialize, Serialize};

use crate::connection::MadePage;
use crate::request::ServedPage;

/// Messages are this long at most.
const MESSAGE_MAX_BYTES: usize = 256;
/// How often is looked whether to end.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// What is said of a page that was made.
#[derive(Debug, Serialize, Deserialize)]
struct PageHead {
    status: String,
    is_live: bool,
}

/// What came of a page.
pub(crate) enum PageResult {
    /// It was made.
    Page(MadePage),
    /// It was not, or there was no descriptor left to take it.
    Nothing,
    /// No more will be made.
    End,
}

/// An end of the socket. It is closed when the other is.
#[derive(Debug)]
pub struct PagesEnd(OwnedFd);

/// Both ends: the server's, and that of whoever makes pages.
///
/// # Errors
/// When the kernel has no socket.
pub fn pages_socket() -> io::Result<(PagesEnd, PagesEnd)> {
    let (one, other) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok((PagesEnd(one), PagesEnd(other)))
}

impl AsFd for PagesEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl PagesEnd {
    /// Asks for a page. Returns whether somebody was there to be asked.
    pub(crate) fn ask(&self, page: &ServedPage) -> io::Result<bool> {
        let text = serde_json::to_vec(page)?;
        match send(&self.0, &text, SendFlags::NOSIGNAL) {
            Ok(_) => Ok(true),
            Err(Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// What comes of a page that was asked for.
    pub(crate) fn receive(&self) -> io::Result<PageResult> {
        let mut bytes = [0; MESSAGE_MAX_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut files = RecvAncillaryBuffer::new(&mut space);
        let mut part = [IoSliceMut::new(&mut bytes)];
        let read = recvmsg(&self.0, &mut part, &mut files, RecvFlags::CMSG_CLOEXEC)?.bytes;
        if read == 0 {
            return Ok(PageResult::End);
        }
        let file = files.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        let Some(file) = file.map(File::from) else {
            return Ok(PageResult::Nothing);
        };
        let head: PageHead = serde_json::from_slice(&bytes[..read])?;
        Ok(PageResult::Page(MadePage {
            status: head.status,
            is_live: head.is_live,
            length: file.metadata()?.len(),
            file,
        }))
    }

    /// Gives a page to the server, or nothing. Returns whether it is still there.
    fn give(&self, made: Option<(String, bool, File)>) -> io::Result<bool> {
        let (status, is_live, file) = match made {
            Some((status, is_live, file)) => (status, is_live, Some(file)),
            None => (String::new(), false, None),
        };
        let head = serde_json::to_vec(&PageHead { status, is_live })?;
        let files: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            message.push(SendAncillaryMessage::ScmRights(&files));
        }
        let head = [IoSlice::new(&head)];
        match sendmsg(&self.0, &head, &mut message, SendFlags::NOSIGNAL) {
            Ok(_) => Ok(true),
            Err(Errno::PIPE) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Has `make` make each page that the server at the other end asks for, until that is gone or `is_over` becomes true. It
/// returns the status of HTTP, whether the page will have changed soon, and the file that it is in. Where it fails, the
/// server says so to whoever asked.
///
/// # Errors
/// When the socket fails.
pub fn make_pages(
    server: &PagesEnd,
    is_over: &AtomicBool,
    mut make: impl FnMut(&ServedPage) -> io::Result<(String, bool, File)>,
) -> io::Result<()> {
    let mut bytes = [0; MESSAGE_MAX_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        let mut wanted = [PollFd::from_borrowed_fd(server.as_fd(), PollFlags::IN)];
        match poll(&mut wanted, Some(&LOOK_EVERY)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let (read, _) = recv(&server.0, &mut bytes, RecvFlags::empty())?;
        if read == 0 {
            return Ok(());
        }
        if !server.give(make(&serde_json::from_slice(&bytes[..read])?).ok())? {
            return Ok(());
        }
    }
    Ok(())
}
