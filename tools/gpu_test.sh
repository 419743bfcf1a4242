#!/bin/bash
# The tests that need a GPU, those with Cuda in their name, from a folder of built test programs (test_*): the
# folder may have been copied from a machine that builds. Ends in a summary line; fails when a test fails or is
# skipped: a GPU host runs them all, but for those of kernels for a card it has not, which are counted apart.
#   tools/gpu_test.sh FOLDER [TEST-FILTER]       gtest's filter, *Cuda* otherwise
#   SANITIZER=memcheck tools/gpu_test.sh FOLDER  under compute-sanitizer (memcheck, racecheck, ...)
set -uo pipefail
folder=${1:?"usage: tools/gpu_test.sh FOLDER [TEST-FILTER]"}
filter=${2:-*Cuda*}
runner=()
if [ -n "${SANITIZER:-}" ]; then runner=(compute-sanitizer --tool "$SANITIZER" --error-exitcode 86); fi

other_card='needs compute capability 9.0'  # as tests/cuda_test.h says it

# The number in gtest's "[  PASSED  ] 12 tests" and its like; 0 without such a line.
count() {
  sed -nE "s/^\[ +$1 +\] ([0-9]+) tests?.*/\1/p" "$2" | tail -1 | grep . || echo 0
}

# The reasons of all skips, a line each.
reasons() {
  grep -A 1 -E ': Skipped$' "$1" | grep -vE ': Skipped$|^--$'
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0 elsewhere=0 why=
for program in "$folder"/test_*; do
  [ -x "$program" ] && [ -f "$program" ] || continue
  [ -n "$("$program" --gtest_list_tests --gtest_filter="$filter" 2>/dev/null | grep '^  ')" ] || continue
  echo "== $(basename "$program")"
  "${runner[@]}" "$program" --gtest_filter="$filter" >"$log" 2>&1
  status=$?
  bad=$(count FAILED "$log")
  # A program that dies has no summary, and a sanitizer's finding fails no test.
  if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
    bad=1
    echo "$program ended with status $status"
    tail -n 40 "$log"
  fi
  grep -E '^\[ +FAILED +\] ' "$log" | grep -v ' tests\?, listed below' | sort -u
  grep -B 12 -E '^\[ +FAILED +\] .*\(' "$log" | head -n 200
  passed=$((passed + $(count PASSED "$log")))
  others=$(reasons "$log" | grep -cxF "$other_card")
  skipped=$((skipped + $(count SKIPPED "$log") - others))
  elsewhere=$((elsewhere + others))
  failed=$((failed + bad))
  why=${why:-$(reasons "$log" | grep -vxF -m 1 "$other_card")}
done
if [ "$skipped" != 0 ]; then echo "skipped: $why"; fi
summary="gpu-test: $passed passed, $failed failed, $skipped skipped"
if [ "$elsewhere" != 0 ]; then summary+=", $elsewhere for another card"; fi
echo "$summary"
[ "$failed" = 0 ] && [ "$skipped" = 0 ] && [ "$passed" -gt 0 ]
