#!/usr/bin/env python3
"""Kills a scaling study at every file operation it makes, and starts it again with the same command.

sweep_scale.py VITRAIL SHIM [--sample N] [--only NAME]...

A study of two cases is killed before each operation on files of its folder (or in the middle of each write), when it begins and when
it goes on with one case that is kept; or each operation fails once. At once after that every file under its own name must be whole. Then
the same command must end well, leave every case as it was that had been kept, and exactly the files of an undisturbed study, whose results name
every case. --sample takes N of all these moments, evenly chosen; VITRAIL_TEST_LONG in the environment takes all. Prints one JSON
object; 0 when all held."""
import argparse
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from kill_train import Broken

CANNOT_WRITE = 73
STUDY = ["scale", "-m", "vit_tiny_patch16_224", "--ranks", "1,2", "--batches", "4", "--repeat", "1", "--updates", "1", "--warmup", "0",
         "--messages", "0", "--set", "model.image=16", "--set", "model.patch=8", "--set", "model.width=32", "--set", "model.depth=1",
         "--set", "model.heads=2", "--set", "model.mlp=64", "--set", "model.classes=4"]
# name -> (class of operations, what is done at the chosen one, whether a case is kept before)
FAULTS = {
    "kill": ("any", "kill", False),
    "torn write": ("write", "torn", False),
    "kill going on": ("any", "kill", True),
    "EIO": ("any", str(errno.EIO), False),
    "ENOSPC going on": ("any", str(errno.ENOSPC), True),
}
# How a file of each kind ends; JSON is parsed.
ENDS = {".svg": "</svg>", ".html": "</html>", ".csv": "\n", ".txt": "\n"}


def names_of(folder):
    """Every file below the folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def check_whole(folder):
    """No file has its name before it has all of its content."""
    for name in names_of(folder):
        path = folder / name
        if path.name.startswith(".") or name == "run.lock":
            continue
        text = path.read_text()
        try:
            whole = json.loads(text) != {} if path.suffix == ".json" else text.rstrip(" \n" if ENDS[path.suffix] != "\n" else "").endswith(ENDS[path.suffix])
        except ValueError:
            whole = False
        if not whole:
            raise Broken(f"{name} is not whole: {text[-60:]!r}")


def cases_of(folder):
    return {path.name: path.read_text() for path in (folder / "cases").glob("[!.]*")}


class Sweep:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.counts = {}

    def life(self, folder, **faults):
        settings = {"LD_PRELOAD": self.args.shim, "FAULT_ROOT": str(folder)} if faults else {}
        done = subprocess.run([self.args.vitrail, *STUDY, "--out", str(folder)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={**os.environ, **settings, **faults}, timeout=120)
        self.said = done.stderr[-2000:]
        return done.returncode

    def begin(self, folder, goes_on):
        if goes_on:
            (folder / "cases").mkdir(parents=True)
            for name in ("study-config.json", f"cases/{min(cases_of(self.whole))}"):
                shutil.copy(self.whole / name, folder / name)

    def operations(self, name):
        folder, count, (cls, _, goes_on) = self.work / "counted", self.work / "count", FAULTS[name]
        self.begin(folder, goes_on)
        if self.life(folder, FAULT_CLASS=cls, FAULT_COUNT=str(count)) != 0:
            raise Broken(f"the study under the shim failed:\n{self.said}")
        shutil.rmtree(folder)
        return int(count.read_text())

    def check_results(self, folder):
        study, expected = (json.loads((place / "study.json").read_text()) for place in (folder, self.whole))
        rows = (folder / "study.csv").read_text().splitlines()
        if (study["order"], study["failed"], len(study["points"]), len(rows)) != (expected["order"], 0, len(expected["points"]), self.rows):
            raise Broken(f"other results: {study['order']}, {study['failed']} failed, {len(study['points'])} points, {len(rows)} rows")
        if sorted(cases_of(folder)) != sorted(name + ".json" for name in study["order"]):
            raise Broken(f"the cases are {sorted(cases_of(folder))}")

    def case(self, name, at):
        cls, action, goes_on = FAULTS[name]
        folder, dies = self.work / "study", action in ("kill", "torn")
        self.begin(folder, goes_on)
        code = self.life(folder, FAULT_CLASS=cls, FAULT_ACTION=action, FAULT_AT=str(at))
        if code not in ([-signal.SIGKILL] if dies else [0, CANNOT_WRITE]):
            raise Broken(f"it ended with {code}:\n{self.said}")
        check_whole(folder)
        kept = cases_of(folder)
        if self.life(folder) != 0:
            raise Broken(f"the same command failed:\n{self.said}")
        if {name: text for name, text in cases_of(folder).items() if name in kept} != kept:
            raise Broken("a case that was kept was measured again")
        check_whole(folder)
        if names_of(folder) != names_of(self.whole):
            raise Broken(f"files that should not be there, or are not: {sorted(names_of(folder) ^ names_of(self.whole))}")
        self.check_results(folder)
        shutil.rmtree(folder)
        return f"{len(kept)} kept"

    def sweep(self, kinds):
        self.whole = self.work / "whole"
        if self.life(self.whole) != 0:
            raise Broken(f"the undisturbed study failed:\n{self.said}")
        check_whole(self.whole)
        self.rows = len((self.whole / "study.csv").read_text().splitlines())
        moments = []
        for name in kinds:
            total = self.operations(name)
            self.counts[name] = {"operations": total, "tried": 0}
            moments += [(name, at) for at in range(1, total + 1)]
        few = min(self.args.sample or len(moments), len(moments))
        for name, at in (moments[(2 * i + 1) * len(moments) // (2 * few)] for i in range(few)):
            try:
                outcome = self.case(name, at)
            except Broken as broken:
                raise Broken(f"{name} at operation {at} of {self.counts[name]['operations']}: {broken}") from None
            self.counts[name]["tried"] += 1
            self.counts[name][outcome] = self.counts[name].get(outcome, 0) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vitrail")
    parser.add_argument("shim")
    parser.add_argument("--sample", type=int, default=0, help="moments in all; 0: every one")
    parser.add_argument("--only", action="append", choices=FAULTS, help="these kinds alone")
    args = parser.parse_args()
    if os.environ.get("VITRAIL_TEST_LONG"):
        args.sample, args.only = 0, None
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="vitrail-sweep-", dir=place) as work:
        sweep, fault = Sweep(args, Path(work)), None
        try:
            sweep.sweep(args.only or list(FAULTS))
        except Broken as broken:
            fault = str(broken)
    print(json.dumps({"ok": fault is None, "fault": fault, **sweep.counts}, indent=1))
    return 0 if fault is None else 1


if __name__ == "__main__":
    sys.exit(main())
