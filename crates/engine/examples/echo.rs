//! A UDP echo server past the kernel's stack: each datagram to a port goes back to where it came from.
//!
//! `sudo cargo run --release -p nicpoll-engine --example echo -- em0 7`
//!
//! One AF_XDP socket receives and sends. Everything else that comes to the interface is still the kernel's, ARP
//! included, so that clients find the server.

use std::error::Error;
use std::net::SocketAddr;

use nicpoll_core::{Command, Device};
use nicpoll_engine::{DeviceChoice, DeviceKind, PacketInput, Reception, Take};
use nicpoll_sys::packet::Transmit;
use nicpoll_wire::frame::{Frame, UdpPath};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What is to be sent back.
#[derive(Default)]
struct Replies(Vec<Vec<u8>>);

impl PacketInput for Replies {
    fn packet(&mut self, frame: &[u8]) {
        self.0.extend(reply_to(frame));
    }
}

fn reply_to(frame: &[u8]) -> Option<Vec<u8>> {
    let asked = Frame::parse(frame).ok()?;
    let (ip, udp) = asked.udp()?;
    let path = UdpPath {
        source_mac: asked.destination,
        destination_mac: asked.source,
        source: SocketAddr::new(ip.destination, udp.destination),
        destination: SocketAddr::new(ip.source, udp.source),
    };
    let mut reply = vec![0; frame.len().max(64)];
    let length = path.write(udp.payload, &mut reply).ok()?;
    reply.truncate(length);
    Some(reply)
}

/// Serves a UDP port at an interface until it shall not go on.
pub fn serve(interface: &str, port: u16, goes_on: impl Fn() -> bool) -> Result<(), Box<dyn Error>> {
    let reception = Reception {
        interface,
        take: &Take::Ports([port].into()),
        frames: 4096,
        transmit_frames: 1024,
    };
    let mut opened = DeviceChoice::Only(DeviceKind::AfXdp).receive(&reception, Replies::default)?;
    while goes_on() {
        for (queue, sender) in opened.ports.iter_mut().zip(&mut opened.senders) {
            // No more than can be sent back.
            let room = sender.room();
            queue.poll(Command::PollOnly, room.min(64));
            let mut replies = std::mem::take(&mut queue.input.0).into_iter();
            sender.transmit(room, |memory| {
                let reply = replies.next()?;
                memory[..reply.len()].copy_from_slice(&reply);
                Some(reply.len())
            })?;
        }
        if opened.ports.iter().all(|queue| queue.queue.waiting() == 0) {
            let wake_ups = opened.ports.iter().filter_map(|queue| queue.wake_up());
            let mut fds: Vec<_> = wake_ups
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            let while_idle = Timespec {
                tv_sec: 0,
                tv_nsec: 100_000_000,
            };
            poll(&mut fds, Some(&while_idle))?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [interface, port] = &arguments[..] else {
        return Err("usage: echo IF PORT".into());
    };
    serve(interface, port.parse()?, || true)
}
