#!/bin/bash
# tools/lint.sh format               rewrites every source file in the project's style
# tools/lint.sh check                the gate: style, clang-tidy (needs build/release configured), own checks
# tools/lint.sh check --changed      of files not committed yet
# tools/lint.sh check --since REF    style of every file; clang-tidy of at most 12 that changed since REF, evenly chosen
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

most=1000000
styled=
case ${2:-} in
  --changed)
    files=$({ git diff --name-only HEAD; git ls-files --others --exclude-standard; } |
      sort -u | grep -Fxf <(sources) || true) ;;
  --since)
    files=$(git diff --name-only "$3" HEAD | sort -u | grep -Fxf <(sources) || true)
    styled=$(sources)  # quick, and no commit of several escapes
    most=12 ;;
  *) files=$(sources) ;;
esac
failed=0
xargs -r "$clang_format" --dry-run -Werror <<<"${styled:-$files}" || failed=1

# clang-tidy knows how to compile what is in the compilation database; headers are checked with their users. It is
# given a database without g++'s precompiled headers, which clang cannot read.
clang_tidy=$(tool clang-tidy)
known=$(python3 -c 'import json, os, re, sys
entries = json.load(open(sys.argv[1]))
for e in entries:
    e["command"] = re.sub(r" -include \S*cmake_pch\S*| -Winvalid-pch| -fpch-preprocess", "", e["command"])
    print(os.path.relpath(e["file"]))
os.makedirs(sys.argv[2], exist_ok=True)
json.dump(entries, open(sys.argv[2] + "/compile_commands.json", "w"))' build/release/compile_commands.json build/lint | sort -u)
checked=$(grep -Fxf <(echo "$known") <<<"$files" || true)
count=$(grep -c . <<<"$checked" || true)
if ((count > most)); then
  echo "vitrail: clang-tidy looks at $most of $count changed files" >&2
  checked=$(awk -v step="$((count / most))" -v most="$most" 'NR % step == 0 && NR / step <= most' <<<"$checked")
fi
xargs -r -n 1 -P "$(nproc)" "$clang_tidy" --quiet -p build/lint 2> >(grep -v 'warnings\? generated' >&2) <<<"$checked" ||
  failed=1

for check in check_layers check_purity check_sizes check_docs; do
  "tools/$check" || failed=1
done
exit $failed
