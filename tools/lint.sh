#!/bin/bash
# tools/lint.sh format               rewrites every source file in the project's style
# tools/lint.sh check                the gate: style, clang-tidy, own checks (needs `cmake --preset lint-whole`)
# tools/lint.sh check --changed      of files not committed yet (needs `cmake --preset lint`, as the next)
# tools/lint.sh check --since REF    style of every file; clang-tidy of at most 12 that changed since REF, evenly chosen;
#                                    subjects of the newest 30 commits and of those since REF, merged ones included
set -euo pipefail
cd "$(dirname "$0")/.."

tool() {  # the pinned version where there is one: other versions format differently
  command -v "$1-14" || command -v "$1" || { echo "vitrail: $1 is not installed" >&2; exit 1; }
}
sources() { find src include tests fuzz bench examples -regex '.*\.\(cpp\|h\|cu\|cuh\)' | sort; }

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

# clang-tidy knows how to compile what is in a compilation database, which has no CUDA source; headers are checked with
# their users.
clang_tidy=$(tool clang-tidy)
if [[ -z ${2:-} ]]; then
  tools/tidy_whole.py build/lint-whole --tidy "$clang_tidy" || failed=1
else
  known=$(python3 -c 'import json, os, sys
for e in json.load(open(sys.argv[1])): print(os.path.relpath(e["file"]))' build/lint/compile_commands.json | sort -u)
  checked=$(grep -Fxf <(echo "$known") <<<"$files" || true)
  count=$(grep -c . <<<"$checked" || true)
  if ((count > most)); then
    echo "vitrail: clang-tidy looks at $most of $count changed files" >&2
    checked=$(awk -v step="$((count / most))" -v most="$most" 'NR % step == 0 && NR / step <= most' <<<"$checked")
  fi
  xargs -r -n 1 -P "$(nproc)" "$clang_tidy" --quiet -p build/lint 2> >(grep -v 'warnings\? generated' >&2) <<<"$checked" ||
    failed=1
fi

if [[ ${2:-} == --since ]]; then
  # What lands may be many commits, of which REF leaves out all but the newest; those before them cannot be changed.
  long=$({ git log --max-count=30 --format=%s; git log --format=%s "$3..HEAD"; } | awk 'length >= 72 && !seen[$0]++')
  if [[ -n $long ]]; then
    printf 'vitrail: a commit subject has fewer than 72 characters, not as in:\n%s\n' "$long" >&2
    failed=1
  fi
fi

for check in check_layers check_purity check_sizes check_statements check_docs; do
  "tools/$check" || failed=1
done
exit $failed
