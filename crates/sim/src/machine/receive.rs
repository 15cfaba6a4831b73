//! A packet's way in: arrival at the card, interrupts, driver, IP queue, protocols, and on to a socket or another card.
//!
//! Hard interrupts (the clock, each card, each deferral timer) are served one at a time, in this order.
//!
//! The ends of a veth pair are two processors of one machine. A packet goes into the ring of the other end, and the
//! sender's own processor takes it out again: there is no hard interrupt, the call itself schedules NAPI. Only the
//! receiving program runs on the other processor. A packet leaves the sending processor when it enters the other's
//! socket, never before.

use nicpoll_model::LossPlace;
use nicpoll_model::line::IpVersion;

use super::card::Hold;
use super::cpu::{CpuStep, Level, Of};
use super::state::{OTHER_PROCESSOR, SimMachine};
use crate::link::{DeliveryCount, Packet, PacketKind};
use crate::spec::discipline::HostKernel;
use crate::spec::traffic::LINKS_MAX;

const BYTES_PER_KIB: u64 = 1024;

/// Returns the cost of `bytes`, given the cost of 1024.
pub fn kib_ns(cost_ns: u64, bytes: u32) -> u64 {
    cost_ns * u64::from(bytes) / BYTES_PER_KIB
}

/// Sources of hard interrupts are bits: the clock, then the cards, then their deferral timers.
const CLOCK: u32 = 1;
const FIRST_DEFERRAL: u32 = 2 << LINKS_MAX;

/// Returns the card of a source that is not the clock.
fn card_of(source: u32) -> usize {
    (source.trailing_zeros() as usize - 1) % LINKS_MAX
}

/// Hard interrupts.
impl SimMachine {
    pub fn raise_clock(&mut self) {
        self.raise(CLOCK);
    }

    pub fn raise_deferral(&mut self, card: usize) {
        self.raise(FIRST_DEFERRAL << card);
    }

    /// Delivers an interrupt to the processor.
    fn raise(&mut self, source: u32) {
        self.cpu.raise(source);
        if !self.cpu.has_work(Level::Hard) {
            self.next_interrupt();
        }
    }

    fn next_interrupt(&mut self) {
        let Some(source) = self.cpu.serve_next() else {
            return;
        };
        let host = &self.host;
        let (step, work_ns) = match source {
            CLOCK => (CpuStep::Tick, host.cpu.tick_ns),
            _ if source >= FIRST_DEFERRAL => (CpuStep::Timer, 0),
            _ => {
                // Linux's handler reads the cause; FreeBSD leaves that to the interrupt thread.
                let handler_ns = match self.kernel {
                    HostKernel::Linux => host.card.interrupt_ns,
                    HostKernel::Freebsd => 0,
                };
                (
                    CpuStep::CardInterrupt,
                    host.background.at_once_ns + handler_ns,
                )
            }
        };
        let cost_ns = host.cpu.interrupt_entry_ns + work_ns;
        self.cpu.start(Level::Hard, step, cost_ns);
    }

    pub fn interrupt_done(&mut self, step: CpuStep) {
        // Stopped first: the handlers may raise the next interrupt.
        self.cpu.stop(Level::Hard);
        let source = self.cpu.served;
        match step {
            CpuStep::Tick => self.clock_ticked(),
            CpuStep::CardInterrupt => self.card_interrupted(card_of(source)),
            _ => self.deferral_over(card_of(source)),
        }
        if !self.cpu.has_work(Level::Hard) {
            self.next_interrupt();
        }
        self.leave_interrupts();
    }

    /// Runs Linux's softirqs on the way out of the last hard interrupt.
    fn leave_interrupts(&mut self) {
        if self.kernel == HostKernel::Linux && !self.cpu.has_work(Level::Hard) {
            self.softirq_on_exit();
        }
    }

    fn clock_ticked(&mut self) {
        self.clock.tick += 1;
        self.tick_programs();
        self.tick_tcp();
        match self.kernel {
            HostKernel::Freebsd => {
                self.tick_netisr();
                self.end_throttling();
            }
            HostKernel::Linux => self.cpu.take_turns(),
        }
    }

    fn card_interrupted(&mut self, card: usize) {
        self.cards[card].is_raised = false;
        self.mask(card);
        let background = &self.host.background;
        if background.interrupt_ns > 0
            && self.cpu.cause_background(background.queue_events)
            && !self.cpu.has_work(Level::Kernel)
        {
            self.next_of_kernel();
        }
        self.driver_interrupted(card);
    }

