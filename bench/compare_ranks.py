#!/usr/bin/env python3
"""Training on many CPU ranks of one host, one thread each, beside torch DistributedDataParallel over gloo and Hugging Face
Accelerate in the same run.

    python bench/compare_ranks.py --vitrail build/release/vitrail --ranks 16 [--rounds 3] [--minutes 5] [--json out.json]

A ViT-Tiny at 64 pixels with patches of 8. Strong: 64 images an update, shared by the ranks; weak: 8 images a rank. Sides
alternate; results are medians. "Copies" is so many processes of one rank that start together, each on the cores that a rank
would have, and do not exchange anything: what the machine itself gives. Of them the waiting that any synchronisation would cost is
computed: how much longer than the mean the slowest of so many draws takes, each from the times of its own copy, the slowest tenth of
which counts as its 90 % value. "ZeRO 1" shares out the optimizer, which is no other training run; "unbound" leaves the ranks to the
system's scheduler. --quick leaves out torch and Accelerate. Ranks of MPI are started by mpirun, and left out where there is none. A side
that fails or takes longer than --timeout is told and left out; no side is begun after --minutes; --json is written after every run."""
import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import study
from rank_copies import exit_when_ended, last_json, run_together, waiting_of_the_machine

sys.path.insert(0, str(study.ROOT / "tools"))
import experiment_tables  # noqa: E402: it lies in tools

MODEL = ["-m", "vit_tiny_patch16_224", "--set", "model.image=64", "--set", "model.patch=8", "--classes", "10"]
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]
WAYS = {"": [], "_zero": ["--set", "mesh.zero=1"], "_unbound": ["--set", "mesh.bind=false"]}
SIDES = tuple(by + way for by in ("threads", "mpi") for way in WAYS) + ("copies", "torch", "accelerate")
USUAL = [name for name in SIDES if not name.endswith("_unbound")]


class Sides:
    """Ways to run updates of a batch over ranks; each returns images a second and shares of the time."""

    def __init__(self, args):
        self.args, self.versions = args, {}

    def bench(self, batch, *words):
        return [self.args.vitrail, "bench", "train", *MODEL, "--batch", str(batch), "--threads", "1", "--steps",
                str(self.args.updates), "--json", *words]

    def threads(self, ranks, batch, *words):
        return self.result(last_json(self.bench(batch // ranks, "--ranks", str(ranks), *words), self.args.timeout))

    def mpi(self, ranks, batch, *words):
        return self.result(last_json([*MPIRUN, "-n", str(ranks), *self.bench(batch // ranks, *words)], self.args.timeout))

    def run(self, name, ranks, batch):
        by, _, way = name.partition("_")
        return getattr(self, by)(ranks, batch, *(WAYS["_" + way] if way else []))

    def peer(self, ranks, batch, by):
        script = str(Path(__file__).resolve().parent / "ddp_gloo.py")
        found = last_json([sys.executable, script, "--ranks", str(ranks), "--batch", str(batch), "--updates",
                           str(self.args.updates), "--by", by], self.args.timeout)
        self.versions.update(found["versions"])
        return {"images_per_second": found["images_per_second"]}

    def torch(self, ranks, batch):
        return self.peer(ranks, batch, "torch")

    def accelerate(self, ranks, batch):
        return self.peer(ranks, batch, "accelerate")

    def copies(self, ranks, batch):
        """So many single ranks at once, a share of the batch each."""
        results = run_together(self.bench(batch // ranks), ranks, self.args.timeout)
        return {"images_per_second": sum(self.speed(result) for result in results),
                "waited_share": waiting_of_the_machine(results)}

    @staticmethod
    def speed(result):
        return result.get("images_per_second") or result["img_per_s"]

    def result(self, found):
        return {"images_per_second": self.speed(found), "exposed_share": found.get("exposed_share", 0.0),
                "waited_share": found.get("waited_share", 0.0)}


def measure(sides, names, ranks, batch, args, keep):
    """The medians of every side over its rounds; `keep` has them as far as they have come."""
    found, medians = {name: [] for name in names}, {}
    for number in range(args.rounds):
        for name in names:
            if time.monotonic() - args.began > 60 * args.minutes:
                return medians
            try:
                found[name].append(sides.run(name, ranks, batch))
            except (RuntimeError, ValueError, subprocess.TimeoutExpired) as problem:
                print(f"left out: {problem}", file=sys.stderr, flush=True)
                continue
            print(f"round {number + 1}: {name} {found[name][-1]['images_per_second']:.0f} img/s", file=sys.stderr, flush=True)
            medians = {side: {"rounds": len(runs), **{key: statistics.median(run[key] for run in runs) for key in runs[0]}}
                       for side, runs in found.items() if runs}
            keep(medians)
    return medians


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default="build/release/vitrail")
    parser.add_argument("--ranks", type=int, nargs="+", default=[16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--minutes", type=float, default=30, help="after which no side is begun")
    parser.add_argument("--kinds", nargs="+", choices=["strong", "weak"], default=["strong", "weak"])
    parser.add_argument("--quick", action="store_true", help="without torch and Accelerate")
    parser.add_argument("--sides", nargs="+", choices=SIDES, help="only these")
    parser.add_argument("--json", help="a file for the results")
    args = parser.parse_args()
    args.began = time.monotonic()
    exit_when_ended()
    sides, made, results = Sides(args), study.made(), []
    names = args.sides or [name for name in USUAL if not args.quick or name not in ("torch", "accelerate")]
    if not shutil.which("mpirun"):
        names = [name for name in names if not name.startswith("mpi")]

    def keep(rows):
        results[-1]["rows"] = rows
        if args.json:
            Path(args.json).write_text(json.dumps({"made": made, "versions": sides.versions, "comparisons": results}, indent=1) + "\n")
    for ranks in args.ranks:
        kinds = {"strong": ("strong, 64 images", 64), "weak": ("weak, 8 images a rank", 8 * ranks)}
        for kind, batch in (kinds[name] for name in args.kinds):
            results.append({"ranks": ranks, "kind": kind, "batch": batch, "rows": {}})
            measure(sides, names, ranks, batch, args, keep)
    print(experiment_tables.compared({"versions": sides.versions, "comparisons": results}))


if __name__ == "__main__":
    main()
