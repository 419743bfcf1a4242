#!/bin/bash
# Prints the Python that bench/compare_peers.py runs with: $PYTHON, or .venv-bench with the pinned peers, made when it
# is missing or bench/requirements.txt has changed. What cannot be installed is left out; the comparison names it.
set -uo pipefail
cd "$(dirname "$0")/.."
if [[ -n ${PYTHON:-} ]]; then
  echo "$PYTHON"
  exit 0
fi
venv=.venv-bench wanted=bench/requirements.txt
if ! cmp -s "$wanted" "$venv/installed.txt"; then
  echo "vitrail: installing the peers into $venv (some GB; pip's own settings choose where from)" >&2
  python3 -m venv "$venv" >&2 || { echo "vitrail: python3 -m venv failed; PYTHON= names a Python to use" >&2; exit 1; }
  complete=1
  if ! "$venv/bin/pip" install -q --disable-pip-version-check -r "$wanted" >&2; then
    for package in $(grep -v '^#' "$wanted"); do
      "$venv/bin/pip" install -q --disable-pip-version-check "$package" >&2 || complete=
    done
  fi
  [[ -n $complete ]] && cp "$wanted" "$venv/installed.txt"
fi
echo "$PWD/$venv/bin/python"
