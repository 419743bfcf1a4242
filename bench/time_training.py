#!/usr/bin/env python3
"""Times whole training commands and their training steps, with the accuracy they reach: a user waits for the first,
kernels make the second faster.

    python bench/time_training.py configs/cifar10-gpu-90.json --json out.json -- --device cuda

Runs `vitrail train --config CONFIG --out FOLDER` once for each config, with what follows `--` added. The whole command
is everything from the start of the program to its end: opening the data, the training steps, evaluations, checkpoints,
reports.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from draw_runs import curve

ROOT = pathlib.Path(__file__).resolve().parent.parent


def timed_run(program, config, folder, more, clock=time.perf_counter):
    command = [program, "train", "--config", str(config), "--out", str(folder), *more]
    start = clock()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    whole = clock() - start
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr[-2000:]}")
    points = curve(folder)
    if not points:
        sys.exit(f"no evaluation in {folder}: no accuracy to give beside its seconds")
    seconds, percent = points[-1]
    return {"config": str(config), "command": command, "whole_s": whole, "training_s": seconds, "top1_percent": percent,
            "evaluations": len(points)}


def line(row):
    return (f"{row['config']}: {row['top1_percent']:.2f} % top-1, whole command {row['whole_s']:.1f} s, "
            f"training steps {row['training_s']:.1f} s, {row['evaluations']} evaluations")


def parse_options(words):
    at = words.index("--") if "--" in words else len(words)
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("configs", nargs="+", type=pathlib.Path, metavar="CONFIG")
    p.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"), help="the program")
    p.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="leave the runs' folders here")
    p.add_argument("--json", type=pathlib.Path, help="write the results here")
    options = p.parse_args(words[:at])
    options.more = words[at + 1:]
    return options


def main():
    options = parse_options(sys.argv[1:])
    rows = []
    with tempfile.TemporaryDirectory(prefix="vitrail-time-") as temporary:
        for config in options.configs:
            folder = (options.keep or pathlib.Path(temporary)) / config.stem
            rows.append(timed_run(options.vitrail, config, folder, options.more))
            print(line(rows[-1]), flush=True)
            if options.json:
                options.json.write_text(json.dumps({"date": time.strftime("%Y-%m-%d"), "runs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
