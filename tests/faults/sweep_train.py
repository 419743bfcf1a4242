#!/usr/bin/env python3
"""Disturbs a whole training run at every file operation it makes, and compares what a resumed run comes to.

sweep_train.py VITRAIL SHIM CONFIG [--sample N] [--only NAME]... [--seed S]

A run is killed before each operation (and in the middle of each write), on a file system that swaps folders and on
one that cannot; or each operation fails once, by EIO or for lack of space. Or the first life is stopped, and the second
is disturbed. Then the fault is gone and the run is resumed. It must go on from its newest checkpoint, or begin anew where
not even step 0 was saved, and its last checkpoint must equal that of an undisturbed run byte for byte; after a death also
best/ and every measured line of the log. Nothing unfinished may be left, and lines of the log must be on the disk before a
checkpoint that stands on them. --sample takes N operations of each kind; VITRAIL_TEST_LONG in the environment takes all.
Prints one JSON object; 0 when all held."""
import argparse
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from kill_train import STOPPED, Broken, NextLife, check_complete, checkpoints, compare, compare_folders

CANNOT_READ, CANNOT_WRITE = 65, 73
NO_SWAP = {"FAULT_NO_SWAP": "1"}
# name -> (class of operations, what is done at the chosen one, other settings of the shim)
FAULTS = {
    "kill": ("any", "kill", {}),
    "kill without swaps": ("any", "kill", NO_SWAP),
    "torn write": ("write", "torn", {}),
    "EIO": ("any", str(errno.EIO), {}),
    "EIO without swaps": ("any", str(errno.EIO), NO_SWAP),
    "ENOSPC": ("any", str(errno.ENOSPC), {}),
    "EIO when reading": ("read", str(errno.EIO), {}),
    "kill on resume": ("any", "kill", {}),
    "EIO on resume": ("any", str(errno.EIO), {}),
    "EIO when reading on resume": ("read", str(errno.EIO), {}),
}


def disturbs_resume(name):
    return name.endswith("on resume")


def leftovers(run):
    """Names of unfinished work in a run's folder and among its checkpoints."""
    return [str(path.relative_to(run)) for folder in (run, run / "checkpoints") for path in folder.glob(".*")]


def check_durable_logs(path):
    """When a checkpoint gets its name, what was written to metrics.jsonl before has been flushed."""
    unflushed, named, raw = 0, 0, path.read_bytes()
    while raw:
        line, raw = raw.split(b"\n", 1)
        kind, *args = line.decode().split("\t")
        if kind in ("write", "say"):
            raw = raw[int(args[-1]):]
        if kind in ("write", "sync") and args[0].endswith("/metrics.jsonl"):
            unflushed = unflushed + 1 if kind == "write" else 0
        if kind in ("rename", "exchange") and Path(args[1]).name.startswith("step-"):
            named += 1
            if unflushed:
                raise Broken(f"{Path(args[1]).name} was saved before {unflushed} lines of metrics.jsonl were flushed")
    if named < 3:
        raise Broken(f"only {named} checkpoints were seen")


