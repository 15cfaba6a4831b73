//! Searches 200 simulated hosts for their highest load, and says how often the bounds hold it and what that took
//! (docs/search.md). `hosts` prints the hosts instead, to run another search on them.

mod hosts;

use nicpoll_stats::search::{NDR, PDR, RFC_2544};

use hosts::{HOSTS, Host, search_all};

fn main() {
    if std::env::args().nth(1).is_some() {
        return print_hosts();
    }
    for (name, goals, is_quiet) in [
        ("NDR and PDR, noisy", &[NDR, PDR][..], false),
        ("NDR and PDR, quiet", &[NDR, PDR], true),
        ("RFC 2544, quiet", &[RFC_2544], true),
    ] {
        println!("{name}: {:?}", search_all(goals, is_quiet));
    }
}

fn print_hosts() {
    println!("quiet seed line knee noise queue lucky unlucky");
    for is_quiet in [false, true] {
        for seed in 0..HOSTS {
            let it = Host::drawn(seed, is_quiet);
            let (line, knee, noise) = (it.line, it.knee, it.noise);
            let (queue, lucky, unlucky) = (it.queue, it.lucky, it.unlucky);
            let quiet = u8::from(is_quiet);
            println!("{quiet} {seed} {line} {knee} {noise} {queue} {lucky} {unlucky}");
        }
    }
}
