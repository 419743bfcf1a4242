#!/usr/bin/env python3
"""Ranks of unequal speed on one host: the even cut, mesh.balance=auto and shares by hand, beside each rank alone.

    python bench/mixed_ranks.py --vitrail build/release/vitrail --threads 4,4,2,1 [--batch 128] [--rounds 3] [--minutes 5] [--processes]

A ViT-Tiny at 64 pixels with patches of 8 trains on synthetic images; a rank's threads are its speed (--slow 1:0.5 makes rank 1
sleep half of each node's time as well). "Alone" is every rank by itself, one after the other, with the images that its share of
the speed gives it: their sum is what ranks that never wait would reach. By hand: shares in proportion to the speeds alone,
those of auto, and moves of images between the ranks of both; the best counts. Sides alternate; numbers are medians over rounds of
the median update. Losses of ten updates are compared with those of one rank. Every run is a line on stderr. When the minutes are
over, no further side is begun once each has been measured; a round of 4,4,2,1 is a dozen runs. Prints tables and one JSON object."""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import study
from rank_copies import ENVIRONMENT, exit_when_ended

sys.path.insert(0, str(study.ROOT / "tools"))
import experiment_tables  # noqa: E402: it lies in tools

MODEL = {"model.arch": "vit_tiny_patch16_224", "model.image": 64, "model.patch": 8}
WARM = 3  # updates that do not count


class Runs:
    def __init__(self, args, work):
        self.args, self.work, self.count, self.began = args, work, 0, time.monotonic()

    def over(self):
        return time.monotonic() - self.began > 60 * self.args.minutes

    def train(self, threads, batch, balance=None, updates=None, slow=None):
        """Trains on so many ranks as there are threads in the list; returns the lines of the log."""
        self.count += 1
        folder = self.work / str(self.count)
        settings = dict(MODEL, **{"data.train": "synthetic:3x64x64x10x2048", "train.batch": batch, "train.log_every": 1,
                                  "train.steps": updates or self.args.updates + WARM, "train.eval_every": 1000000,
                                  "train.save_every": 1000000, "train.save_minutes": 0, "train.tensorboard": "false",
                                  "data.val_fraction": 0.01, "loader.workers": 1, "optim.name": "adamw"})
        settings.update(item.split("=", 1) for item in self.args.set)
        if balance:
            settings["mesh.balance"] = balance if isinstance(balance, str) else json.dumps(balance)
        command = ["train", "--out", str(folder), "--threads", ",".join(map(str, threads))]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        ranks = len(threads)
        if ranks > 1 and self.args.processes:
            command = ["launch", "-n", str(ranks), "--mpirun", *command]
        elif ranks > 1:
            command += ["--ranks", str(ranks)]
        environment = dict(ENVIRONMENT, VITRAIL_TEST_SLOW=slow) if slow else ENVIRONMENT
        done = subprocess.run([self.args.vitrail, *command], capture_output=True, text=True, env=environment,
                              timeout=self.args.timeout)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-800:]}")
        print(f"{time.monotonic() - self.began:6.1f} s: run {self.count}, threads {threads}, {batch} images, "
              f"shares {balance or 'even'}", file=sys.stderr, flush=True)
        return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]

    def speed(self, *arguments, **named):
        """Images a second of the median update, and the log."""
        lines = self.train(*arguments, **named)
        times = [line["interval_s"] for line in lines if line["kind"] == "train"][WARM:]
        return arguments[1] / statistics.median(times), lines


def shares_of(lines):
    """The shares that a run tells of in its log."""
    for line in lines:
        if line.get("what") == "balance":
            return json.loads(line["text"][line["text"].index("["):])
    raise RuntimeError("the log tells of no shares")


def in_proportion(batch, speeds, unit):
    """Whole units for each, the slowest of them as early done as can be."""
    shares = [unit] * len(speeds)
    while sum(shares) < batch:
        best = min(range(len(speeds)), key=lambda r: (shares[r] + unit) / speeds[r])
        shares[best] += unit
    return shares


def moved(shares, unit):
    """The same with one step of images moved from the rank with least, and to it, for the ranks with most."""
    step = max(unit, round(max(shares) * 0.08 / unit) * unit)
    least, most = shares.index(min(shares)), shares.index(max(shares))
    for a, b in ((least, most), (most, least)):
        other = list(shares)
        other[a] -= min(step, other[a] - unit)
        other[b] = sum(shares) - sum(other[:b]) - sum(other[b + 1:])
        if other != list(shares):
            yield other