class Sweep:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.random = random.Random(args.seed)
        self.counts = {}

    def life(self, run, *words, resume=True, **faults):
        command = [self.args.vitrail, "train", "--config", self.args.config, "--out", str(run), "--threads", "1",
                   "--set", "loader.workers=1", *words] + (["--resume"] if resume else [])
        settings = {"LD_PRELOAD": self.args.shim, "FAULT_ROOT": str(run)} if faults else {}
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              env={**os.environ, **settings, **faults}, timeout=self.args.limit)
        self.said = done.stderr[-2000:]
        return done.returncode

    def undisturbed(self):
        self.whole = self.work / "whole"
        if self.life(self.whole, resume=False) != 0:
            raise Broken(f"the undisturbed run failed:\n{self.said}")
        if self.life(self.work / "logged", resume=False, FAULT_LOG=str(self.work / "calls")) != 0:
            raise Broken(f"the run under the shim failed:\n{self.said}")
        check_durable_logs(self.work / "calls")
        shutil.rmtree(self.work / "logged")

    def stop(self):
        """A run that was stopped after one update, and again after the next, whose evaluation has left a best/."""
        self.stopped = self.work / "stopped"
        for resume in (False, True):
            if self.life(self.stopped, "--max-time", "0.001s", resume=resume) != STOPPED:
                raise Broken(f"a run was not stopped:\n{self.said}")
        if [folder.name for folder in checkpoints(self.stopped)] != ["step-00000001", "step-00000002"]:
            raise Broken(f"the stopped run has {checkpoints(self.stopped)}")

    def begin(self, run, name):
        """Makes the folder that the life to be disturbed finds; returns whether that is resumed."""
        if disturbs_resume(name):
            shutil.copytree(self.stopped, run, symlinks=True)
        return disturbs_resume(name)

    def operations(self, name):
        run, count, (cls, _, more) = self.work / "counted", self.work / "count", FAULTS[name]
        if self.life(run, resume=self.begin(run, name), FAULT_CLASS=cls, FAULT_COUNT=str(count), **more) != 0:
            raise Broken(f"the run under the shim failed:\n{self.said}")
        compare(run, self.whole)
        shutil.rmtree(run)
        return int(count.read_text())

    def chosen(self, total):
        every = range(1, total + 1)
        if not self.args.sample or self.args.sample >= total:
            return every
        return sorted(self.random.sample(every, self.args.sample))

    def case(self, name, at):
        cls, action, more = FAULTS[name]
        run, dies = self.work / "run", action in ("kill", "torn")
        code = self.life(run, resume=self.begin(run, name), FAULT_CLASS=cls, FAULT_ACTION=action, FAULT_AT=str(at), **more)
        failures = [CANNOT_WRITE, CANNOT_READ] if cls == "read" else [CANNOT_WRITE]
        if code not in ([-signal.SIGKILL] if dies else [0, *failures]):
            raise Broken(f"it ended with {code}:\n{self.said}")
        check_complete(run)
        last = NextLife(run)
        went_on = "finished" if code == 0 else "resumed" if last.resumed else "begun anew"
        if self.life(run, **more) != 0:
            raise Broken(f"--resume failed:\n{self.said}")
        last.check()
        if dies:
            compare(run, self.whole)
        else:
            compare_folders(checkpoints(run)[-1], checkpoints(self.whole)[-1])
        if not (run / "best/config.json").exists():
            raise Broken("there is no best/")
        if leftovers(run):
            raise Broken(f"{leftovers(run)} are left over")
        shutil.rmtree(run)
        return went_on

    def sweep(self, name):
        total = self.operations(name)
        tally = self.counts[name] = {"operations": total, "tried": 0}
        for at in self.chosen(total):
            try:
                outcome = self.case(name, at)
            except Broken as broken:
                raise Broken(f"{name} at operation {at} of {total}: {broken}") from None
            tally["tried"] += 1
            tally[outcome] = tally.get(outcome, 0) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vitrail")
    parser.add_argument("shim")
    parser.add_argument("config")
    parser.add_argument("--sample", type=int, default=0, help="operations of each kind; 0: all")
    parser.add_argument("--only", action="append", choices=FAULTS, help="these kinds alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120, help="seconds one life may take")
    args = parser.parse_args()
    if os.environ.get("VITRAIL_TEST_LONG"):
        args.sample = 0
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="vitrail-sweep-", dir=place) as work:
        sweep, fault = Sweep(args, Path(work)), None
        try:
            sweep.undisturbed()
            kinds = args.only or list(FAULTS)
            if any(map(disturbs_resume, kinds)):
                sweep.stop()
            for name in kinds:
                sweep.sweep(name)
        except Broken as broken:
            fault = str(broken)
    print(json.dumps({"ok": fault is None, "fault": fault, "seed": args.seed, **sweep.counts}, indent=1))
    return 0 if fault is None else 1


if __name__ == "__main__":
    sys.exit(main())
