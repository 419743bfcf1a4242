#!/bin/bash
# A Python with the packages some tests read our files back with, in .venv: tools/test_python.sh. Never fails: where
# they cannot be had, those tests skip and say so.
set -uo pipefail
cd "$(dirname "$0")/.."
packages=(tensorboard==2.21.0)
[[ -x .venv/bin/python ]] && .venv/bin/python -c 'import tensorboard' 2>/dev/null && exit 0
command -v python3 >/dev/null || exit 0
{ timeout 60 python3 -m venv .venv && timeout 180 .venv/bin/pip install -q --disable-pip-version-check "${packages[@]}"; } \
  >/dev/null 2>&1 || echo "vitrail: no tensorboard package to test with; its test will skip" >&2
exit 0
