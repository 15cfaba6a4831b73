//! Threads, listeners and real-time priority, for either end.

use std::io;
use std::sync::mpsc;
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

use nicpoll_model::Protocol;
use nicpoll_sys::schedule::{Policy, set_policy};
use nicpoll_sys::tell;
use nicpoll_traffic::sockets::kernel_words;

use crate::config::ListenerConfig;
use crate::events::{Event, Reporter, StreamKey};
use crate::options::{Options, Style};
use crate::output;
use crate::records::Total;
use crate::slots::Slots;
use crate::stream::{Error, Listen, SPEAKER};
use crate::{tcp, udp};

/// Runs one stream.
pub type StreamJob<'a> = Box<dyn FnOnce(&mut Reporter) -> Result<Total, Error> + Send + 'a>;

/// Runs `run` on its own thread.
///
/// # Errors
/// When no thread can be created; nothing else fails.
pub fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let named = Builder::new().name(String::from("nicpoll-iperf"));
    named.spawn_scoped(scope, run)
}

/// Runs streams in parallel to their ends, the last one on the caller's thread.
pub fn run_streams(mut streams: Vec<(StreamKey, StreamJob<'_>)>, events: &mpsc::Sender<Event>) {
    thread::scope(|scope| {
        let last = streams.pop();
        for (key, job) in streams {
            if let Err(error) = spawn(scope, move || Reporter::run(key, events, job)) {
                Reporter::fail(key, events, Error::no_thread(error));
            }
        }
        if let Some((key, job)) = last {
            Reporter::run(key, events, job);
        }
    });
}

/// Starts to listen. With a `style`, the error for an unavailable port includes iperf's words.
///
/// # Errors
/// When the socket cannot be made or bound.
pub fn listen(
    config: &ListenerConfig,
    slots: &Slots,
    style: Option<Style>,
) -> Result<Box<dyn Listen>, Error> {
    let listener: Result<Box<dyn Listen>, Error> = match config.stream.protocol {
        Protocol::Tcp => tcp::Listener::with_slots(config, slots).map(|tcp| Box::new(tcp) as _),
        Protocol::Udp => udp::Listener::with_slots(config, slots).map(|udp| Box::new(udp) as _),
    };
    listener.map_err(|error| match (error, style) {
        (Error::Bind { what, source }, Some(style)) => {
            let words = output::bind_failed(style, &kernel_words(&source));
            Error::Told(format!("{words}\n{SPEAKER}{what}"))
        }
        (error, _) => error,
    })
}

/// Requests real-time scheduling if the options ask for it (-z). Threads inherit it, so this runs before any
/// are started. If refused, prints a warning and the test goes on, as in 2.1.8.
pub fn begin_realtime(options: &Options) {
    // The lowest real-time priority: above every normal program, below the kernel's own threads.
    const POLICY: Policy = Policy::RoundRobin { priority: 1 };
    const SELF: u32 = 0;
    if options.is_realtime
        && let Err(error) = set_policy(SELF, POLICY)
    {
        tell!("WARNING: no realtime priority (-z): {error}; run it as root or with CAP_SYS_NICE");
    }
}
