#!/usr/bin/env python3
"""What ranks cost beside the work itself: one rank under launch against plain train; heartbeats and breakdown on
against off; the start of eight ranks against the start of one.

    python bench/rank_overhead.py --json out.json

Runs alternate, A B A B, so that a machine that grows slower is no result. Of a run, the median of its updates counts
(metrics.jsonl, a line each, the first ones left out); of the runs, the median again. The start is the time from the
command to the end of the first update. The machine should be quiet: its load is printed."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WARM_UP = 5  # updates left out at the head of a run
# ViT-Ti at 64 px with patches of 8, one thread a rank, images that cost nothing to load.
MODEL = ["model.arch=vit_tiny_patch16_224", "model.image=64", "model.patch=8", "data.train=synthetic:3x64x64x10x512",
         "augment.hflip=0", "train.log_every=1", "train.save_minutes=1000", "train.eval_every=1000000",
         "train.tensorboard=false"]


def settings(pairs):
    return [word for pair in pairs for word in ("--set", pair)]


class Run:
    """One finished run: its lines and when its command was given."""

    def __init__(self, program, words, folder):
        command = [program, *words, "--out", str(folder)]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.given = time.time()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr[-2000:]}")
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        self.lines = [json.loads(line) for line in lines]

    def updates(self):
        return [line["interval_s"] for line in self.lines if line["kind"] == "train"][WARM_UP:]

    def update_s(self):
        return statistics.median(self.updates())

    def start_s(self):
        return next(line["time"] for line in self.lines if line["kind"] == "train") - self.given

    def phases(self):
        starts = [line for line in self.lines if line["kind"] == "start"]
        return {p["phase"]: max(p["seconds"]) for p in starts[0]["phases"]} if starts else {}


def alternating(program, commands, rounds, measure, work):
    """The median of what each command's runs measure, by name; and the last run of each."""
    found, last = {name: [] for name in commands}, {}
    for number in range(rounds):
        for name, words in commands.items():
            last[name] = Run(program, words, work / f"{name.replace(' ', '-')}-{number}")
            found[name].append(measure(last[name]))
    return {name: statistics.median(values) for name, values in found.items()}, last, found


def compared(title, medians, found, bar):
    (base, base_s), (other, other_s) = medians.items()
    more = other_s / base_s - 1
    print(f"{title}: {other} {1e3 * other_s:.2f} ms an update, {base} {1e3 * base_s:.2f} ms: {100 * more:+.2f} % "
          f"(bar {100 * bar:.0f} %)")
    return {"title": title, "median_s": medians, "runs_s": found, "overhead": more, "bar": bar}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"), help="the program")
    p.add_argument("--rounds", type=int, default=7, help="runs of each command")
    p.add_argument("--updates", type=int, default=60, help="updates of a run")
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--ranks", type=int, default=8, help="ranks whose start is timed")
    p.add_argument("--json", type=pathlib.Path, help="write the results here")
    options = p.parse_args()
    train = ["train", *settings([*MODEL, f"train.batch={options.batch}", f"train.steps={options.updates}"])]
    short = ["train", "--threads", "1", *settings([*MODEL, f"train.batch={options.batch}", "train.steps=2"])]
    results = {"load": os.getloadavg(), "cores": os.cpu_count()}
    print(f"load {results['load'][0]:.2f} on {results['cores']} cores")

    def measure(run):
        return run.update_s()

    with tempfile.TemporaryDirectory(prefix="vitrail-overhead-") as folder:
        work = pathlib.Path(folder)
        one = [*train, "--threads", "1"]
        medians, _, found = alternating(options.vitrail, {"plain train": one, "launch -n 1": ["launch", "-n", "1", *one]},
                                        options.rounds, measure, work)
        results["launch"] = compared("one rank under launch", medians, found, 0.01)
        told = [*one, *settings(["train.breakdown=true"])]
        medians, _, found = alternating(
            options.vitrail,
            {"two ranks, nobody watches": [*one, "--ranks", "2"],
             "two ranks, watched and broken down": ["launch", "-n", "2", "--rank-threads", *told]},
            options.rounds, measure, work)
        results["breakdown"] = compared("heartbeats and breakdown", medians, found, 0.01)
        many = ["launch", "-n", str(options.ranks), *short]
        medians, last, found = alternating(options.vitrail, {"one rank": short, "ranks": many}, options.rounds,
                                           Run.start_s, work)
        beyond = medians["ranks"] - medians["one rank"]
        print(f"start: {options.ranks} ranks {medians['ranks']:.2f} s to the end of update 1, one rank "
              f"{medians['one rank']:.2f} s: {beyond:+.2f} s (bar 3 s)")
        phases = last["ranks"].phases()
        print("  " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in phases.items()))
        results["start"] = {"median_s": medians, "runs_s": found, "beyond_s": beyond, "phases": phases, "bar": 3}
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
