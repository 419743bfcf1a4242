#!/usr/bin/env python3
"""Sets `vitrail plan --cluster` against runs of this machine: ranks as threads, over MPI, and over a shaped link.

    bench/predict_ranks.py [--vitrail PROGRAM] [--ranks 1 2 4 8 16] [--link RATE ...] [--rounds 2] [--json FILE]

Predicted from what is measured without any training run of several ranks: updates of single ranks while as many of them run as
there will be ranks, on the cores that these will have, and exchange nothing (bench/rank_copies.py), and an all-reduce of 22 MB, all
gradients (`bench dist`), whose rate is the network's. The mean of the single ranks is a device's update; the jitter is the one by which
the slowest of so many is as far behind as the slowest of the single ranks in the median of many updates drawn from their times: ranks
end an update together, and their cores differ. Then the ranks themselves, data parallel with ZeRO 0 and 1. A round has the single ranks
and, behind them, every transport and stage, in turn from the first and from the last; medians of the rounds count.

--link 1gbit: two network namespaces whose link is shaped (root; tests/cluster/two_nodes.sh), one rank on each; RATE is in the words of tc.
An update sends its gradients over it in four buckets, so that an all-reduce of 5.5 MB is timed as well: latency and rate are those by
which both take what they took. One thread a rank. About a minute for two ranks, five for 2 to 16 on 16 cores with three rounds. A
transport that fails is told and left out. Prints a markdown table."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import study
from rank_copies import exit_when_ended, last_json, pace, run_together

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import experiment_tables  # noqa: E402: it lies in tools
WHOLE_MB, BUCKET_MB = 22.0, 5.5  # the gradients of MODEL, and a quarter of them
NODES = str(ROOT / "tests/cluster/two_nodes.sh")
MODEL = ["-m", "vit_tiny_patch16_224", "--set", "model.image=64", "--set", "model.patch=8", "--classes", "10"]
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]  # as launch starts it
PROBLEMS = (RuntimeError, ValueError, KeyError, OSError, subprocess.SubprocessError)


def largest_of(count):
    """The expected largest of so many normal draws, as `plan --cluster` has it (Blom)."""
    return statistics.NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


class Machine:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.device = str(folder / "cpu.json")
        subprocess.run([args.vitrail, "bench", "calibrate", "--threads", "1", "--rounds", "3", "--gemm", "520x576x192",
                        "--gemm", "520x192x768", "--out", self.device], check=True, capture_output=True)

    def bench(self, *words):
        return [self.args.vitrail, "bench", "train", *MODEL, "--batch", str(self.args.batch), "--threads", "1",
                "--steps", str(self.args.updates), "--json", *words]

    def copies(self, ranks):
        """The mean update of single ranks that run at once, and the jitter by which so many have a slowest as slow as theirs."""
        mean, slowest = pace(run_together(self.bench(), ranks, self.args.timeout))
        return mean, max(0.0, slowest / mean - 1) / largest_of(ranks)

    def all_reduce(self, ranks, prefix, extra=None, megabytes=WHOLE_MB):
        """Seconds of an all-reduce."""
        words = [self.args.vitrail, "bench", "dist", "--mb", f"{megabytes:g}", "--seconds", "1.5", "--json"]
        found = last_json([*prefix, *words] if prefix else [*words, "--ranks", str(ranks)], self.args.timeout, extra)
        return (found["mpi"] if prefix else found["threads"])["ms_median"] / 1e3

    def predicted(self, ranks, nodes, levels, jitter, one_s, zero):
        network = self.folder / "network.json"
        network.write_text(json.dumps({"format": "vitrail network 1", "name": "this machine", "source": "bench dist",
                                       "levels": levels, "jitter": min(jitter, 0.9)}))
        return last_json([self.args.vitrail, "plan", "--cluster", str(network), "--nodes", str(nodes), "--devices",
                          str(ranks // nodes), "--target", self.device, "--threads", "1", *MODEL, "--batch",
                          str(self.args.batch), "--mesh", f"dp={ranks},zero={zero}", "--one-device-s", repr(one_s),
                          "--json"], self.args.timeout)["meshes"][0]

    def measured(self, ranks, prefix, zero, extra=None):
        words = self.bench("--set", f"mesh.zero={zero}")
        found = last_json([*prefix, *words] if prefix else [*words, "--ranks", str(ranks)], self.args.timeout, extra)
        return found["update_s"]["median"]


def sent(ranks, megabytes=WHOLE_MB):
    """Bytes that a rank sends in an all-reduce."""
    return 2 * (ranks - 1) / ranks * megabytes * 1e6


def level(rate, latency_us, cpu):
    gbps = rate * 8 / 1e9
    return {"name": "ranks", "topology": "switch", "latency_us": latency_us, "bandwidth_gbps": gbps, **({"cpu_gbps": cpu * 8 / 1e9} if cpu else {})}


def host_levels(machine, ranks, prefix):
    """Ranks of one host: their own cores move all of an all-reduce."""
    rate = sent(ranks) / machine.all_reduce(ranks, prefix)
    return [level(rate, 20, rate)]


def link_of(bucket_s, whole_s):
    """(bytes a second, latency in microseconds) of a link between two ranks, by all-reduces of two sizes. Its two halves have a
    latency each; where the larger one was as quick a byte as the smaller, there is none to see."""
    bucket, whole = sent(2, BUCKET_MB), sent(2)
    rate = (whole - bucket) / max(whole_s - bucket_s, 1e-9)
    latency = bucket_s - bucket / rate
    return (rate, 1e6 * latency / 2) if latency > 0 else (whole / whole_s, 0.0)


def way(name, prefix, nodes, levels, extra=None):
    """A transport: what starts its ranks, and the network that stands for it."""
    return SimpleNamespace(name=name, prefix=prefix, nodes=nodes, levels=levels, extra=extra, guesses={0: [], 1: []}, runs={0: [], 1: []})


def one_round(machine, ranks, ways, backwards):
    """Single ranks, then every transport and stage; returns the transports that did not fail."""
    try:
        one_s, jitter = machine.copies(ranks)
    except PROBLEMS as problem:
        print(f"a round is left out: {problem}", file=sys.stderr)
        return ways
    failed = set()
    for one, zero in [(one, zero) for one in ways for zero in (0, 1)][::-1 if backwards else 1]:
        try:
            if one.name not in failed:
                guess = machine.predicted(ranks, one.nodes, one.levels, jitter, one_s, zero)["update_s"]
                one.runs[zero].append(machine.measured(ranks, one.prefix, zero, one.extra))
                one.guesses[zero].append({"update_s": guess, "copy_s": one_s, "jitter": jitter})
        except PROBLEMS as problem:
            print(f"left out: {problem}", file=sys.stderr)
            failed.add(one.name)
    return [one for one in ways if one.name not in failed]


def all_ways(machine, ranks, ways):
    """Rows of transports whose ranks take turns."""
    left = ways
    for turn in range(machine.args.rounds):
        left = one_round(machine, ranks, left, turn % 2 == 1) if left else []
    return [{"case": f"{one.name}, ZeRO {zero}", "ranks": ranks, "predicted_s": statistics.median(guess["update_s"] for guess in one.guesses[zero]),
             "measured_s": statistics.median(one.runs[zero]), "measured_each_s": one.runs[zero], "predicted_each": one.guesses[zero],
             "levels": one.levels}
            for one in ways for zero in (0, 1) if one.runs[zero]]


def one_case(machine, name, ranks, prefix, nodes, levels, extra=None):
    """Rows of a transport."""
    return all_ways(machine, ranks, [way(name, prefix, nodes, levels, extra)])


def in_host(machine, ranks):
    """Rows of ranks as threads and, where there is mpirun, as processes."""
    ways = []
    for name, prefix in (("threads", []), ("mpi", [*MPIRUN, "-n", str(ranks)])):
        try:
            if not prefix or shutil.which(prefix[0]):
                ways.append(way(name, prefix, 1, host_levels(machine, ranks, prefix)))
        except PROBLEMS as problem:
            print(f"left out: {problem}", file=sys.stderr)
    return all_ways(machine, ranks, ways)


def over_a_link(machine, rate):
    made = subprocess.run([NODES, "up", "vtp"], capture_output=True, text=True, check=True).stdout
    try:
        extra = dict(line.split("=", 1) for line in made.splitlines() if "=" in line)
        prefix = [*MPIRUN, "--mca", "mpi_yield_when_idle", "1", "-n", "2", "--host", "vtp1:1,vtp2:1"]
        free = sent(2) / machine.all_reduce(2, prefix, extra)  # what the ranks' own cores move
        subprocess.run([NODES, "rate", "vtp", rate], check=True)
        shaped, latency = link_of(machine.all_reduce(2, prefix, extra, BUCKET_MB), machine.all_reduce(2, prefix, extra))
        return one_case(machine, f"link of {rate}", 2, prefix, 2, [level(free, 20, free), level(shaped, latency, free)], extra)
    finally:
        subprocess.run([NODES, "down", "vtp"], check=False)


def keep(args, rows):
    if args.json:
        data = {"made": args.made, "rows": rows, "cores": os.cpu_count(), "load": args.load}
        Path(args.json).write_text(json.dumps(data, indent=1) + "\n")


def measured_rows(args, machine):
    """The rows of all cases that were begun in time; they are kept as they come."""
    rows, began = [], time.monotonic()
    cases = [(lambda n=n: in_host(machine, n)) for n in args.ranks if n > 1]
    cases += [(lambda rate=rate: over_a_link(machine, rate)) for rate in args.link]
    for case in cases:
        if time.monotonic() - began > args.limit:
            break
        try:
            rows += [{**row, "off": abs(row["predicted_s"] / row["measured_s"] - 1)} for row in case()]
        except PROBLEMS as problem:
            print(f"left out: {problem}", file=sys.stderr)
        rows.sort(key=lambda row: row["ranks"])
        keep(args, rows)
        print(f"{time.monotonic() - began:.0f} s: {len(rows)} rows", file=sys.stderr, flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--link", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--batch", type=int, default=8, help="images a rank")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a run")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which no case is begun")
    parser.add_argument("--json")
    args = parser.parse_args()
    exit_when_ended()
    args.made, args.load = study.made(), study.load()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured_rows(args, Machine(args, Path(folder)))
    print(experiment_tables.ranks({"rows": rows}))


if __name__ == "__main__":
    main()
