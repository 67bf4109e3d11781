#!/usr/bin/env bash
# Replays a list of scenarios and policies on the GPUs of this machine and prints a table, a line for each replay:
# whether every byte was right, the time, the rate between GPUs. Detailed results and messages go to a folder.
#
#   hw/replay_on_gpus.sh [-p PROGRAM] [-r RESULTS] [-d SECONDS] [-o RECORD] [-g] [LIST]
#
# LIST (default: standard input) has a line for each replay: SCENARIO [POLICIES] [SCALE] [REPETITIONS]
# where POLICIES are names separated by commas, or all. Lines that begin with # are skipped. Exit status: 0, or the
# greatest one of the replays; a replay that takes longer than SECONDS (default 120) counts as 124. RECORD is a file
# that gets a JSON line for each policy, as isthmus scoreboard --measured reads it. -g: each replay as one CUDA graph;
# where that is refused the table says why.
set -uo pipefail

program=./isthmus results=replays limit=120 record=() graph=()
usage() { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while getopts p:r:d:o:gh option; do
  case $option in
    p) program=$OPTARG ;;
    r) results=$OPTARG ;;
    d) limit=$OPTARG ;;
    o) record=(--record "$OPTARG") ;;
    g) graph=(--graph) ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[ $# -le 1 ] || usage
mkdir -p "$results" || exit 3

# From the JSON of one replay, a line for each policy; needs python3.
table='
import json, sys
name, file = sys.argv[1:]
try:
    document = json.load(open(file))
except (OSError, ValueError):
    document = {"policies": []}
for row in document["policies"]:
    policy = row["policy"]
    if "refused" in row or not row.get("proven", True):
        verdict = "refused" if "refused" in row else "not proven"
        print(f"{name:<40} {policy:<18} {verdict}")
        continue
    seconds, moved = row["measured_seconds"], row["bytes"]
    exact = "exact" if row["byte_exact"] else "WRONG" if row["mismatch_count"] else "unseen"
    rate = moved / seconds * 1e-9 if seconds else 0
    size = moved * 1e-9
    print(f"{name:<40} {policy:<18} {exact:<7} {seconds * 1e3:>11.3f} ms {size:>10.3f} GB {rate:>8.1f} GB/s")
    refused = row.get("graph_refused")
    if refused:
        print(f"{name:<40} {policy:<18} no graph: {refused}")
'

replay() {
  local scenario=$1 policies=${2:-all} scale=${3:-1} repetitions=${4:-3} name file status=0
  name=$(basename "$scenario" .yaml)
  file=$results/$name-${policies//,/+}-$scale
  timeout --kill-after=15 "$limit" "$program" replay "$scenario" --backend nccl --policy "$policies" --scale "$scale" \
    --warm-up 1 --repeat "$repetitions" "${record[@]}" "${graph[@]}" --json >"$file.json" 2>"$file.log" </dev/null || status=$?
  python3 -c "$table" "$name" "$file.json"
  if [ $status != 0 ]; then printf '%-40s exit status %s: %s\n' "$name" $status "$(tail -n 1 "$file.log")"; fi
  return $status
}

worst=0
printf '%-40s %-18s %-7s %14s %13s %13s\n' scenario policy bytes time "between GPUs" rate
while read -r scenario policies scale repetitions; do
  case $scenario in "" | \#*) continue ;; esac
  replay "$scenario" "$policies" "$scale" "$repetitions" || { status=$?; [ $status -gt $worst ] && worst=$status; }
done < "${1:-/dev/stdin}"
exit $worst
