//! Every way to write a label with every phrase for a setting, a host or a direction, and every way to say that one
//! changes: pages of three tests below such lines are read as they are meant.

use nicpoll_import::read_transcripts;
use nicpoll_model::{Imported, ImportedTrial, Origin, Side};
use nicpoll_stats::order::Seed;
use rand_core::Rng;

/// How authors mark a label; `@` is the number of the test.
const STYLES: &str = "Run @ - %|Run @: %|Test @ (%)|@) %|@. %|## %|=== % ===|**%**|%:|%|Step @: %|Round @: %|# %|Test #@ - %|\
    --- % ---|Results, %:|TCP (%):|Now %:|Then %:";

/// Phrases for a setting: of FreeBSD, and of Linux.
const SETTINGS: [(&str, &str, &str); 4] = [
    (
        "interrupt",
        "no polling|interrupts on both|polling off|no polling on either box|both on interrupts|plain interrupts|neither polls",
        "busy_poll=0 on both|no busy polling|net.core.busy_poll off|without busy polling|interrupts|no deferral",
    ),
    (
        "polling",
        "polling on both|both poll|polling enabled on both|polling at both ends|murre and puffin polling",
        "busy_poll=50 on both|busy polling everywhere|deferred interrupts on both|threaded NAPI on both|both busy polling",
    ),
    (
        "polling-receiver-only",
        "polling on puffin only|only puffin polls|puffin polling, murre interrupts|polling on puffin, not on murre|\
         receiver polling, sender interrupts|polling (receiver only)",
        "busy_poll=50 on puffin, 0 on murre|only puffin busy polls|50 on puffin, 0 on murre|deferral on puffin only",
    ),
    (
        "polling-sender-only",
        "polling on murre only|murre polls, puffin does not|polling on murre, off on puffin|polling (sender only)",
        "busy_poll=50 on murre only|busy polling only on murre|murre at 50, puffin at 0",
    ),
];

/// Phrases for a direction: `A` sends, `B` receives.
const WAYS: &str = "A to B|A -> B|A→B|A => B|from A to B|A sends, B receives|A is the client, B the server|client on A, server on B|\
    sender A, receiver B|sender: A, receiver: B|A (sender) to B (receiver)|tx A, rx B|A is the sender|A does the sending|A (client)|\
    B receives|receiver is B";

/// Sentences that turn polling on or off on host `H`, or on both, and that leave it to `H` and not to the other, `O`.
const TURNS_ON: &str = "Then I enabled polling on H:|Now with polling on H:|Next I switched polling on on H.|Polling enabled on H:|Now H polls:|\
    Then H with polling:|After ifconfig em0 polling on H:|H switched to polling:|I then enabled polling on H and repeated the test:|\
    The same after I enabled polling on H:|And with polling on H:|H now polls.";
const TURNS_OFF: &str = "Then I disabled polling on H:|Now H back to interrupts:|I turned polling off on H again:|Then ifconfig em0 -polling on H:|\
    H set back to interrupts:|And H without polling again:|Back to interrupts on H:|I then turned it off on H:|H no longer polls:";
const ALL_ON: &str = "Then I enabled polling on both:|Now both poll:|Then ifconfig em0 polling on both:|With polling enabled on both ends:|\
    Now both with polling.|Next, polling on both.";
const ALL_OFF: &str = "Then I disabled polling on both:|Now without polling on either:|Both back to interrupts:|Now both without polling.|\
    No polling on either machine:|Interrupts on both, to start with:|To begin with, no polling on either box:";
const LEFT_TO: &str = "Then polling on H only:|Now only H polls:|With polling on H alone:|Polling on H, O with interrupts:|H polls, O does not:|\
    Now H polls and O uses interrupts.|Next, H polling, O back on interrupts:";

/// Phrases for the host of a screen.
const SCREENS: &str = "top on H:|H:|on H:|H# top|top of H during the run|H meanwhile:|CPU of H|H's top said|and on H|## H|**H**|\
    H says:|Load on H in the middle of the run:|H (top):|During the test top on H showed:|CPU (H):|[root@H ~]# top";

const PAGE: &str =
    "Tests\n\nTwo boxes, murre (172.16.9.11) sends and puffin (172.16.9.12) receives";

fn read(page: String) -> Imported {
    read_transcripts(&[(String::from("page.txt"), page)], &[], &Origin::default()).unwrap()
}

