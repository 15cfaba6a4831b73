#!/bin/sh
# Boots systemd as the first process of namespaces of its own, with /usr and little else, and has it set an interface.
# Arguments: an empty folder, and the program. Exit code 77: it does not come up here.
set -eu
root=$1 program=$2

boot() {
    mount --make-rprivate /
    mount -t tmpfs -o mode=755 root "$root"
    cd "$root"
    mkdir -p etc/systemd/system usr run var/lib proc sys dev tmp home root opt old
    for link in bin lib lib64 sbin; do ln -s usr/$link $link; done
    mount --bind /usr usr
    mount -o remount,bind,ro usr
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount -t cgroup2 cgroup sys/fs/cgroup
    mount -t tmpfs run run
    mount -t tmpfs dev dev
    mkdir dev/pts run/udev
    mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
    ln -s pts/ptmx dev/ptmx
    for node in null zero full random urandom tty; do
        touch dev/$node
        mount --bind /dev/$node dev/$node
    done
    # systemd listens to udev only if it sees this at its start.
    touch run/udev/control
    cp /etc/passwd /etc/group /etc/ld.so.cache etc/
    echo 0123456789abcdef0123456789abcdef > etc/machine-id
    cp "$program" opt/nicpoll
    # Nothing else of the machine is to be set up again.
    for unit in usr/lib/systemd/system/*.target.wants/*; do
        case ${unit##*/} in
        systemd-udevd* | systemd-journald* | *.target) ;;
        *) ln -sf /dev/null "etc/systemd/system/${unit##*/}" ;;
        esac
    done
    pivot_root . old
    umount -l old
    exec env -i container=other /usr/lib/systemd/systemd multi-user.target < /dev/null
}

inside() { nsenter -t "$pid" -a env -i PATH=/usr/sbin:/usr/bin "$@"; }
within_20s() {
    for _ in $(seq 200); do
        if "$@" > /dev/null 2>&1; then return; fi
        sleep 0.1
    done
    return 1
}
plug() {
    inside ip link add em0 type veth peer name far0
    inside ip link set em0 up
    inside ip link set far0 up
}
tell() {
    files=/sys/class/net/em0
    values=$(inside cat $files/napi_defer_hard_irqs $files/gro_flush_timeout)
    echo "$1:" $values "$(inside systemctl is-active nicpoll@em0)"
}

if [ "${3-}" = boot ]; then boot; fi
group=$(findmnt -nfo TARGET -t cgroup2)/nicpoll-test-$$ && mkdir "$group" || exit 77
(echo 0 > "$group/cgroup.procs" && exec unshare -pmnCui --fork --kill-child "$0" "$root" "$program" boot) &
unshare=$!
end() {
    kill -9 $unshare
    for _ in $(seq 50); do
        if find "$group" -depth -type d -exec rmdir {} + 2> /dev/null; then break; fi
        sleep 0.1
    done
}
trap end EXIT
first() {
    pid=$(cut -d ' ' -f 1 "/proc/$unshare/task/$unshare/children")
    [ "$pid" ]
}
within_20s first && within_20s inside systemctl is-active multi-user.target || exit 77

plug
inside /opt/nicpoll set em0 polling --fix --persist > /dev/null 2>&1
inside /opt/nicpoll restore > /dev/null
inside systemctl daemon-reload
inside udevadm control --reload
tell written
inside systemctl start nicpoll@em0
tell started
inside systemctl stop nicpoll@em0
tell stopped
inside ip link del em0
plug
within_20s inside systemctl is-active nicpoll@em0 || inside journalctl --no-pager -n 20 >&2
tell plugged
inside systemctl stop nicpoll@em0
tell stopped
inside systemctl start nicpoll@em0
inside /opt/nicpoll set em0 --no-persist > /dev/null 2>&1
inside /opt/nicpoll restore > /dev/null
inside systemctl stop nicpoll@em0
inside systemctl daemon-reload
tell removed
inside find /etc -name '*nicpoll*'
