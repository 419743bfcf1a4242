#!/usr/bin/env python3
"""Kills fresh runs of the demonstration at random moments of their first two minutes, and resumes each of them.

kill_demo.py VITRAIL [--kills N] [--within SECONDS] [--config FILE] [--seed S] [--set KEY=VALUE...]

Each time a run is begun in a new folder, ended by SIGKILL after a random time, and started again with --resume: that
must go on from the newest checkpoint, or begin anew where not even step 0 was saved, and make at least one update more. With
--set train.save_minutes=0.1 there are checkpoints behind step 0 to go on from. Wants the Debian package
dataset-fashion-mnist. Prints one JSON object; 0 when every run could be resumed."""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from kill_train import STOPPED, Broken, NextLife, check_complete, checkpoints

CONFIG = Path(__file__).resolve().parents[2] / "configs/demo-fashion.json"


def last_step(run):
    path = run / "metrics.jsonl"
    steps = [json.loads(line)["step"] for line in path.read_text().splitlines()] if path.exists() else []
    return max(steps, default=0)


def one_death(args, run, seconds):
    """How it went: resumed from a later step, from step 0, begun anew, ended before; or what went wrong."""
    command = [args.vitrail, "train", "--config", str(args.config), "--out", str(run), "--quiet",
               "--set", "train.log_every=1", *(part for setting in args.set for part in ("--set", setting))]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
        return "ended before"
    except subprocess.TimeoutExpired:
        pass  # and killed
    check_complete(run)
    saved, life = [int(folder.name[5:]) for folder in checkpoints(run)], NextLife(run)
    done = subprocess.run([*command, "--resume", "--max-time", "1s"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=600)
    if done.returncode not in (0, STOPPED):
        return f"killed after {seconds:.2f} s, --resume ended with {done.returncode}: {done.stderr}"
    try:
        life.check()
    except Broken as broken:
        return f"killed after {seconds:.2f} s, resumed from {saved}: {broken}"
    if last_step(run) <= max(saved, default=0):
        return f"killed after {seconds:.2f} s, resumed from {saved} and made no step"
    return "begun anew" if not saved else "resumed from step 0" if saved[-1] == 0 else "resumed from a later step"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vitrail")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--within", type=float, default=120, help="seconds of a run's beginning")
    parser.add_argument("--config", default=CONFIG)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the runs' config")
    args = parser.parse_args()
    draw, counts, faults = random.Random(args.seed), {}, []
    for _ in range(args.kills):
        with tempfile.TemporaryDirectory(prefix="vitrail-demo-") as work:
            outcome = one_death(args, Path(work) / "run", draw.uniform(0, args.within))
        if outcome.startswith("killed"):
            faults.append(outcome)
        else:
            counts[outcome] = counts.get(outcome, 0) + 1
    print(json.dumps({"ok": not faults, "faults": faults, "seed": args.seed, "within": args.within, **counts}))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
