//! Several queues on several CPUs: each queue has one engine, the sender's transmit queue decides where frames come, and
//! knobs are those of all CPUs or of one.

mod common;

use std::net::UdpSocket;
use std::thread;

use nicpoll_core::{Controller, Knob};
use nicpoll_engine::{
    DeviceChoice, DeviceKind, Drive, EngineSettings, Engines, PacketInput, Reception, Take,
};
use nicpoll_sys::schedule;
use nicpoll_testkit::needs;

use common::{PORT, Pair, RECEIVER, await_that, run, settings};

const DATAGRAMS: u32 = 100;

#[derive(Default)]
struct Count(u64);

impl PacketInput for Count {
    fn packet(&mut self, _frame: &[u8]) {
        self.0 += 1;
    }
}

/// Sends from one CPU, whose transmit queue is `queue` alone.
fn send_by(pair: &Pair, queue: u32) {
    let cpu = schedule::allowed_cpus().unwrap()[0];
    let mask = format!("{:x}", 1u64 << cpu);
    let (own, other) = (queue, 1 - queue);
    run(
        &pair.sender,
        &format!(
            "echo 0 > /sys/class/net/em0/queues/tx-{other}/xps_cpus\n\
             echo {mask} > /sys/class/net/em0/queues/tx-{own}/xps_cpus"
        ),
    );
    let send = move |(): &mut ()| {
        thread::spawn(move || {
            schedule::pin(cpu).unwrap();
            let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
            for _ in 0..DATAGRAMS {
                socket.send_to(&[0; 64], (RECEIVER, PORT)).unwrap();
            }
        })
        .join()
        .unwrap();
    };
    pair.sender.run(send).unwrap();
}

#[test]
fn each_queue_has_its_engine_and_the_senders_queue_decides_which() {
    needs!(Root, Ip);
    let pair = Pair::with_queues(2);
    let open = |(): &mut ()| {
        let reception = Reception {
            interface: "em0",
            take: &Take::Ports([PORT].into()),
            frames: 256,
            transmit_frames: 0,
        };
        DeviceChoice::Only(DeviceKind::AfXdp).receive(&reception, Count::default)
    };
    let opened = pair.receiver.run(open).unwrap().unwrap();
    assert_eq!(opened.ports.len(), 2);
    // Where there is one CPU only, one engine has both queues.
    let cpus = schedule::allowed_cpus().unwrap();
    let settings = EngineSettings {
        cpus: cpus[..cpus.len().min(2)].to_vec(),
        runner: settings(Drive::Polling, Controller::Freebsd),
        knobs: vec![(Knob::UserFrac, 30)],
    };
    let engines = Engines::start(&settings, opened.ports, &()).unwrap();
    // By queue: the first engine has the first one.
    let received = || {
        let by_engine = engines.ask(|runner| {
            let ports = runner.ports().iter();
            ports.map(|port| port.input.0).collect::<Vec<_>>()
        });
        by_engine.unwrap().concat()
    };
    let mut expected = [0, 0];
    for queue in [1, 0, 1] {
        send_by(&pair, queue);
        expected[queue as usize] += u64::from(DATAGRAMS);
        await_that("all datagrams", || received() == expected);
    }
    let fracs = engines.ask(|runner| runner.poller().read(Knob::UserFrac));
    assert!(fracs.unwrap().iter().all(|user_frac| *user_frac == 30));
    let handlers = engines.ask(|runner| runner.poller().read(Knob::Handlers));
    assert_eq!(handlers.unwrap().iter().sum::<u32>(), 2);
    let runners = engines.end().unwrap();
    assert_eq!(nicpoll_engine::knob_of_all(&runners, Knob::Handlers), 2);
}
