//! The server: takes connections, and gives each its turn.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use crate::connection::{BrowserConnection, MadePage, words};
use crate::request::ServedPage;
use crate::wanted::{PageResult, PagesEnd};

/// Connections at once. One more takes the place of the one that has been there longest.
pub const CONNECTIONS_MAX: usize = 1024;
/// Bytes of pages that are being sent. One more ends the answer that was begun first.
const PAGES_MAX_BYTES: u64 = 512 << 20;
/// A kernel that has no connection to give is asked again after this.
const PAUSE: Duration = Duration::from_millis(50);

/// A server of pages.
#[derive(Debug)]
pub struct PageServer {
    listener: TcpListener,
    token: Option<String>,
    /// In the order in which they came.
    connections: Vec<BrowserConnection>,
    /// The page that is being made.
    asked: Option<ServedPage>,
    paused_until: Option<Instant>,
}

impl PageServer {
    /// Listens for browsers. They have to know `token`, if there is one.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn bind(address: SocketAddr, token: Option<String>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(PageServer {
            listener,
            token,
            connections: Vec::new(),
            asked: None,
            paused_until: None,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until nobody makes pages any more.
    ///
    /// # Errors
    /// When the kernel does not say what has come.
    pub fn run(mut self, pages: &PagesEnd) -> io::Result<()> {
        loop {
            let ready = self.wait(pages)?;
            let [listener, page, ..] = ready[..] else {
                continue;
            };
            if !page.is_empty() {
                match pages.receive()? {
                    PageResult::Page(made) => self.give_out(Some(Arc::new(made))),
                    PageResult::Nothing => self.give_out(None),
                    PageResult::End => return Ok(()),
                }
            }
            self.serve(&ready[2..]);
            if listener.contains(PollFlags::IN) {
                self.accept();
            }
            self.make_room();
            self.ask(pages)?;
        }
    }

    /// What came of the listener, of the pages and of each connection.
    fn wait(&mut self, pages: &PagesEnd) -> io::Result<Vec<PollFlags>> {
        let now = Instant::now();
        // A page that takes long to make comes late: whoever makes it says when it cannot be had.
        let asked = self.asked.as_ref();
        let is_made = |it: &BrowserConnection| asked.is_some() && it.awaited() == asked;
        self.connections
            .retain(|it| it.until() > now || is_made(it));
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
        }
        let listens = match self.paused_until {
            Some(_) => PollFlags::empty(),
            None => PollFlags::IN,
        };
        let wanted = |it: &BrowserConnection| match (it.is_asking(), it.is_answering()) {
            (true, _) => PollFlags::IN,
            (_, true) => PollFlags::OUT,
            _ => PollFlags::empty(),
        };
        let mut all = vec![
            PollFd::from_borrowed_fd(self.listener.as_fd(), listens),
            PollFd::from_borrowed_fd(pages.as_fd(), PollFlags::IN),
        ];
        let of = |it| PollFd::from_borrowed_fd(BrowserConnection::stream(it).as_fd(), wanted(it));
        all.extend(self.connections.iter().map(of));
        let ending = self.connections.iter().filter(|it| !is_made(it));
        let ends = ending.map(BrowserConnection::until);
        let next = ends.chain(self.paused_until).min();
        let left = next.map(|next| next.saturating_duration_since(now) + Duration::from_millis(1));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut all, left.as_ref()) {
            Ok(_) => Ok(all.iter().map(PollFd::revents).collect()),
            Err(Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on with those connections that can.
    fn serve(&mut self, ready: &[PollFlags]) {
        let mut ready = ready.iter();
        let token = self.token.as_deref();
        self.connections.retain_mut(|connection| {
            let ready = ready.next().copied().unwrap_or(PollFlags::empty());
            let is_gone = ready.contains(PollFlags::HUP) && connection.awaited().is_some();
            if is_gone || ready.intersects(PollFlags::ERR | PollFlags::NVAL) {
                return false;
            }
            let read = match ready.intersects(PollFlags::IN | PollFlags::HUP) {
                true => connection.read(token),
                false => Ok(()),
            };
            // A short answer fits at once.
            let is_over = read.and_then(|()| connection.write());
            is_over.is_ok_and(|is_over| !is_over)
        });
    }

    fn accept(&mut self) {
        loop {
            match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(stream) => {
                    if self.connections.len() >= CONNECTIONS_MAX {
                        self.end_one();
                    }
                    // One that is gone already has no address.
                    let connection = BrowserConnection::new(TcpStream::from(stream));
                    self.connections.extend(connection);
                }
                Err(Errno::AGAIN) => return,
                // Gone before it was answered, or a signal.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                // No descriptor or no memory: that passes.
                Err(_) => {
                    self.end_one();
                    self.paused_until = Some(Instant::now() + PAUSE);
                    return;
                }
            }
        }
    }

    /// Ends the connection that has been silent longest, or else the first.
    fn end_one(&mut self) {
        let silent = self
            .connections
            .iter()
            .position(BrowserConnection::is_asking);
        if !self.connections.is_empty() {
            self.connections.remove(silent.unwrap_or(0));
        }
    }

    /// Sends a page that was made to all who wait for it, or says that there is none.
    fn give_out(&mut self, made: Option<Arc<MadePage>>) {
        let Some(page) = self.asked.take() else {
            return;
        };
        let waiting = self.connections.iter_mut();
        for connection in waiting.filter(|it| it.awaited() == Some(&page)) {
            match &made {
                Some(made) => connection.answer(made),
                None => {
                    let sorry = words("this page could not be made just now: ask again");
                    connection.say("503 Service Unavailable", "", &sorry);
                }
            }
        }
    }

    /// Ends answers, the first begun first, until the pages that are held are few enough.
    fn make_room(&mut self) {
        while self.held_bytes() > PAGES_MAX_BYTES {
            let first = self.connections.iter().position(|it| it.page().is_some());
            match first {
                Some(first) => self.connections.remove(first),
                None => return,
            };
        }
    }

    fn held_bytes(&self) -> u64 {
        let pages = self.connections.iter().filter_map(BrowserConnection::page);
        let share = |page: &Arc<MadePage>| page.length / Arc::strong_count(page).max(1) as u64;
        pages.map(share).sum()
    }

    /// Asks for the page that somebody has waited for longest.
    fn ask(&mut self, pages: &PagesEnd) -> io::Result<()> {
        if self.asked.is_some() {
            return Ok(());
        }
        let mut waiting = self
            .connections
            .iter()
            .filter_map(BrowserConnection::awaited);
        let Some(page) = waiting.next().cloned() else {
            return Ok(());
        };
        let is_asked = pages.ask(&page)?;
        self.asked = Some(page);
        if !is_asked {
            self.give_out(None);
        }
        Ok(())
    }
}
