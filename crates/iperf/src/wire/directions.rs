//! Which way data flow in a test, as the client header asks for it.

use super::{ClientHeader, HeaderError, flags, upper_flags};

/// Which way data are to flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directions {
    /// From the client to the server.
    #[default]
    Forward,
    /// From the server to the client, over the client's socket (-R).
    Reverse,
    /// Both ways at once over the client's socket (`--full-duplex`).
    FullDuplex,
    /// Both ways, from the server to the client over a socket of its own.
    Dual {
        /// The client's port for it (-L).
        port: u16,
        /// Whether it begins at once (-d) or after the other way has ended (-r).
        is_at_once: bool,
    },
}

impl ClientHeader {
    /// Which way the client asks for.
    ///
    /// # Errors
    /// [`HeaderError::Port`] when it asks for a stream to a port that cannot be.
    pub fn directions(&self) -> Result<Directions, HeaderError> {
        let has = |flag| self.flags & flag != 0;
        if has(flags::VERSION2) {
            if self.asks_for(upper_flags::FULL_DUPLEX) {
                return Ok(Directions::FullDuplex);
            }
            if self.asks_for(upper_flags::REVERSE) {
                return Ok(Directions::Reverse);
            }
            // Who asks for the version only (-X) may ask for -d and -r besides.
        }
        if !has(flags::DUAL) {
            return Ok(Directions::Forward);
        }
        match u16::try_from(self.port) {
            Ok(port) if port > 0 => Ok(Directions::Dual {
                port,
                is_at_once: has(flags::RUN_NOW),
            }),
            _ => Err(HeaderError::Port { port: self.port }),
        }
    }

    /// Asks for `directions` as 2.1.8 does, in a header that asks for nothing yet.
    pub fn ask_for(&mut self, directions: Directions) {
        let over_udp = self.flags & flags::IDS_64_BIT != 0;
        let on_the_socket = if over_udp {
            flags::VERSION2 | flags::UDP_TESTS
        } else {
            flags::VERSION2
        };
        let (added, upper) = match directions {
            Directions::Forward => (0, 0),
            Directions::Reverse => (on_the_socket, upper_flags::REVERSE),
            Directions::FullDuplex if over_udp => (
                on_the_socket,
                upper_flags::FULL_DUPLEX | upper_flags::NO_UDP_FIN,
            ),
            Directions::FullDuplex => (on_the_socket, upper_flags::FULL_DUPLEX),
            Directions::Dual { port, is_at_once } => {
                self.port = u32::from(port);
                let now = if is_at_once { flags::RUN_NOW } else { 0 };
                (flags::DUAL | now, 0)
            }
        };
        self.flags |= added;
        if let Some(extension) = &mut self.extension {
            extension.upper_flags |= upper;
        }
    }
}
