#!/usr/bin/env python3
"""Tries again what an audit of commit 19057f3 found broken (docs/reliability.md, "What an audit found").

audit.py VITRAIL [--shim LIBRARY] [--only ROW...] [--share K/N]

Each row is one defect, reproduced through the command line in a temporary folder, with words that the program of that
commit understands as well: with it the rows are broken, with today's they hold. --shim names libfault_shim.so, without
which the rows that kill at a file operation are left out. --only takes rows (A1) or letters (A), --share one row
of N. Prints a line a row: held, skipped, or broken and what was seen; 0 when none is broken."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import audit_answers
import audit_models
import audit_outputs
import audit_runs
import audit_small
from audit_place import Broken, Place, Skipped

MODULES = [audit_answers, audit_runs, audit_outputs, audit_small, audit_models]
# Rows are the functions that are named as one: b4_rename is one of those that the audit calls B4.
ROWS = {name[0].upper() + name[1:]: function for module in MODULES for name, function in vars(module).items()
        if re.fullmatch(r"[abcdfrsw]\d+(_[a-z]+)?", name)}


def tried(row, args):
    with tempfile.TemporaryDirectory(prefix="vitrail-audit-") as folder:
        try:
            ROWS[row](Place(os.path.abspath(args.vitrail), args.shim, Path(folder)))
        except Broken as broken:
            return f"broken: {broken}".replace(folder + "/", "")
        except Skipped as skipped:
            return f"skipped: {skipped}"
        except (OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError) as error:
            return f"broken: {type(error).__name__}: {error}"  # an answer of another form
    return "held"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vitrail")
    parser.add_argument("--shim", type=lambda path: Path(path).resolve())
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW")
    parser.add_argument("--share", default="0/1", metavar="K/N")
    args = parser.parse_args()
    share, shares = map(int, args.share.split("/"))
    chosen = [row for row in ROWS if not args.only or row in args.only or row[0] in args.only][share::shares]
    if not chosen:
        parser.error(f"no such row; there are {' '.join(ROWS)}")
    answers = []
    for row in chosen:
        began = time.monotonic()
        answers.append(tried(row, args))
        print(f"{row:12} {time.monotonic() - began:5.1f} s  {answers[-1]}", flush=True)
    counts = {word: sum(answer.startswith(word) for answer in answers) for word in ("held", "broken", "skipped")}
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
