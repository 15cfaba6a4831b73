//! `nicpoll set HOST:em0` against a FreeBSD host played by a script from recorded output, because no FreeBSD was
//! available.

use crate::common::prelude::*;
use crate::freebsd_host::FreebsdHost;

/// Settings, messages and restoring; set-freebsd.txt has the whole text of some.
const STORIES: &str = r#"
    # an interface is switched and everything put back
    0 set root@bsd:em0 polling --user-frac 20 --burst-max 300 --each-burst 200 | root@bsd:em0: kern.polling.burst_max 150 -> 300 root@bsd:em0: kern.polling.each_burst 5 -> 200 root@bsd:em0: kern.polling.user_frac 50 -> 20 root@bsd:em0: polling off -> on
    polls
    held
    0 set root@bsd:em0 --burst-max 100
    0 show root@bsd:em0 -n burst_max -n kern.polling.each_burst -n user_frac | 100 10 20
    0 set root@bsd:em0 polling | nothing: everything is so already
    0 set root@bsd:em0 -polling | root@bsd:em0: every value is as it was
    restored
    each-connection BatchMode=yes
    each-connection ConnectTimeout=

    # a dry run prints the commands and runs none of them
    0 set bsd:em0 polling --idle-poll 1 --dry-run | ssh bsd sysctl kern.polling.idle_poll=1 ssh bsd ifconfig em0 polling
    0 set bsd:em0 polling --persist --dry-run | 255.255.255.0 polling" # uplink
    restored
    0 set bsd:em0 polling
    0 set bsd:em0 -polling --dry-run | ssh bsd ifconfig em0 -polling
    polls

    # one line of rc.conf is changed and put back
    0 set bsd:em0 polling --persist | --- bsd:/etc/rc.conf +++ bsd:/etc/rc.conf -ifconfig_em0="inet 192.0.2.1 netmask 255.255.255.0" # uplink +ifconfig_em0="inet 192.0.2.1 netmask 255.255.255.0 polling" # uplink
    replaced rc.conf 255.0"  # => 255.0 polling"  #
    0 set bsd:em0 -polling
    replaced rc.conf 255.0"  # => 255.0 polling"  #
    held
    replace rc.conf YES => NO
    0 set bsd:em0 --no-persist
    replaced rc.conf YES => NO
    clean
    absent rc.conf.nicpoll
    0 set bsd:em0 --no-persist | nicpoll has written nothing to /etc/rc.conf

    # a line that cannot be changed by rule is left
    write rc.conf ifconfig_DEFAULT="DHCP"
    remember
    1 set bsd:em0 polling --persist | there is no line ifconfig_em0=
    restored

    # what cannot work is refused with reason and remedy
    write incapable
    1 set bsd:em0 polling | no POLLING among its capabilities
    remove incapable
    1 set unreachable:em0 polling | port 22: Connection refused
    1 set bsd:em0 polling --user-frac 100 | 0 to 99
    1 set bsd:em0 polling --each-burst 151 | 1 to burst_max
    1 set bsd:em0 polling --reg-frac 1001 | which is 1000
    2 set bsd:em0 polling --idle-poll 2 | from 0 to 1
    2 set bsd:em0 polling --period 50us | --period is for interfaces of this machine
    2 set bsd:em0 | nothing to set
    2 set bsd:em0 eth0 polling | named alone
    2 set -- -x:em0 polling | cannot be a host's name
    2 set bsd:em0 polling --user-frac 20 --persist | /etc/sysctl.conf
    2 set eth0 polling --user-frac 20 | --cpu-share
    2 show bsd:em0 --json | --json
    2 show bsd:em0 -n bursts | there are: burst,
    write uname Linux
    1 set bsd:em0 polling | runs Linux, not FreeBSD; run nicpoll on that host
    write uname FreeBSD
    restored
    remove sysctl_kern_polling
    5 set bsd:em0 polling | options DEVICE_POLLING | options HZ=1000
    clean
    no-connection |ifconfig em0

    # output without end is not read to its end
    endless uname
    1 set bsd:em0 polling | 'uname -s' on bsd printed more than 1048576 bytes; see what it prints
    clean

    # a slow clock is advised against
    write sysctl_kern_clockrate kern.clockrate: { hz = 100, tick = 10000, profhz = 1024, stathz = 128 }
    0 set bsd:em0 polling | 100 times a second | kern.hz="1000" | 15000 packets a second

    # a command that fails leaves the host as it was, and what stood before is still put back
    0 set bsd:em0 --user-frac 30
    remember standing
    write fails ifconfig em0 polling
    1 set bsd:em0 polling --user-frac 10 | Operation not permitted
    same standing
    remove fails
    0 restore bsd:em0
    restored
    0 show bsd:em0 -n user_frac | 50

    # values that changed since are named
    0 set bsd:em0 polling --user-frac 20
    remove polls
    0 restore bsd:em0 | polling is off; nicpoll had set it to on
    0 show bsd:em0 -n user_frac | 50

    # a foreign record is left alone
    0 set bsd:em0 polling
    replace ../journal/bsd.host "em0" => "em0;reboot"
    1 restore bsd:em0 | not a record of this nicpoll
    polls

    # restore without names puts every host back that it reaches, and the others by the next try alone
    0 set near:em0 polling
    0 set far:em0 --user-frac 20
    write down far
    1+ restore | far:em0: | No route to host | near:em0: every value is as it was | !far:em0: every value
    absent polls
    changed
    remove down
    forget-connections
    0 restore | far:em0: every value is as it was | !near:em0
    restored
    each-connection |far|
"#;

#[test]
fn each_story_comes_out_as_it_is_told() {
    play::<FreebsdHost>(STORIES);
}

#[test]
fn what_a_killed_command_left_is_put_back_wherever_it_was_killed() {
    let by_name = ["restore bsd:em0", "set bsd:em0 --no-persist"];
    for (set, back) in [
        (
            "set bsd:em0 polling --user-frac 20 --burst-max 300",
            &by_name[..],
        ),
        ("set bsd:em0 polling --persist", &by_name),
        ("set bsd:em0 polling --user-frac 20", &["restore"]),
    ] {
        kill_at_each_point(set, back);
    }
}

fn kill_at_each_point(set: &str, back: &[&str]) {
    for point in 1..30 {
        let bsd = FreebsdHost::new();
        let before = bsd.state();
        let mut command = bsd.command(set);
        command.env("NICPOLL_TEST_KILL_AT_POINT", point.to_string());
        let output = command.output().unwrap();
        if output.status.code() == Some(0) {
            assert!(point > 4, "only {point} points");
            return;
        }
        assert_eq!(output.status.code(), None, "{output:?}");
        for line in back {
            bsd.done(line);
        }
        let at = format!("{set}, killed at point {point}");
        assert_eq!(bsd.state(), before, "{at}");
        // The next command that restores all removes the killed one's temporary file; nothing else is left.
        let left = fs::read_dir(bsd.journal()).into_iter().flatten().flatten();
        let mut left: Vec<PathBuf> = left.map(|file| file.path()).collect();
        if back != ["restore"] {
            left.retain(|path| path.extension().is_some_and(|end| end == "host"));
        }
        assert!(left.is_empty(), "{at}: {left:?}");
    }
    panic!("{set}: more points than there can be");
}
