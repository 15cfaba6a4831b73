//! The receiving end of one TCP stream, for whoever needs no more.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nicpoll_traffic::Signals;

use super::{Error, Listener, ReceiveReport, ServerConfig, Streams};
use crate::config::ListenerConfig;

/// A listening server, for one stream.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    idle_timeout: Duration,
}

impl Server {
    /// Begins to listen; clients may connect from now on.
    ///
    /// # Errors
    /// [`Error::Bind`].
    pub fn bind(config: &ServerConfig) -> Result<Self, Error> {
        Ok(Server {
            listener: Listener::bind(&ListenerConfig::tcp(*config))?,
            idle_timeout: config.idle_timeout,
        })
    }

    /// The address listened on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Takes one connection and reads it to its end.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(self, signals: &Signals) -> Result<ReceiveReport, Error> {
        let begun = Instant::now();
        let Some(accepted) = self.listener.accept(signals, self.idle_timeout)? else {
            return Err(Error::NoClient {
                address: self.local_addr(),
                seconds: begun.elapsed().as_secs_f64(),
            });
        };
        let peer = accepted.peer();
        match accepted.open(signals)? {
            Streams {
                incoming: Some(incoming),
                outgoing: None,
                back: None,
            } => incoming.run(signals, &mut ()),
            _ => Err(Error::OtherDirection { peer }),
        }
    }
}
