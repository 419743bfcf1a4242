#!/bin/bash
# Names the tests of the last ctest run that took more than 10 s, the slowest first: slow_tests.sh [BUILD_FOLDER [SECONDS]]
# Such a test is split or moved to `make test-long`. Never fails: a busy machine is slow, too.
set -uo pipefail
cd "$(dirname "$0")/.."
log=${1:-build/release}/Testing/Temporary/LastTest.log limit=${2:-10}
if [[ ! -f $log ]]; then
  echo "slow_tests: no $log: ctest has not run there" >&2
  exit 0
fi
slow=$(awk -v limit="$limit" '/^[0-9]+\/[0-9]+ Testing: / {name = $3}
                              /^Test time = / && $4 > limit {printf "%8.1f s  %s\n", $4, name}' "$log" | sort -rn)
if [[ -z $slow ]]; then
  echo "no test took more than $limit s"
else
  echo "tests that took more than $limit s:"
  echo "$slow"
fi