/// What iperf prints for the test with this number, perhaps with its connection.
fn iperf(number: usize, has_connection: bool) -> String {
    let port = 5321 + number;
    let connection =
        format!("[  3] local 172.16.9.11 port {port} connected with 172.16.9.12 port 5001\n");
    let connection = if has_connection {
        connection.as_str()
    } else {
        ""
    };
    let (bytes, rate) = (750 + 13 * number, 629 + 11 * number);
    format!(
        "{connection}[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-10.0 sec   {bytes} MBytes   {rate} Mbits/sec\n\n"
    )
}

/// The label of a test in a style.
fn label(style: &str, number: usize, phrase: &str) -> String {
    let number = (number + 1).to_string();
    style.replace('@', &number).replace('%', phrase)
}

/// How many were read as meant, and what was read wrongly: what is left out is neither.
#[derive(Default)]
struct Count {
    right: usize,
    open: Vec<String>,
    wrong: Vec<String>,
}

impl Count {
    fn add(&mut self, of: &str, meant: &str, read: Option<&str>) {
        match read {
            Some(read) if read == meant => self.right += 1,
            Some(read) => self.wrong.push(format!("{of:?}: {read}, not {meant}")),
            None => self.open.push(format!("{of:?}: nothing, not {meant}")),
        }
    }

    /// Counts the settings of a page's tests, which stand below these lines and are meant so.
    fn settings(&mut self, page: String, meant: &[(String, &str)]) {
        let imported = read(page);
        for (at, (line, setting)) in meant.iter().enumerate() {
            let read = imported.trials.get(at);
            let read = read.and_then(|it| it.setting.split('+').next());
            self.add(line, setting, read.filter(|it| *it != "not-said"));
        }
    }

    /// At least this share of all is right, and at most this share wrong.
    fn check(&self, right_min: f64, wrong_max: f64) {
        let all = (self.right + self.open.len() + self.wrong.len()) as f64;
        let (right, wrong) = (self.right as f64 / all, self.wrong.len() as f64 / all);
        println!("{all} labels, right {right}, wrong {wrong}");
        let is_good = right >= right_min && wrong <= wrong_max;
        assert!(
            is_good,
            "{right} {wrong}: {:#?} {:#?}",
            self.wrong, self.open
        );
    }
}

#[test]
fn labels_tell_settings() {
    let mut random = Seed(11).generator();
    let mut below = |many: usize| random.next_u64() as usize % many;
    let mut count = Count::default();
    let intros = [
        "FreeBSD 8.2, em0.",
        "Debian 12. Busy polling means net.core.busy_poll=50.",
    ];
    for (style, round) in STYLES
        .split('|')
        .flat_map(|it| (0..24).map(move |round| (it, round)))
    {
        let intro = intros[round % 2];
        let mut page = format!("{PAGE}, {intro}\n\n");
        let mut meant = Vec::new();
        for number in 0..3 {
            let (setting, old, new) = SETTINGS[below(SETTINGS.len())];
            let phrases: Vec<&str> = [old, new][round % 2].split('|').collect();
            let label = label(style, number, phrases[below(phrases.len())]);
            let command = if round % 3 == 0 && number > 0 {
                ""
            } else {
                "murre$ iperf -c 172.16.9.12 -t 10\n"
            };
            page += &format!("{label}\n\n{command}{}", iperf(number, true));
            meant.push((label, setting));
        }
        count.settings(page, &meant);
    }
    count.check(0.97, 0.01);
}

