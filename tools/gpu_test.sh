#!/bin/bash
# The tests that need a GPU, those with Cuda in their name, from a folder of built test programs (test_*): the
# folder may have been copied from a machine that builds. Ends in a summary line; fails when a test fails or is
# skipped: a GPU host runs them all, but for those of kernels for a GPU it does not have, which are counted apart.
#   tools/gpu_test.sh FOLDER [TEST-FILTER]       gtest's filter, *Cuda* otherwise
#   SANITIZER=memcheck tools/gpu_test.sh FOLDER  under compute-sanitizer (memcheck, racecheck, ...); races that
#                                                it sees within the libraries' own kernels are counted apart
#   SHARDS=8 tools/gpu_test.sh FOLDER            each program as so many processes at once, but for tests that want
#                                                to know what is free on the GPU: test_cli, and those of $alone
set -uo pipefail
folder=${1:?"usage: tools/gpu_test.sh FOLDER [TEST-FILTER]"}
filter=${2:-*Cuda*}
runner=()
if [ -n "${SANITIZER:-}" ]; then runner=(compute-sanitizer --tool "$SANITIZER" --error-exitcode 86); fi

alone='*TheGpuHolds*'
other_gpu='needs compute capability 9.0'  # as tests/cuda_test.h says it

# The number in gtest's "[  PASSED  ] 12 tests" and its like, over all shards; 0 without such a line.
count() {
  sed -nE "s/^\[ +$1 +\] ([0-9]+) tests?.*/\1/p" "$2" | awk '{ sum += $1 } END { print sum + 0 }'
}

# Runs a program's tests, SHARDS processes at once; the worst exit status, all they said in $log.
run_shards() {
  local shards=${SHARDS:-1} pids=() worst=0 shard shared=$filter
  if [ "$(basename "$1")" = test_cli ]; then shards=1; fi
  if [ "$shards" -gt 1 ] && [ "$filter" = '*Cuda*' ] &&
    "$1" --gtest_list_tests --gtest_filter="$alone" 2>/dev/null | grep -q '^  '; then
    shared="$filter-$alone"
    "${runner[@]}" "$1" --gtest_filter="$alone" >"$log.$shards" 2>&1 || worst=$?
  fi
  for ((shard = 0; shard < shards; ++shard)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard \
      "${runner[@]}" "$1" --gtest_filter="$shared" >"$log.$shard" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || { status=$?; worst=$((status > worst ? status : worst)); }
  done
  cat "$log".[0-9]* >"$log"
  rm -f "$log".[0-9]*
  return "$worst"
}

# Whether all that a sanitizer found are races in kernels that are not ours.
only_foreign_races() {
  [ "${SANITIZER:-}" = racecheck ] && [ "$1" = 86 ] && ! grep -q 'access at .*vitrail' "$log"
}

# The reasons of all skips, a line each.
reasons() {
  grep -A 1 -E ': Skipped$' "$1" | grep -vE ': Skipped$|^--$'
}

# The least margins of right kernels, over all shards (docs/precision.md).
margins() {
  awk -F ': ' '/^margin / && (!($1 in least) || $2 + 0 < least[$1] + 0) { least[$1] = $2 }
               END { for (key in least) print key ": " least[key] }' "$1" | sort
}

log=$(mktemp)
trap 'rm -f "$log" "$log".[0-9]*' EXIT
passed=0 failed=0 skipped=0 elsewhere=0 foreign=0 why=
for program in "$folder"/test_*; do
  [ -x "$program" ] && [ -f "$program" ] || continue
  [ -n "$("$program" --gtest_list_tests --gtest_filter="$filter" 2>/dev/null | grep '^  ')" ] || continue
  echo "== $(basename "$program")"
  run_shards "$program"
  status=$?
  bad=$(count FAILED "$log")
  if [ "$bad" = 0 ] && only_foreign_races "$status"; then
    foreign=$((foreign + $(grep -c 'Race reported' "$log")))
    status=0
  fi
  # A program that dies has no summary, and a sanitizer's finding fails no test.
  if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
    bad=1
    echo "$program ended with status $status"
    tail -n 40 "$log"
  fi
  grep -E '^\[ +FAILED +\] ' "$log" | grep -v ' tests\?, listed below' | sort -u
  grep -B 12 -E '^\[ +FAILED +\] .*\(' "$log" | head -n 200
  margins "$log"
  passed=$((passed + $(count PASSED "$log")))
  others=$(reasons "$log" | grep -cxF "$other_gpu")
  skipped=$((skipped + $(count SKIPPED "$log") - others))
  elsewhere=$((elsewhere + others))
  failed=$((failed + bad))
  why=${why:-$(reasons "$log" | grep -vxF -m 1 "$other_gpu")}
done
if [ "$skipped" != 0 ]; then echo "skipped: $why"; fi
summary="gpu-test: $passed passed, $failed failed, $skipped skipped"
if [ "$elsewhere" != 0 ]; then summary+=", $elsewhere for another GPU"; fi
if [ "$foreign" != 0 ]; then summary+=", $foreign races within libraries' kernels"; fi
echo "$summary"
[ "$failed" = 0 ] && [ "$skipped" = 0 ] && [ "$passed" -gt 0 ]
