#!/bin/bash
# Ranks on GPUs, by NCCL and staged: the tests, then the bar of two rank threads on one GPU against one rank, and 2
# and 4 processes under mpirun for correctness. Each part has a deadline of its own, so one that hangs costs no
# more; a short table comes last. Runs from a folder of built programs, which may have been copied here.
#   bench/gpu_ranks.sh BUILD-FOLDER PATH-OF-libnccl.so.2 [FOLDER-FOR-LOGS]
# Several ranks share a GPU where there are fewer GPUs than ranks, which needs NCCL 2.30 or later.
set -uo pipefail
build=${1:?"usage: bench/gpu_ranks.sh BUILD-FOLDER PATH-OF-libnccl.so.2 [FOLDER-FOR-LOGS]"}
export VITRAIL_NCCL=${2:?"the path of libnccl.so.2 (pip install nvidia-nccl-cu13 brings it)"}
logs=${3:-$(mktemp -d)}
mkdir -p "$logs"
export NCCL_MULTI_RANK_GPU_ENABLE=1 CUDA_DEVICE_MAX_CONNECTIONS=32 NCCL_DEBUG=${NCCL_DEBUG:-WARN} NCCL_DEBUG_FILE=$logs/nccl.%p.log
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
model=${MODEL:-vit_base_patch16_224} batch=${BATCH:-128} steps=${STEPS:-20}
table=$logs/table.txt
: >"$table"

say() { printf '%-34s %s\n' "$1" "$2" | tee -a "$table"; }

# part NAME SECONDS COMMAND...: runs it; what it said is in $logs/NAME.log, its JSON in $logs/NAME.json.
part() {
  local name=$1 seconds=$2 start=$SECONDS status
  shift 2
  timeout -k 5 "$seconds" "$@" >"$logs/$name.json" 2>"$logs/$name.log"
  status=$?
  case $status in
    0) return 0 ;;
    124 | 137) say "$name" "HANGS: ended after $seconds s" ;;
    *) say "$name" "FAILED with status $status after $((SECONDS - start)) s" ;;
  esac
  tail -n 12 "$logs/$name.json" "$logs/$name.log"
  return 1
}

# tests NAME SECONDS FILTER: one line of gtest's counts.
tests() {
  part "$1" "$2" "$build/test_ranks" --gtest_filter="$3" --gtest_brief=1 || return
  say "$1" "$(grep -hE '^\[ +(PASSED|SKIPPED) +\] [0-9]' "$logs/$1.json" | tr -s ' ' | tr '\n' ' ')"
}

bench() {  # NAME SECONDS LAUNCHER... -- ARGUMENTS...
  local name=$1 seconds=$2 launcher=()
  shift 2
  while [ "$1" != -- ]; do launcher+=("$1"); shift; done
  shift
  part "$name" "$seconds" "${launcher[@]}" "$build/vitrail" bench train --json --device "${DEVICE:-cuda}" "$@"
}

# field NAME KEY.KEY: a number of a part's JSON; empty where there is none.
field() {
  python3 - "$logs/$1.json" "$2" <<'PY' 2>/dev/null
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = value[key]
print(value)
PY
}

# same NAME OTHER TOLERANCE: whether the losses after the same steps agree.
same() {
  python3 - "$(field "$1" loss)" "$(field "$2" loss)" "$3" <<'PY' 2>/dev/null || echo "no losses to compare"
import sys
one, many, tolerance = map(float, sys.argv[1:])
off = abs(many - one) / abs(one)
print(f"loss {many:.6f} against {one:.6f}, off by {off:.1e}: {'ok' if off <= tolerance else 'TOO FAR'} ({tolerance:g})")
PY
}

"$build/vitrail" doctor 2>&1 | grep -E '^ +(cuda|nccl|mpi) '
start=$SECONDS

tests collectives 60 'NcclOnGpu.CollectivesOfTwoRanks'
for mesh in dp2 zero1 zero3 accumulated tp2 tp2_tokens sp2; do
  tests "losses_$mesh" 20 "Gpu/NcclMesh.LossesOfOneRankAndRecorded/$mesh"
done

common=(-m "$model" --weights rule --dtype bf16 --warmup 5 --steps "$steps")
if bench one_rank 60 -- "${common[@]}" --batch $((2 * batch)); then
  say one_rank "$(field one_rank ms_median) ms an update of $((2 * batch))"
fi
# NCCL's kernels hold multiprocessors while they wait for the other rank: fewer of them may be faster.
for ctas in 32 8 4; do
  name=two_ranks_${ctas}_ctas
  bench "$name" 60 env NCCL_MAX_CTAS=$ctas -- "${common[@]}" --batch "$batch" --ranks 2 || continue
  python3 - "$name" "$(field one_rank ms_median)" "$(field "$name" update_s.median)" "$(field "$name" hidden_share)" \
    "$(field "$name" flight_s)" "$(field "$name" exposed_share)" "$(field "$name" devices)" <<'PY' | tee -a "$table"
import sys
name, (one, two, hidden, flight, exposed) = sys.argv[1], (float(x) if x else float("nan") for x in sys.argv[2:7])
print(f"{name:34} {1e3 * two:.2f} ms an update by {sys.argv[7]}, {1e3 * two / one:.3f} of one rank (bar 1.15)")
print(f"{'':34} {100 * hidden:.1f} % of {1e3 * flight:.2f} ms of collectives hidden (bar 80)")
print(f"{'':34} exposed: {100 * exposed:.1f} % of the time")
PY
  say "" "$(same one_rank "$name" 5e-3)"
done

small=(-m vit_tiny_patch16_224 --weights rule --dtype f32 --warmup 2 --steps 3 --classes 10)
bench small_one 40 -- "${small[@]}" --batch 16
if bench small_threads 40 -- "${small[@]}" --batch 8 --ranks 2; then
  say small_threads "$(field small_threads devices), $(same small_one small_threads 1e-5)"
fi
if command -v mpirun >/dev/null; then
  for ranks in 2 4; do
    if bench "processes_$ranks" 75 mpirun --oversubscribe --bind-to none -n "$ranks" -- "${small[@]}" --batch $((16 / ranks)); then
      say "processes_$ranks" "$(field "processes_$ranks" devices), $(same small_one "processes_$ranks" 1e-5)"
    fi
  done
else
  say processes "skipped: mpirun is not in PATH"
fi

for mesh in dp2 zero3 tp2_tokens; do
  tests "twice_$mesh" 30 "Gpu/NcclMesh.TheSameBitsTwiceAndNodeByNode/$mesh"
done
tests staged 75 'CudaStagedRanks.*'
for mesh in dp3 sp3 dp2_tp2; do
  tests "four_threads_$mesh" 20 "Gpu/NcclOnFourThreads.LossesOfOneRank/$mesh"
done
if bench two_staged 60 -- "${common[@]}" --batch "$batch" --ranks 2 --set mesh.transport=staged; then
  say two_staged "$(field two_staged update_s.median) s an update, $(same one_rank two_staged 5e-3)"
fi

echo
echo "== $model, $batch images a rank, $((SECONDS - start)) s in all; logs in $logs"
cat "$table"
! grep -qE 'HANGS|FAILED|SKIPPED|TOO FAR|no losses' "$table"
