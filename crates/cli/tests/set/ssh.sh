#!/bin/sh
# Plays ssh to a FreeBSD host from recorded output. The host's state is in files of the directory that
# FREEBSD_HOST names; every command is logged there.
state=$FREEBSD_HOST
while [ "$1" != -- ]; do
    options="$options $1"
    shift
done
host=$2 command=$3
printf '%s|%s|%s\n' "$options" "$host" "$command" >>"$state/log"

case "$host" in
*unreachable*)
    echo "ssh: connect to host $host port 22: Connection refused" >&2
    exit 255
    ;;
esac

# A host that the test took away.
if [ -e "$state/down" ] && [ "$host" = "$(cat "$state/down")" ]; then
    echo "ssh: connect to host $host port 22: No route to host" >&2
    exit 255
fi

# A command that the test lets fail.
if [ -e "$state/fails" ] && [ "$command" = "$(cat "$state/fails")" ]; then
    echo "Operation not permitted" >&2
    exit 1
fi

case "$command" in
"uname -s")
    cat "$state/uname"
    ;;
"sysctl kern.clockrate")
    cat "$state/sysctl_kern_clockrate"
    ;;
"sysctl kern.polling")
    if [ ! -e "$state/sysctl_kern_polling" ]; then
        echo "sysctl: unknown oid 'kern.polling'" >&2
        exit 1
    fi
    cat "$state/sysctl_kern_polling"
    ;;
"sysctl kern.polling."*)
    pair=${command#sysctl }
    name=${pair%=*} value=${pair#*=}
    sed -i "s/^$name: .*/$name: $value/" "$state/sysctl_kern_polling"
    # kern_poll.c: a burst_max below each_burst makes that 10.
    each=$(sed -n 's/^kern.polling.each_burst: //p' "$state/sysctl_kern_polling")
    if [ "$name" = kern.polling.burst_max ] && [ "$each" -gt "$value" ]; then
        sed -i "s/^kern.polling.each_burst: .*/kern.polling.each_burst: 10/" "$state/sysctl_kern_polling"
    fi
    ;;
"ifconfig -m em0")
    if [ -e "$state/incapable" ]; then
        cat "$state/ifconfig_incapable"
    elif [ -e "$state/polls" ]; then
        cat "$state/ifconfig_polling"
    else
        cat "$state/ifconfig_interrupts"
    fi
    ;;
"ifconfig em0 polling")
    touch "$state/polls"
    ;;
"ifconfig em0 -polling")
    rm -f "$state/polls"
    ;;
"/bin/sh -c "*)
    eval "$(printf '%s\n' "$command" | sed "s|/etc/rc.conf|$state/rc.conf|g")"
    ;;
*)
    echo "$command: not found" >&2
    exit 127
    ;;
esac
