//! The studies of a store in a browser: a small HTTP server on loopback.
//!
//! Only reads. A client gets pages of the store and nothing else of this machine. A request must name the address
//! that it connected to, so a page of another site that points its own name at this machine (DNS rebinding) is
//! refused. Size, time and number of requests are bounded; each connection carries one.

mod connection;
mod pages;
mod request;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nicpoll_store::Place;

pub use request::{Page, PageRequest, RequestRefusal, read_request};

/// Connections at once.
const CONNECTIONS_MAX: usize = 16;
/// How often is looked whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A server of a store's pages.
#[derive(Debug)]
pub struct StoreServer {
    listener: TcpListener,
    place: Place,
    open: Arc<AtomicUsize>,
}

impl StoreServer {
    /// Listens for browsers that want to see the studies of `place`.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn bind(address: SocketAddr, place: Place) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(StoreServer {
            listener,
            place,
            open: Arc::default(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `is_over` becomes true.
    ///
    /// # Errors
    /// When there are no more connections to be had.
    pub fn run(&self, is_over: &AtomicBool) -> io::Result<()> {
        while !is_over.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok((stream, _)) => self.answer(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    thread::sleep(LOOK_EVERY)
                }
                // Gone before it was answered.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Answers on a thread of its own. One connection too many is closed.
    fn answer(&self, stream: TcpStream) {
        let taken = Taken::of(&self.open);
        if self.open.load(Ordering::Relaxed) > CONNECTIONS_MAX {
            return;
        }
        let place = self.place.clone();
        // Without a thread the connection is closed.
        let _ = thread::Builder::new()
            .name(String::from("nicpoll-serve"))
            .spawn(move || {
                let _taken = taken;
                // Whoever asked may be gone.
                let _ = connection::answer(stream, &place);
            });
    }
}

/// One of the connections at once, for as long as this value lives.
struct Taken(Arc<AtomicUsize>);

impl Taken {
    fn of(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Taken(Arc::clone(open))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
