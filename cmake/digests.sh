#!/usr/bin/env bash
# Whether predictions are the same bits whoever compiled them and however many threads ran: digests of predicted
# timelines (docs/json.md) of scenarios x policies, by the program of preset release (g++, optimised), all policies at
# once, then one at a time, and by that of preset clang (clang++, debug, sanitizers). Larger scenarios than those named
# here take the sanitizers minutes. Usage: cmake/digests.sh [PROGRAM OTHER]
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." || exit 3
program=${1:-build/release/isthmus} other=${2:-build/clang/isthmus}
policies=(golden gather-broadcast p2p striped m2n-uniform m2n-node-aware balanced)
scenarios=(scenarios/cases/*.yaml)
models=(qwen3-30b-a3b-h100-ep4tp2dp2-tp4dp4 qwen3-30b-a3b-h100-native-ep8pp2-tp8dp2 qwen3-30b-a3b-fp8-h100)
faults='[{at: 1 ms, what: "nic:0.0", change: 0.5, until: 3 ms}, {at: 2 ms, what: "gpu:0.1", until: 4 ms}]'
load='[{on: nic, share: 0.3, flows: 2}, {on: sm, share: 0.25}]'

# digests PROGRAM SCENARIO POLICIES [OPTION...]: one line per policy.
digests() {
  local runner=$1 scenario=$2 chosen=$3; shift 3
  "$runner" simulate "$scenario" --policy "$chosen" --json "$@" |
    sed -n 's/^ *"\(digest\|refused\|stopped\)": \(.*\)$/\1 \2/p'
}

# compare SCENARIO [OPTION...]
compare() {
  local scenario=$1 all alone="" policy; shift
  all=$(digests "$program" "$scenario" all "$@") || return 1
  for policy in "${policies[@]}"; do alone+=$(digests "$program" "$scenario" "$policy" "$@")$'\n'; done
  [ "$all" = "${alone%$'\n'}" ] || { echo "$scenario $*: other digests with one thread"; return 1; }
  [ "$all" = "$(digests "$other" "$scenario" all "$@")" ] || { echo "$scenario $*: $other has others"; return 1; }
  compared=$((compared + ${#policies[@]}))
}

compared=0 status=0
for scenario in "${scenarios[@]}"; do
  compare "$scenario" || status=1
  compare "$scenario" --set calibration=wire-only || status=1
  compare "$scenario" --set "background=$load" --set "faults=$faults" --set 'failed_steps={policy: retry}' || status=1
done
for model in "${models[@]}"; do compare "scenarios/$model.yaml" || status=1; done
compare scenarios/qwen3-30b-a3b-h100.yaml --set model.layers=4 --set "background=$load" --set "faults=$faults" \
  --set 'failed_steps={policy: reroute, timeout: 5 ms}' || status=1
[ $status = 0 ] && echo "equal digests: $compared predictions, each by two programs and with one thread"
exit $status