    /// Notifies the driver of a card that has interrupted and is masked.
    fn driver_interrupted(&mut self, card: usize) {
        match self.kernel {
            HostKernel::Freebsd => self.wake_interrupt_thread(card),
            HostKernel::Linux => self.schedule_napi(card),
        }
    }

    /// Ends a kernel thread's step: a packet sent, or an interrupt's background work.
    pub fn kernel_step_done(&mut self, step: CpuStep) {
        if step == CpuStep::Background {
            self.cpu.background -= 1;
        } else {
            self.output_done(Level::Kernel);
        }
        self.next_of_kernel();
    }

    /// Begins the next step of kernel threads.
    pub fn next_of_kernel(&mut self) {
        if self.output_next(Level::Kernel) {
            return;
        }
        if self.cpu.background > 0 {
            let work_ns = self.host.background.interrupt_ns;
            self.cpu.start(Level::Kernel, CpuStep::Background, work_ns);
        } else {
            self.cpu.stop(Level::Kernel);
        }
    }

    /// Requests an interrupt: the card has work for its driver.
    pub fn request_interrupt(&mut self, card: usize) {
        let at = &mut self.cards[card];
        at.has_cause = true;
        let quiet_until_ns = at.quiet_until_ns;
        let is_waiting = self.timers.is_set(card, Of::Moderation);
        if !at.has_interrupts || at.is_raised || is_waiting {
            return;
        }
        if self.is_veth {
            // NAPI is scheduled, on this processor, and runs as soon as the caller lets it.
            self.mask(card);
            self.driver_interrupted(card);
            self.leave_interrupts();
        } else if quiet_until_ns <= self.now_ns {
            self.interrupt_now(card);
        } else {
            self.timers.set(card, Of::Moderation, quiet_until_ns);
        }
    }

    pub fn interrupt_now(&mut self, card: usize) {
        self.timers.clear(card, Of::Moderation);
        let at = &mut self.cards[card];
        at.is_raised = true;
        at.has_cause = false;
        at.quiet_until_ns = self.now_ns.saturating_add(self.host.card.moderation_ns);
        self.tally.cards[card].figures.interrupts += 1;
        self.raise(CLOCK << (1 + card));
    }

    /// Lets the card interrupt, perhaps at once.
    pub fn unmask(&mut self, card: usize) {
        self.cards[card].has_interrupts = true;
        if self.cards[card].has_news() {
            self.request_interrupt(card);
        }
    }

    /// Keeps the card from interrupting.
    pub fn mask(&mut self, card: usize) {
        self.cards[card].has_interrupts = false;
        self.timers.clear(card, Of::Moderation);
    }
}

/// From the line into the card.
impl SimMachine {
    /// Sends the far end's next datagram.
    pub fn offer(&mut self, card: usize) {
        let now_ns = self.now_ns;
        let Some(far) = &mut self.cards[card].attachment.far else {
            return;
        };
        let Some(clients) = &mut far.clients else {
            return;
        };
        let number = self.shared.flows[far.flow].offer();
        let (client, payload_bytes) = clients.send(number);
        self.timers.set(card, Of::Offer, clients.next_ns());
        let flow = &self.flows[far.flow];
        let fate = self.shared.fates.begin_for(flow);
        for index in 0..flow.shapes.len() {
            let mut packet = flow.packet(index, number, fate, now_ns);
            packet.client = client;
            if let Some(frame) = payload_bytes.and_then(|bytes| far.frames.get(&bytes)) {
                packet.line_bytes = frame.line_bytes;
                packet.payload_bytes = frame.payload_bytes;
            }
            if !far.queue.push(packet) {
                self.shared.lose(self.number, LossPlace::FarQueue, &packet);
            } else if far.queue.len() == 1 {
                let arrival_ns = self.shared.wires[far.wire].carry(now_ns, packet.line_bytes);
                self.timers.set(card, Of::Arrival, arrival_ns);
            }
        }
    }

    /// Expects a frame that has just left another machine's card.
    pub fn expect(&mut self, card: usize, packet: Packet, left_ns: u64) {
        let arrival_ns = left_ns.saturating_add(self.cards[card].attachment.delay_ns);
        let inbound = &mut self.cards[card].inbound;
        inbound.push_back((arrival_ns, packet));
        if inbound.len() == 1 {
            self.timers.set(card, Of::Arrival, arrival_ns);
        }
    }

