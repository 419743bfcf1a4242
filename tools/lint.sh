#!/bin/bash
# tools/lint.sh format            rewrites every source file in the project's style
# tools/lint.sh check [--changed] the gate: style, clang-tidy (needs build/release configured), own checks
set -euo pipefail
cd "$(dirname "$0")/.."

tool() {  # the pinned version where there is one: other versions format differently
  command -v "$1-14" || command -v "$1" || { echo "vitrail: $1 is not installed" >&2; exit 1; }
}
sources() { find src include tests fuzz bench examples -name '*.cpp' -o -name '*.h' | sort; }

clang_format=$(tool clang-format)
if [[ $1 == format ]]; then
  sources | xargs -r "$clang_format" -i
  exit 0
fi

if [[ ${2:-} == --changed ]]; then
  files=$({ git diff --name-only HEAD; git ls-files --others --exclude-standard; } |
    sort -u | grep -Fxf <(sources) || true)
else
  files=$(sources)
fi
failed=0
xargs -r "$clang_format" --dry-run -Werror <<<"$files" || failed=1

# clang-tidy knows how to compile what is in the compilation database; headers are checked with their users.
clang_tidy=$(tool clang-tidy)
database=build/release/compile_commands.json
known=$(python3 -c 'import json, os, sys
for e in json.load(open(sys.argv[1])): print(os.path.relpath(e["file"]))' "$database" | sort -u)
{ grep -Fxf <(echo "$known") <<<"$files" || true; } |
  xargs -r -n 1 -P "$(nproc)" "$clang_tidy" --quiet -p build/release 2> >(grep -v 'warnings\? generated' >&2) ||
  failed=1

for check in check_layers check_purity check_sizes check_docs; do
  "tools/$check" || failed=1
done
exit $failed
