#!/usr/bin/env python3
"""A run that loses its machine and comes to the same end: "Exploring the Computational Power of ViTs" lost a run of 2 h 30 at
1 h 03. In small: an undisturbed run; the same run stopped by --max-time at 63 / 150 of that time, resumed, killed by SIGKILL at 63 /
150 of what is left, resumed to its end. Weights, optimizer state and log must be those of the undisturbed run, bit for bit.

    bench/disconnected.py [--vitrail PROGRAM] [--config FILE] [--set KEY=VALUE ...] [--keep]

A minute on two cores with what is set here. Prints a JSON object; 1 where anything differs."""
import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import study

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/faults"))
import kill_train  # noqa: E402: it lies in tests

SHARE = 63 / 150  # of the run, when the machine went
SETTINGS = ["data.fraction=0.25", "train.epochs=4", "train.save_every=20", "train.log_every=5"]


def life(args, out, *words, kill_after=None):
    """(exit code, seconds) of one start of a run."""
    command = [args.vitrail, "train", "--config", args.config, "--out", str(out), "--quiet", *words]
    for pair in args.set or SETTINGS:
        command += ["--set", pair]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(kill_after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return process.returncode, time.monotonic() - began


def step_of(run):
    return int(kill_train.checkpoints(run)[-1].name.split("-")[1])


def last_logged(run):
    return max(json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines())


def experiment(args, folder):
    whole, broken = folder / "whole", folder / "broken"
    rows = []

    def lived(name, run, code, seconds):
        rows.append([name, code, seconds, last_logged(run), step_of(run)])

    code, seconds = life(args, whole)
    lived("undisturbed", whole, code, seconds)
    code, stopped = life(args, broken, "--max-time", f"{max(1, round(SHARE * seconds))}s")
    lived(f"--max-time at {100 * SHARE:.0f} % of it", broken, code, stopped)
    code, killed = life(args, broken, "--resume", kill_after=SHARE * max(2.0, seconds - stopped))
    lived("resumed, then SIGKILL", broken, code, killed)
    code, rest = life(args, broken, "--resume")
    lived("resumed to the end", broken, code, rest)
    try:
        kill_train.compare(broken, whole)
        verdict = "bit for bit"
    except kill_train.Broken as problem:
        verdict = str(problem)
    codes = [row[1] for row in rows]
    files = sorted(path.name for path in kill_train.checkpoints(whole)[-1].glob("*.safetensors"))
    columns = ["start", "exit code", {"title": "seconds", "unit": "s"}, "last step logged", "last checkpoint"]
    return {"verdict": verdict, "compared": files, "as_expected": codes == [0, kill_train.STOPPED, -signal.SIGKILL, 0],
            "tables": {"lives": {"columns": columns, "rows": rows}}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--config", default="configs/demo-fashion.json")
    parser.add_argument("--set", action="append")
    parser.add_argument("--keep", action="store_true", help="write docs/experiments/data/disconnected.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = experiment(args, Path(folder))
    print(json.dumps(result, indent=1))
    if args.keep:
        study.keep("disconnected.json", {"experiment": "004: disconnection at 63 of 150 minutes, in small", "document": "disconnected.md",
                                         "command": "bench/disconnected.py --keep"}, result)
    return 0 if result["verdict"] == "bit for bit" and result["as_expected"] else 1


if __name__ == "__main__":
    sys.exit(main())