    /// Handles a frame that has reached the card.
    pub fn arrive(&mut self, card: usize) {
        let Some(mut packet) = self.next_arrival(card) else {
            return;
        };
        packet.arrived_ns = self.now_ns;
        let tally = &mut self.tally.cards[card];
        tally.figures.received_packets += 1;
        tally.received_bytes += u64::from(packet.line_bytes);
        if self.is_veth {
            // The sending processor has run the protocols for it.
            self.put_into_socket(packet);
        } else if self.cards[card].rx_ring.push(packet) {
            self.request_interrupt(card);
        } else {
            self.tally.cards[card].figures.ring_lost_packets += 1;
            self.lose(LossPlace::RxRing, &packet);
        }
    }

    fn next_arrival(&mut self, card: usize) -> Option<Packet> {
        let at = &mut self.cards[card];
        let (packet, next_ns) = if let Some(far) = &mut at.attachment.far {
            let packet = far.queue.pop();
            let wire = &mut self.shared.wires[far.wire];
            let carry = |next: &Packet| wire.carry(self.now_ns, next.line_bytes);
            (packet, far.queue.front().map(carry))
        } else {
            let packet = at.inbound.pop_front().map(|(_, packet)| packet);
            let next = at.inbound.front();
            (packet, next.map(|(arrival_ns, _)| *arrival_ns))
        };
        match next_ns {
            Some(ns) => self.timers.set(card, Of::Arrival, ns),
            None => self.timers.clear(card, Of::Arrival),
        }
        packet
    }
}

/// From the ring to the socket.
impl SimMachine {
    /// Whether a packet's way through the protocols ends here.
    fn is_own(&self, packet: &Packet) -> bool {
        usize::from(packet.to) == self.number || self.is_veth
    }

    /// Returns the driver's work on a received packet, with the protocols' if they follow at once.
    fn receive_ns(&self, packet: &Packet) -> u64 {
        let card = &self.host.card;
        let driver_ns = card.rx_packet_ns + kib_ns(card.rx_kib_ns, packet.payload_bytes);
        if self.input.is_queued {
            driver_ns
        } else if self.input.gro.continues(packet) {
            driver_ns + self.host.network.gro_ns
        } else {
            driver_ns + self.protocol_ns(packet)
        }
    }

    /// Returns the work of IP and the layers above, or of forwarding.
    fn protocol_ns(&self, packet: &Packet) -> u64 {
        let network = &self.host.network;
        let ip_ns = match packet.ip {
            IpVersion::V4 => network.ipv4_ns,
            IpVersion::V6 => network.ipv6_ns,
        };
        if !self.is_own(packet) {
            return ip_ns + network.forward_ns;
        }
        let checksum_ns = kib_ns(network.checksum_kib_ns, packet.payload_bytes);
        let above_ns = match packet.kind {
            PacketKind::Datagram => network.udp_ns,
            PacketKind::Segment(_) => self.host.tcp.segment_ns,
            PacketKind::Ack(_) => self.host.tcp.ack_ns,
            // UDP is entered once, with the fragment that completes the datagram.
            PacketKind::Fragment { of, .. } => {
                let held = self.input.holds[usize::from(packet.flow)];
                let is_last = held.number == packet.number && held.fragments + 1 == u64::from(of);
                if is_last { network.udp_ns } else { 0 }
            }
        };
        ip_ns + above_ns + checksum_ns
    }

    /// Ends a step of work on a card. Returns whether the level has begun the next step on that card; if not, its
    /// batch is complete or the ring is empty.
    pub fn card_step_done(&mut self, level: Level, step: CpuStep) -> bool {
        match step {
            CpuStep::Look if self.reclaim(level) => return true,
            CpuStep::Reclaim { done } => self.reclaimed(level, done),
            CpuStep::Receive => self.take_from_card(level),
            CpuStep::Transmit => self.output_done(level),
            _ => {}
        }
        self.receive_next(level)
    }

    /// Begins the next packet of a level's batch, after any packets to send.
    fn receive_next(&mut self, level: Level) -> bool {
        if self.output_next(level) || self.wake_other(level) {
            return true;
        }
        let batch = self.cpu.batches[level as usize];
        if batch.left == 0 {
            return false;
        }
        let Some(packet) = self.cards[batch.card].rx_ring.front() else {
            return false;
        };
        let cost_ns = self.receive_ns(packet);
        self.cpu.batches[level as usize].left -= 1;
        self.cpu.start(level, CpuStep::Receive, cost_ns);
        true
    }

    /// Begins to wake the program on another processor that the last packet was for, if it slept.
    fn wake_other(&mut self, level: Level) -> bool {
        let is_owed = std::mem::take(&mut self.owes_wake);
        if is_owed {
            let cost_ns = match self.is_veth {
                true => self.host.veth.wake_ns,
                false => self.host.cpu.wake_other_ns,
            };
            self.cpu.start(level, CpuStep::WakeOther, cost_ns);
        }
        is_owed
    }

