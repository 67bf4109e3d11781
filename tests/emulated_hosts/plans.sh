#!/usr/bin/env bash
# Run by hosts.sh: plans.sh PROGRAM SCENARIOS OUTPUT [NAME...] measures the network, then replays every policy's plan of
# each named scenario (all of SCENARIOS/*.yaml) beside its prediction from that measurement, into OUTPUT/NAME.json.
# A scenario whose fabric has a slower host 3 gets that link made slower.
set -uo pipefail
program=$1 scenarios=$2 output=$3
shift 3
[ $# -gt 0 ] || set -- $(cd "$scenarios" && ls *.yaml | sed 's/\.yaml$//')
read -ra job <<<"$(echo $EMULATED_MPIRUN)"
"${job[@]}" -n "$((4 * EMULATED_SLOTS))" "$program" calibrate --backend mpi --nic "200 Mbit/s" --base wire-only \
  -o "$output/emulated.yaml" || exit
for name in "$@"; do
  ranks=$((4 * EMULATED_SLOTS))
  slow=false
  grep -q 'degrade: nic, hosts: 3, factor: 0.5' "$scenarios/$name.yaml" && slow=true
  if $slow; then "$EMULATED_SET_RATE" 4 100mbit || exit; fi
  "${job[@]}" -n $ranks "$program" replay "$scenarios/$name.yaml" --backend mpi --warm-up 1 --repeat 3 --deadline 10 \
    --predict --set "calibration=$output/emulated.yaml" --json >"$output/$name.json" || echo "$name: exit status $?"
  if $slow; then "$EMULATED_SET_RATE" 4 200mbit || exit; fi
done
