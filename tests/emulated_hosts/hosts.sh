#!/usr/bin/env bash
# Emulated hosts: network namespaces on one machine, each with an address, a host name and a link of its own rate to one
# switch, and mpirun among them.
#   hosts.sh HOSTS RATE COMMAND [ARGUMENT...]     RATE as tc has it, per direction: 400mbit
# runs COMMAND in a namespace of its own at the same switch, with these in its environment:
#   EMULATED_MPIRUN    words of an mpirun that starts ranks on the hosts in blocks; -n and a program follow
#   EMULATED_SLOTS     ranks per host (taken from the caller's environment; 1 unless set)
#   EMULATED_SET_RATE  a command: HOST RATE, both directions of that host's link from now on
# Everything that was made is removed at the end, however it ends; nothing else is touched. All of it ends after
# EMULATED_SECONDS (240). Exit status: that of COMMAND; 77, with the reason, where namespaces are not permitted.
#
# tbf at both ends of a link makes its rate; the switch's end has room for whatever senders have under way, so that
# incast waits and loses nothing. Socket buffers are small, so that not much is under way.
set -uo pipefail
self=$(readlink -f "${BASH_SOURCE[0]}")

shape() { # NAMESPACE DEVICE RATE
  ip netns exec "$1" tc qdisc replace dev "$2" root tbf rate "$3" burst 32kb limit 32mb
}

# The launch agent of mpirun: ADDRESS WORDS-OF-A-COMMAND. The daemon gets the host's network and a host name of its own.
if [ "${1:-}" = --agent ]; then
  number=${2##*.}
  shift 2
  exec ip netns exec "${EMULATED_PREFIX}h$number" unshare --uts sh -c "hostname emulated-$number; $*"
fi
if [ "${1:-}" = --set-rate ]; then
  shape "${EMULATED_PREFIX}h$2" eth0 "$3" && shape "${EMULATED_PREFIX}s" "port$2" "$3"
  exit
fi

hosts=$1 rate=$2
shift 2
skip() { echo "skipped: $*"; exit 77; }
for tool in ip tc unshare mpirun; do command -v $tool >/dev/null || skip "$tool is not installed"; done
export EMULATED_PREFIX=isthmus$$
made=() # namespaces
scratch=$(mktemp -d)
clean() {
  local name
  for name in "${made[@]}"; do
    ip netns pids "$name" 2>/dev/null | xargs -r kill -KILL 2>/dev/null
    ip netns del "$name" 2>/dev/null
  done
  rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 143' TERM INT HUP

space() { ip netns add "$1" 2>"$scratch/why" && made+=("$1"); }
# attach NAMESPACE NUMBER [RATE]: a link to the switch.
attach() {
  ip -n "$1" link set lo up &&
    ip -n "$1" link add eth0 mtu 9000 type veth peer name "port$2" mtu 9000 netns "${EMULATED_PREFIX}s" &&
    ip -n "$1" addr add "10.99.0.$2/24" dev eth0 && ip -n "$1" link set eth0 up &&
    ip -n "${EMULATED_PREFIX}s" link set "port$2" master switch up &&
    { [ $# -lt 3 ] || { shape "$1" eth0 "$3" && shape "${EMULATED_PREFIX}s" "port$2" "$3"; }; }
}
build() {
  local number
  space "${EMULATED_PREFIX}s" && ip -n "${EMULATED_PREFIX}s" link add switch type bridge &&
    ip -n "${EMULATED_PREFIX}s" link set switch up || return
  for ((number = 1; number <= hosts; ++number)); do
    space "${EMULATED_PREFIX}h$number" && attach "${EMULATED_PREFIX}h$number" $number "$rate" || return
  done
  space "${EMULATED_PREFIX}m" && attach "${EMULATED_PREFIX}m" 254
}
build 2>"$scratch/why" || skip "network namespaces with tbf are not permitted here ($(head -n 1 "$scratch/why"))"

list=
for ((number = 1; number <= hosts; ++number)); do list+=${list:+,}10.99.0.$number:${EMULATED_SLOTS:=1}; done
printf '#!/bin/sh\nexec bash %q --agent "$@"\n' "$self" >"$scratch/agent"
printf '#!/bin/sh\nexec bash %q --set-rate "$@"\n' "$self" >"$scratch/set-rate"
chmod +x "$scratch/agent" "$scratch/set-rate"
export EMULATED_SLOTS EMULATED_SET_RATE=$scratch/set-rate
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$scratch
export EMULATED_MPIRUN="mpirun --host $list --map-by slot --bind-to none --mca plm_rsh_agent $scratch/agent
  --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 10.99.0.0/24 --mca oob_tcp_if_include 10.99.0.0/24
  --mca plm_rsh_no_tree_spawn 1 --mca btl_tcp_sndbuf 262144 --mca btl_tcp_rcvbuf 524288 --mca mpi_yield_when_idle 1"
ip netns exec "${EMULATED_PREFIX}m" timeout --kill-after=5 "${EMULATED_SECONDS:-240}" "$@"
