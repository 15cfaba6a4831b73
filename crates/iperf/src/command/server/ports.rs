//! The listeners of one server, one for each port of its range, taken for one.
//!
//! What must hold: whoever comes to one port does not keep those of another from being served.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nicpoll_traffic::{LOOK_EVERY, sockets};
use rustix::event::PollFlags;

use super::Server;

/// The listeners, in the order of their ports; one at least.
pub(super) struct Ports<L> {
    listeners: Vec<L>,
    /// Who is looked at next.
    next: usize,
}

impl<L: AsFd> Ports<L> {
    /// Listens at all ports of the server: at the first with `first`, and at the others with what `beside`
    /// makes of that.
    pub(super) fn bind(
        server: &Server<'_>,
        first: impl FnOnce(SocketAddr) -> io::Result<L>,
        beside: impl Fn(&L, SocketAddr) -> io::Result<L>,
    ) -> io::Result<Self> {
        let common = &server.options.common;
        let first = first(server.bind)?;
        let others = common.last_port.map(|last| common.port + 1..=last);
        let others: Vec<L> = others
            .into_iter()
            .flatten()
            .map(|port| beside(&first, SocketAddr::new(server.bind.ip(), port)))
            .collect::<io::Result<_>>()?;
        let mut listeners = vec![first];
        listeners.extend(others);
        Ok(Ports { listeners, next: 0 })
    }

    /// The listener at the first port.
    pub(super) fn first(&self) -> &L {
        &self.listeners[0]
    }

    /// What `accept` takes of any listener; it waits no longer than it is told.
    pub(super) fn take<T>(
        &mut self,
        patience: Duration,
        mut accept: impl FnMut(&mut L, Duration) -> io::Result<Option<T>>,
    ) -> io::Result<Option<T>> {
        if let [only] = &mut self.listeners[..] {
            return accept(only, patience);
        }
        let begun = Instant::now();
        loop {
            for _ in 0..self.listeners.len() {
                self.next = (self.next + 1) % self.listeners.len();
                if let Some(taken) = accept(&mut self.listeners[self.next], Duration::ZERO)? {
                    return Ok(Some(taken));
                }
            }
            if begun.elapsed() >= patience {
                return Ok(None);
            }
            let is_refused = sockets::poll_any(&self.listeners, PollFlags::IN, Duration::ZERO)?;
            if is_refused {
                // A poll would not wait for those who have to.
                std::thread::sleep(LOOK_EVERY);
            } else {
                sockets::poll_any(&self.listeners, PollFlags::IN, LOOK_EVERY)?;
            }
        }
    }
}
