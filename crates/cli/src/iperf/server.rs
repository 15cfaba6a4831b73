//! The end that is asked for tests: any number of clients, each stream on a thread of its own, until a
//! signal, the time (-t) or the number of connections (-P) ends it.

mod tcp;
mod udp;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use nicpoll_traffic::Signals;
use nicpoll_traffic::iperf::SocketOptions;
use nicpoll_traffic::iperf::options::{Common, ServerOptions};
use nicpoll_traffic::iperf::text;

use super::events::{Event, Failed};
use super::printer::Printer;
use super::{manner, open_output, settings};

/// How often the end of the time is looked at while nobody connects.
const PATIENCE: Duration = Duration::from_millis(200);
/// A client that says nothing for this long is given up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// What every stream needs to know.
#[derive(Clone, Copy)]
struct Server<'a> {
    options: &'a ServerOptions,
    bind: SocketAddr,
    signals: &'a Signals,
}

/// Runs a server. Returns the exit status.
pub fn run(options: &ServerOptions, signals: &Signals) -> io::Result<u8> {
    let common = &options.common;
    let bind = match address(common) {
        Ok(bind) => bind,
        Err(error) => return Ok(refuse(common, &error)),
    };
    let mut printer = Printer::new(manner(common), open_output(common)?);
    let (events, told) = mpsc::channel();
    let server = Server {
        options,
        bind,
        signals,
    };
    thread::scope(|scope| {
        let printing = scope.spawn(move || print(&told, &mut printer));
        let served = if common.udp {
            udp::serve(server, scope, &events)
        } else {
            tcp::serve(server, scope, &events)
        };
        drop(events);
        let printed = printing
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the printing thread panicked")));
        match (served, printed) {
            (Err(error), _) => Ok(refuse(common, &error)),
            (Ok(()), printed) => printed.map(|()| 0),
        }
    })
}

fn refuse(common: &Common, error: &io::Error) -> u8 {
    eprintln!("{}", text::bind_failed(common.style, &error.to_string()));
    1
}

impl Server<'_> {
    /// Takes clients until it is time to end. `take` returns the thread of the next one, or `None`
    /// when nobody came for a while.
    fn each_client<'scope>(
        &self,
        mut take: impl FnMut() -> io::Result<Option<ScopedJoinHandle<'scope, ()>>>,
    ) -> io::Result<()> {
        let options = self.options;
        let end = options.time.map(|time| Instant::now() + time);
        let mut running: Vec<ScopedJoinHandle<'scope, ()>> = Vec::new();
        let mut taken = 0;
        loop {
            let is_stopped = self.signals.sender_done.load(Ordering::Acquire);
            let is_over = is_stopped
                || end.is_some_and(|end| Instant::now() >= end)
                || options.connections.is_some_and(|most| taken >= most);
            running.retain(|stream| !stream.is_finished());
            if is_over {
                if is_stopped && !running.is_empty() {
                    eprintln!("{}", text::WAITING_FOR_THREADS);
                }
                return Ok(());
            }
            let Some(stream) = take()? else {
                continue;
            };
            taken += 1;
            if options.single_client {
                // What the stream came to has been told.
                let _ = stream.join();
            } else {
                running.push(stream);
            }
        }
    }

    fn socket_options(&self) -> SocketOptions {
        let common = &self.options.common;
        SocketOptions {
            device: common.bind.as_ref().and_then(|bind| bind.device.clone()),
            type_of_service: common.tos,
            time_to_live: None,
        }
    }
}

/// Tells that the server is up.
fn announce(common: &Common, granted_bytes: u64, events: &mpsc::Sender<Event>) {
    let settings = settings::of_listener(common, common.port, granted_bytes);
    let _ = events.send(Event::Settings(settings));
}

fn print(told: &mpsc::Receiver<Event>, printer: &mut Printer) -> io::Result<()> {
    for event in told {
        match event {
            Event::Settings(text) => printer.banner(&text)?,
            Event::Connected(key, connected) => printer.connected(key, &connected)?,
            Event::Interval(key, record) => printer.interval(key, &record)?,
            Event::Finished(key, Ok(total)) => printer.finished(key, &total)?,
            Event::Finished(key, Err(failed)) => {
                if let Failed::Because(text) = failed {
                    eprintln!("{text}");
                }
                printer.ended(key)?;
            }
        }
    }
    Ok(())
}

fn address(common: &Common) -> io::Result<SocketAddr> {
    let Some(bind) = &common.bind else {
        // An IPv6 socket serves IPv4 as well.
        return Ok(match common.ipv6 {
            true => (Ipv6Addr::UNSPECIFIED, common.port).into(),
            false => (Ipv4Addr::UNSPECIFIED, common.port).into(),
        });
    };
    let mut found = (bind.address.as_str(), common.port).to_socket_addrs()?;
    found
        .next()
        .ok_or_else(|| io::Error::other("the address has no meaning here"))
}