#[test]
fn sentences_tell_changes() {
    let mut random = Seed(12).generator();
    let mut below = |many: usize| random.next_u64() as usize % many;
    let mut count = Count::default();
    for _ in 0..400 {
        let mut polls = [false; 2];
        let mut page = format!("{PAGE}, FreeBSD 8.2, em0.\n\n");
        let mut meant = Vec::new();
        for number in 0..3 {
            let (host, which) = (below(2), below(4));
            let said = match which {
                _ if number == 0 => ALL_OFF,
                0 if polls[host] => TURNS_OFF,
                0 | 1 if !polls[host] => TURNS_ON,
                2 => LEFT_TO,
                _ if polls == [true; 2] => ALL_OFF,
                _ => ALL_ON,
            };
            match said {
                TURNS_ON => polls[host] = true,
                TURNS_OFF => polls[host] = false,
                LEFT_TO => polls = [host == 0, host == 1],
                _ => polls = [said == ALL_ON; 2],
            }
            let said: Vec<&str> = said.split('|').collect();
            let names = ["murre", "puffin"];
            let sentence = said[below(said.len())].replace('H', names[host]);
            let sentence = sentence.replace('O', names[1 - host]);
            let command = "murre$ iperf -c 172.16.9.12 -t 10\n";
            page += &format!("{sentence}\n\n{command}{}", iperf(number, true));
            meant.push((
                sentence,
                match polls {
                    [false, false] => "interrupt",
                    [true, true] => "polling",
                    [true, false] => "polling-sender-only",
                    [false, true] => "polling-receiver-only",
                },
            ));
        }
        count.settings(page, &meant);
    }
    count.check(0.97, 0.01);
}

#[test]
fn labels_tell_directions() {
    let mut count = Count::default();
    let styles = STYLES.split('|').take(14);
    for (style, way) in styles.flat_map(|it| WAYS.split('|').map(move |way| (it, way))) {
        let pairs = [["murre", "puffin"], ["puffin", "murre"]];
        let mut page = String::from("Tests\n\nTwo boxes, murre and puffin. No polling here.\n\n");
        let named = |[one, other]: [&str; 2]| way.replace('A', one).replace('B', other);
        for (number, ends) in pairs.into_iter().enumerate() {
            let label = label(style, number, &named(ends));
            page += &format!("{label}\n\n{}", iperf(number, false));
        }
        let imported = read(page);
        for (at, ends) in pairs.into_iter().enumerate() {
            let both = |it: &ImportedTrial| {
                Some(format!("{} {}", it.sender.as_ref()?, it.receiver.as_ref()?))
            };
            let read = imported.trials.get(at).and_then(both);
            let label = label(style, at, &named(ends));
            count.add(&label, &ends.join(" "), read.as_deref());
        }
    }
    count.check(0.97, 0.01);
}

#[test]
fn labels_tell_the_hosts_of_screens() {
    let mut count = Count::default();
    for phrase in SCREENS.split('|') {
        let mut page = format!("{PAGE}, FreeBSD 8.2.\n\n");
        let mut meant = Vec::new();
        for number in 0..3 {
            let command = "murre$ iperf -c 172.16.9.12 -t 10\n";
            page += &format!("Test {}\n\n{command}{}", number + 1, iperf(number, true));
            for (at, (host, end)) in [("murre", "Sender"), ("puffin", "Receiver")]
                .into_iter()
                .enumerate()
            {
                let system = 10 + 3 * number + at;
                let label = phrase.replace('H', host);
                let gap = if label.ends_with("top") { "\n" } else { "\n\n" };
                page += &format!(
                    "{label}{gap}CPU:  0.4% user,  0.0% nice, {system}.0% system, 12.0% interrupt, {}.6% idle\n",
                    87 - system
                );
                meant.push((page.lines().count() as u32, number, end));
                page += "\n";
            }
        }
        let imported = read(page);
        let booked = |line: u32| -> Option<(usize, Option<Side>)> {
            imported
                .trials
                .iter()
                .enumerate()
                .find_map(|(test, trial)| {
                    let is_it = |it: &&nicpoll_model::ImportedFigure| it.place.line == line;
                    trial.figures.iter().find(is_it).map(|it| (test, it.side))
                })
        };
        for (line, test, end) in meant {
            let read = booked(line).map(|(test, side)| format!("{test} {side:?}"));
            count.add(phrase, &format!("{test} Some({end})"), read.as_deref());
        }
    }
    count.check(0.97, 0.01);
}

#[test]
fn letters_are_states_only_in_a_text_that_has_one_for_interrupts() {
    let setting = |first: &str, second: &str| {
        let mut page = format!("{PAGE}, polling and not, FreeBSD 8.2.\n\n");
        for (number, label) in [first, second].into_iter().enumerate() {
            let command = "murre$ iperf -c 172.16.9.12 -t 10\n";
            page += &format!("## {label}\n\n{command}{}", iperf(number, true));
        }
        read(page).trials[1].setting.clone()
    };
    assert_eq!(setting("I/I", "I/P"), "polling-receiver-only");
    assert_eq!(setting("irq / poll", "P / P"), "not-said");
}