    /// Takes a packet out of the ring, unless a level that interrupted has taken it first.
    fn take_from_card(&mut self, level: Level) {
        let card = self.cpu.batches[level as usize].card;
        let Some(packet) = self.cards[card].rx_ring.pop() else {
            return;
        };
        if !self.input.is_queued {
            let is_merged = self.input.gro.take(&packet);
            self.input(level, packet, is_merged);
        } else if self.input.ip_queue.push(packet) {
            self.wake_netisr();
        } else {
            self.lose(LossPlace::IpQueue, &packet);
        }
    }

    /// Returns the cost of the next packet of the IP queue.
    pub fn next_protocol_ns(&self) -> Option<u64> {
        let packet = self.input.ip_queue.front()?;
        Some(self.protocol_ns(packet))
    }

    pub fn take_from_ip_queue(&mut self, level: Level) {
        if let Some(packet) = self.input.ip_queue.pop() {
            self.input(level, packet, false);
        }
    }

    /// Handles a packet after IP, by itself or merged into the previous one.
    fn input(&mut self, level: Level, packet: Packet, is_merged: bool) {
        if !self.is_own(&packet) {
            return self.send_from(level, packet, 0);
        }
        match packet.kind {
            PacketKind::Datagram => self.put_into_socket(packet),
            PacketKind::Segment(_) | PacketKind::Ack(_) => {
                self.tcp_input(level, packet, is_merged);
            }
            PacketKind::Fragment { of, fate } => self.reassemble(packet, of, fate),
        }
    }

    fn reassemble(&mut self, packet: Packet, of: u16, fate: u32) {
        let flow = usize::from(packet.flow);
        let hold = &mut self.input.holds[flow];
        if hold.number != packet.number {
            // The held datagram will never be complete.
            for _ in 0..hold.fragments {
                self.tally.lose(LossPlace::Reassembly);
            }
            *hold = Hold {
                number: packet.number,
                fragments: 0,
            };
        }
        hold.fragments += 1;
        if self.shared.fates.arrive(fate) {
            hold.fragments = 0;
            self.tally.merged += u64::from(of) - 1;
            self.put_into_socket(Packet {
                payload_bytes: self.flows[flow].payload_bytes,
                kind: PacketKind::Datagram,
                ..packet
            });
        }
    }

    pub fn put_into_socket(&mut self, packet: Packet) {
        if usize::from(packet.to) != self.number || self.programs.list.is_empty() {
            return self.hand_over(packet);
        }
        // A machine has one program with a socket.
        let program = &mut self.programs.list[0];
        program.polls = self.flows[usize::from(packet.flow)].card;
        if program.socket.push(packet) {
            self.wake_for_packet(0);
        } else {
            self.lose(LossPlace::SocketBuffer, &packet);
        }
    }

    /// Hands a packet to a program on another processor. Without a veth pair that is one of this host: packets for
    /// other hosts are forwarded before they reach a socket.
    fn hand_over(&mut self, packet: Packet) {
        if self.is_veth {
            let to = usize::from(packet.to);
            if self.shared.sleeping[to] {
                // Woken only once, although it takes a while to run.
                self.shared.sleeping[to] = false;
                self.owes_wake = true;
            }
            let card = self.flows[usize::from(packet.flow)].card;
            return self.leave(card, packet);
        }
        let is_asleep = self.shared.sleeping[self.number];
        self.owes_wake |= is_asleep && self.host.cpu.wake_other_ns > 0;
        self.outbox = Some((OTHER_PROCESSOR, packet));
    }

    /// Handles a packet that has reached an ideal far end.
    pub fn reached_far_end(&mut self, card: usize, packet: &Packet) {
        let fates = &mut self.shared.fates;
        let fate = packet.fate();
        if !fate.is_none_or(|fate| fates.arrive(fate)) {
            return;
        }
        let mut took_ns = self.now_ns - packet.sent_ns;
        if self.flows[usize::from(packet.flow)].counts == DeliveryCount::Exchange {
            took_ns = took_ns.saturating_add(2 * self.cards[card].attachment.delay_ns);
        }
        let flow = &mut self.shared.flows[usize::from(packet.flow)];
        flow.deliver(packet.number, took_ns, took_ns);
        self.shared.serve(packet.client);
        if let Some(clients) = self.cards[card].clients() {
            clients.answer(packet.client, packet.number, self.now_ns);
            self.timers.set(card, Of::Offer, clients.next_ns());
        }
    }
}
