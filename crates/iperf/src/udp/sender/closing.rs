//! The end of a UDP stream at its sender: FINs until one is answered.
//!
//! What must hold: whichever version serves, its first look at a FIN tells it how much was sent, and
//! a server that sends anything at all cannot keep the client from ending.

use std::thread;
use std::time::{Duration, Instant};

use crate::wire::reply::{Reply, classify};
use crate::wire::tcp::HeaderAck;
use crate::wire::{Dialect, ServerReport, Version};

use super::{SendError, Sender};

/// After an answer, answers to the other FINs are awaited until this long a silence,
const LATE_ACK_SILENCE: Duration = Duration::from_millis(20);
/// and never longer than this.
const LATE_ACK_LIMIT: Duration = Duration::from_millis(250);

/// How often a 2.1.8 client sends its FIN again,
const RETRIES: u32 = 200;
/// and one of 2.0.x, whose servers answer ten FINs and no more.
const OLD_RETRIES: u32 = 9;
/// An answer is awaited at least this long, as 2.0.x clients do.
const FIN_LIMIT: Duration = Duration::from_millis(2500);

/// FINs that are sent where none is answered. 2.1.8 sends one, and loses the end with it.
const FINS_UNANSWERED: u32 = 3;

/// How often the FIN is sent again to such a server.
fn retries(server: Dialect) -> u32 {
    match server {
        Dialect::V2_0_2 | Dialect::V2_0_8 | Dialect::V2_0_10 | Dialect::V2_0_13 => OLD_RETRIES,
        _ => RETRIES,
    }
}

/// What came of the end so far.
#[derive(Default)]
pub(super) struct Closing {
    pub(super) has_begun: bool,
    pub(super) fins_sent: u64,
    pub(super) fins_refused: u64,
    pub(super) acks_received: u64,
    pub(super) server_report: Option<ServerReport>,
}

impl Sender<'_> {
    /// Ends the stream. A server that never answers is no error.
    pub(super) fn close(&mut self) -> Result<(), SendError> {
        self.closing.has_begun = true;
        self.take_early_replies()?;
        let begun = Instant::now();
        let mut server = self.batch.dialect;
        let mut tries = 0;
        while tries <= retries(server) {
            self.stop_if_cancelled()?;
            self.send_fin()?;
            if self.await_ack(server.fin_every())? {
                return self.await_late_acks();
            }
            tries += 1;
            // It has told its version only now, and may not have understood the FINs so far. A second
            // version would be no server's.
            if server == self.plan.stream.dialect && self.batch.dialect != server {
                (server, tries) = (self.batch.dialect, 0);
            }
        }
        if self.await_ack(FIN_LIMIT.saturating_sub(begun.elapsed()))? {
            return self.await_late_acks();
        }
        Ok(())
    }

    /// Ends a stream whose FINs nobody answers.
    pub(super) fn close_unanswered(&mut self) -> Result<(), SendError> {
        self.closing.has_begun = true;
        for repetition in 0..FINS_UNANSWERED {
            self.stop_if_cancelled()?;
            if repetition > 0 {
                thread::sleep(Dialect::V2_1.fin_every());
            }
            self.send_fin()?;
        }
        Ok(())
    }

    /// Sends a FIN. Its id is the same each time, so that whichever arrives first tells how much was
    /// sent; the originals since 2.0.10 change it, and a server that misses the first one then counts a
    /// datagram that never was.
    fn send_fin(&mut self) -> Result<(), SendError> {
        if self.send(-self.next_id(), self.plan.payload.len())? {
            self.closing.fins_sent += 1;
        } else {
            self.closing.fins_refused += 1;
        }
        Ok(())
    }

    /// Takes what came before the first FIN and therefore answers none: header acknowledgements of
    /// 2.0.10 to 2.0.13.
    fn take_early_replies(&mut self) -> Result<(), SendError> {
        let peer = self.peer;
        let failed = |source| SendError::Receive { peer, source };
        self.socket.set_nonblocking(true).map_err(failed)?;
        let deadline = Instant::now() + LATE_ACK_LIMIT;
        let mut buffer = [0; 64];
        while Instant::now() < deadline
            && let Some(length) = self.receive(&mut buffer)?
        {
            if let Some(ack) = HeaderAck::parse(&buffer[..length]) {
                self.learn(ack.version);
            }
        }
        self.socket.set_nonblocking(false).map_err(failed)
    }

    /// From now on FINs are written as the server reads them. A version that was asked for stays.
    fn learn(&mut self, server: Version) {
        if self.plan.stream.dialect == Dialect::V2_1 {
            self.batch.dialect = Dialect::of_server(server);
        }
    }

    /// Waits for the answers to the remaining FINs, which would otherwise find no socket and be
    /// missing from the account of what was sent and received.
    fn await_late_acks(&mut self) -> Result<(), SendError> {
        let deadline = Instant::now() + LATE_ACK_LIMIT;
        while self.closing.acks_received < self.closing.fins_sent
            && Instant::now() < deadline
            && self.await_ack(LATE_ACK_SILENCE)?
        {}
        Ok(())
    }

    /// Waits for one answer to a FIN; `false` when none came in time.
    fn await_ack(&mut self, timeout: Duration) -> Result<bool, SendError> {
        let deadline = Instant::now() + timeout;
        let mut buffer = [0; 2048];
        loop {
            self.stop_if_cancelled()?;
            if let Some(length) = self.receive(&mut buffer)? {
                let batch = &self.batch;
                let is_ack = match classify(&buffer[..length], batch.payload(), batch.dialect) {
                    Reply::HeaderAck(version) => {
                        self.learn(version);
                        false
                    }
                    Reply::Report(report) => {
                        self.closing.server_report = Some(report);
                        true
                    }
                    Reply::Echo | Reply::BareAck => true,
                };
                if is_ack {
                    self.closing.acks_received += 1;
                    return Ok(true);
                }
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }
}
