#!/bin/sh
# How much of a flood of datagrams arrives under polling each millisecond, when sender and receiver run wherever
# the kernel puts them ("anywhere"), and when each has a core of its own ("pinned"). In turns, as root:
#
#   sh docs/method-pitfalls-cores.sh target/release/nicpoll
#
# It takes about 40 s. The namespaces are the script's own, and go with it.
set -eu
nicpoll=${1:-nicpoll}
a=pitfall-a-$$
b=pitfall-b-$$
out=$(mktemp)
ip netns add "$a"
ip netns add "$b"
trap 'ip netns del "$a"; ip netns del "$b"; rm -f "$out"' EXIT
ip -n "$a" link add em0 type veth peer name em0 netns "$b"
ip -n "$a" addr add 198.18.0.1/24 dev em0
ip -n "$b" addr add 198.18.0.2/24 dev em0
ip -n "$a" link set em0 up
ip -n "$b" link set em0 up
ip netns exec "$b" ethtool -K em0 gro on
# Polling: a round each millisecond.
ip netns exec "$b" sh -c 'echo 1000 > /sys/class/net/em0/napi_defer_hard_irqs
                          echo 1000000 > /sys/class/net/em0/gro_flush_timeout'
sleep 1

# Cores of the sender, cores of the receiver.
flood() {
    ip netns exec "$b" taskset -c "$2" timeout -s INT 2.3 "$nicpoll" netreceive --json 9000 \
        >"$out" 2>/dev/null &
    sleep 0.5
    sent=$(ip netns exec "$a" taskset -c "$1" "$nicpoll" netblast --json 198.18.0.2 9000 64 1 |
        sed -n 's/^  "send_successes": \([0-9]*\),$/\1/p')
    # timeout(1) ends it, and says so by its exit code.
    wait $! || true
    came=$(sed -n 's/^  "received_packets": \([0-9]*\),$/\1/p' "$out")
    echo "$3 $sent $came" | awk '{ printf "%-9s sent %7d  arrived %7d  lost %5.1f %%\n", $1, $2, $3, 100 * (1 - $3 / $2) }'
}

for turn in 1 2 3 4 5 6 7 8; do
    flood 0,1 0,1 anywhere
    flood 0 1 pinned
done
