#!/usr/bin/env bash
# Everything that one host with several GPUs can tell, as one run: topology as the driver and NCCL see it, the
# calibration, and the replays of a list on 2, 4, 8, ... GPUs. Prints tables; details go to a folder, records
# of the replays (isthmus scoreboard --measured) to measured.jsonl there.
#
#   hw/measure_host.sh [-p PROGRAM] [-r RESULTS] [-m MOST_GPUS] [LIST]
#
# LIST: as hw/replay_on_gpus.sh takes it; default scenarios/metal/replays.txt. Exit status: the greatest one of its parts.
set -uo pipefail

program=./isthmus results=measured most=0
usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while getopts p:r:m:h option; do
  case $option in
    p) program=$OPTARG ;;
    r) results=$OPTARG ;;
    m) most=$OPTARG ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[ $# -le 1 ] || usage
list=${1:-scenarios/metal/replays.txt} worst=0
here=$(dirname "$0")
mkdir -p "$results" || exit 3
present=$(nvidia-smi --list-gpus | wc -l) || exit 3
[ "$most" -gt 0 ] && [ "$most" -lt "$present" ] || most=$present

part() {
  local name=$1 status=0; shift
  echo "== $name"
  "$@" || status=$?
  [ $status = 0 ] || echo "== $name: exit status $status"
  if [ $status -gt $worst ]; then worst=$status; fi
}

gpus() { seq -s, 0 $(($1 - 1)); }

calibrate() {
  CUDA_VISIBLE_DEVICES=$(gpus 2) NCCL_TOPO_DUMP_FILE=$results/nccl-topology.xml \
    NCCL_GRAPH_DUMP_FILE=$results/nccl-graph.xml "$program" calibrate --json -o "$results/calibration.yaml" \
    >"$results/curves.jsonl" && wc -l <"$results/curves.jsonl"
}

nvidia-smi topo -m >"$results/topology.txt"
part "topology" cat "$results/topology.txt"
part "calibration, two GPUs" calibrate
for ((count = 2; count <= most; count *= 2)); do
  export CUDA_VISIBLE_DEVICES; CUDA_VISIBLE_DEVICES=$(gpus "$count")
  part "replays, $count GPUs" "$here/replay_on_gpus.sh" -p "$program" -r "$results/$count-gpus" -o "$results/measured.jsonl" "$list"
done
exit $worst