def measure(runs, args, keep):
    """What the sides came to; `keep` has it as far as it has come, once each was measured."""
    threads = [int(word) for word in args.threads.split(",")]
    batch, unit = args.batch, args.unit
    found = {"alone": [[] for _ in threads], "even": [], "auto": [], "hand": {}}
    guess = in_proportion(batch, threads, unit)
    for number in range(args.rounds):
        if number and runs.over():
            break
        for rank, count in enumerate(threads):
            slow = f"0:{args.slow.split(':')[1]}" if args.slow and int(args.slow.split(":")[0]) == rank else None
            found["alone"][rank].append(runs.speed([count], guess[rank], slow=slow)[0])
        found["even"].append(runs.speed(threads, batch, slow=args.slow)[0])
        speed, lines = runs.speed(threads, batch, balance="auto", slow=args.slow)
        found["auto"].append((speed, shares_of(lines)))
        alone = [statistics.median(speeds) for speeds in found["alone"]]
        by_hand = {tuple(in_proportion(batch, alone, unit)), tuple(found["auto"][-1][1])}
        by_hand |= {tuple(other) for shares in list(by_hand) for other in moved(list(shares), unit)}
        # Those that most is known of first, then those nearest to what speeds alone say.
        near = in_proportion(batch, alone, unit)
        for shares in sorted(by_hand | set(found["hand"]),
                             key=lambda s: (-len(found["hand"].get(s, [])), sum(abs(a - b) for a, b in zip(s, near)), s)):
            if found["hand"] and runs.over():
                break
            speed = runs.speed(threads, batch, balance=list(shares), slow=args.slow)[0]
            found["hand"].setdefault(shares, []).append(speed)
            keep(found)
    return found


def compare_losses(runs, args):
    """The largest difference of ten losses to one rank's, relative."""
    threads = [int(word) for word in args.threads.split(",")]
    losses = [[line["loss"] for line in runs.train(*how, updates=10, slow=slow, balance=balance) if line["kind"] == "train"]
              for how, balance, slow in ((([max(threads)], args.batch), None, None),
                                         ((threads, args.batch), "auto", args.slow))]
    return max(abs(a - b) / abs(a) for a, b in zip(*losses))


def summary(found, worst):
    alone = [statistics.median(speeds) for speeds in found["alone"]]
    even = statistics.median(found["even"])
    auto = statistics.median(speed for speed, _ in found["auto"])
    shares = sorted(found["auto"], key=lambda pair: pair[0])[len(found["auto"]) // 2][1]
    # A candidate that was measured once has been lucky or not: most rounds first, then speed.
    rounds = max(len(speeds) for speeds in found["hand"].values())
    best, speeds = max(((s, v) for s, v in found["hand"].items() if len(v) == rounds),
                       key=lambda pair: statistics.median(pair[1]))
    return {"alone": alone, "sum": sum(alone), "even": even, "auto": auto, "auto_shares": shares,
            "auto_shares_by_round": [found_shares for _, found_shares in found["auto"]],
            "best_by_hand": statistics.median(speeds), "best_shares": list(best),
            "auto_of_sum": auto / sum(alone), "auto_of_even": auto / even,
            "auto_of_best": auto / statistics.median(speeds),
            "furthest_share": max(abs(a - b) / b for a, b in zip(shares, best)), "worst_loss": worst}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default="build/release/vitrail")
    parser.add_argument("--threads", default="4,4,2,1")
    parser.add_argument("--batch", type=int, default=128, help="images an update, of all ranks")
    parser.add_argument("--unit", type=int, default=1, help="images that shares by hand are whole numbers of")
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=15, help="after which no further side is begun")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--processes", action="store_true", help="a process a rank, by mpirun")
    parser.add_argument("--slow", help="RANK:SHARE of each node's time that the rank sleeps besides")
    parser.add_argument("--set", action="append", default=[], help="a setting of the runs")
    parser.add_argument("--json", help="a file for the results")
    args = parser.parse_args()
    exit_when_ended()
    made = study.made()
    with tempfile.TemporaryDirectory() as work:
        runs = Runs(args, Path(work))
        worst = compare_losses(runs, args)

        def kept(found):
            facts = {"made": made, "threads": args.threads, "batch": args.batch, "rounds": len(found["even"]), **summary(found, worst)}
            if args.json:
                Path(args.json).write_text(json.dumps(facts, indent=1) + "\n")
            return facts
        result = kept(measure(runs, args, kept))
    print(experiment_tables.mixed(result))
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
