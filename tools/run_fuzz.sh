#!/bin/bash
# Runs every fuzz target over its corpus: tools/run_fuzz.sh BUILD_DIR RUNS. A target reads
# fuzz/corpus/<its name>; new inputs go to BUILD_DIR, so the kept corpus changes only by hand.
set -euo pipefail
build=$(realpath "$1")
runs=$2
cd "$(dirname "$0")/.."
shopt -s nullglob
targets=("$build"/fuzz_*)
found=0
for target in "${targets[@]}"; do
  [[ -f $target && -x $target ]] || continue
  found=$((found + 1))
  name=$(basename "$target")
  mkdir -p "$build/corpus/$name" "$build/findings"
  seeds=fuzz/corpus/$name
  [[ -d $seeds ]] || seeds=
  echo "== $name: $runs runs"
  "$target" -runs="$runs" -rss_limit_mb=2048 -timeout=10 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$name-" "$build/corpus/$name" $seeds
done
if [[ $found -eq 0 ]]; then
  echo "vitrail: no fuzz targets in $build" >&2
  exit 1
fi
echo "== $found targets, nothing found"
