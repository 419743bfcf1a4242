#!/usr/bin/env python3
"""Sets `vitrail plan --cluster` against runs of this machine: ranks as threads, over MPI, and over a shaped link.

    bench/predict_ranks.py [--vitrail PROGRAM] [--ranks 1 2 4 8 16] [--link RATE ...] [--rounds 2] [--json FILE]

Predicted from what is measured without any training run of several ranks: updates of single ranks while as many of them
run as there will be ranks and exchange nothing (their mean is a device's update, their spread the jitter), and one
all-reduce of 22 MB (`bench dist`), whose rate is the network's. Then the ranks themselves, data parallel with ZeRO 0 and
1. --link 1gbit: two network namespaces whose link is shaped (root; tests/cluster/two_nodes.sh), one rank on each; RATE is
in the words of tc. One thread a rank. About a minute for two ranks, four for 16 cores. Prints a markdown table."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NODES = str(ROOT / "tests/cluster/two_nodes.sh")
MODEL = ["-m", "vit_tiny_patch16_224", "--set", "model.image=64", "--set", "model.patch=8", "--classes", "10"]
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def last_json(command, extra=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**ENVIRONMENT, **(extra or {})})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout[done.stdout.index("{"):])


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
        """The mean update of single ranks that run at once, and the deviation of one from it."""
        running = [subprocess.Popen(self.bench(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT)
                   for _ in range(ranks)]
        results = [json.loads(process.communicate(timeout=300)[0]) for process in running]
        times = [statistics.fmean([r["ms_min"], r["ms_median"], r["ms_median"], r["ms_p90"]]) / 1e3 for r in results]
        within = statistics.fmean([(r["ms_p90"] - r["ms_median"]) / 1.28 / 1e3 for r in results])
        return statistics.fmean(times), (statistics.pvariance(times) + within**2) ** 0.5 / statistics.fmean(times)

    def all_reduce(self, ranks, prefix, extra=None):
        """Bytes a second that a rank sends in an all-reduce of 22 MB."""
        words = [self.args.vitrail, "bench", "dist", "--mb", "22", "--json"]
        found = last_json([*prefix, *words] if prefix else [*words, "--ranks", str(ranks)], extra)
        side = found["mpi"] if prefix else found["threads"]
        return 2 * (ranks - 1) / ranks * 22e6 / (side["ms_median"] / 1e3)

    def predicted(self, ranks, nodes, levels, jitter, one_s, zero):
        network = self.folder / "network.json"
        network.write_text(json.dumps({"format": "vitrail network 1", "name": "this machine", "source": "bench dist",
                                       "levels": levels, "jitter": min(jitter, 0.9)}))
        return last_json([self.args.vitrail, "plan", "--cluster", str(network), "--nodes", str(nodes), "--devices",
                          str(ranks // nodes), "--target", self.device, "--threads", "1", *MODEL, "--batch",
                          str(self.args.batch), "--mesh", f"dp={ranks},zero={zero}", "--one-device-s", repr(one_s),
                          "--json"])["meshes"][0]

    def measured(self, ranks, prefix, zero, extra=None):
        words = self.bench("--set", f"mesh.zero={zero}")
        found = last_json([*prefix, *words] if prefix else [*words, "--ranks", str(ranks)], extra)
        return found["update_s"]["median"]


def level(rate, latency_us, cpu):
    gbps = rate * 8 / 1e9
    return {"name": "ranks", "topology": "switch", "latency_us": latency_us, "bandwidth_gbps": gbps, **({"cpu_gbps": cpu * 8 / 1e9} if cpu else {})}


def one_case(machine, name, ranks, prefix, nodes, extra=None, link=None):
    """Rows of a transport. What the ranks' own cores move is all of an all-reduce in one host; over a shaped link it is
    what the all-reduce took before the link was shaped, which `link` gives as a rate."""
    machine_rate = machine.all_reduce(ranks, prefix, extra)
    levels = [level(link or machine_rate, 20, link or machine_rate)]
    if nodes > 1:
        levels.append(level(machine_rate, 50, link))
    guesses, runs = {0: [], 1: []}, {0: [], 1: []}
    for _ in range(machine.args.rounds):
        one_s, jitter = machine.copies(ranks)
        for zero in (0, 1):
            guesses[zero].append(machine.predicted(ranks, nodes, levels, jitter, one_s, zero)["update_s"])
            runs[zero].append(machine.measured(ranks, prefix, zero, extra))
    return [{"case": f"{name}, ZeRO {zero}", "ranks": ranks, "predicted_s": statistics.median(guesses[zero]),
             "measured_s": statistics.median(runs[zero]), "measured_each_s": runs[zero], "predicted_each_s": guesses[zero]}
            for zero in (0, 1)]


def over_a_link(machine, rate):
    made = subprocess.run([NODES, "up", "vtp"], capture_output=True, text=True, check=True).stdout
    try:
        extra = dict(line.split("=", 1) for line in made.splitlines() if "=" in line)
        prefix = [*MPIRUN, "-n", "2", "--host", "vtp1:1,vtp2:1"]
        free = machine.all_reduce(2, prefix, extra)
        subprocess.run([NODES, "rate", "vtp", rate], check=True)
        return one_case(machine, f"link of {rate}", 2, prefix, 2, extra, free)
    finally:
        subprocess.run([NODES, "down", "vtp"], check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--link", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--batch", type=int, default=8, help="images a rank")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which no case is begun")
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(args, Path(folder))
        cases = [(lambda n=n: one_case(machine, "threads", n, [], 1)) for n in args.ranks if n > 1]
        cases += [(lambda n=n: one_case(machine, "mpi", n, [*MPIRUN, "-n", str(n)], 1)) for n in args.ranks if n > 1]
        cases += [(lambda rate=rate: over_a_link(machine, rate)) for rate in args.link]
        began = time.monotonic()
        for case in cases:
            if time.monotonic() - began > args.limit:
                break
            try:
                rows += case()
            except (RuntimeError, KeyError, subprocess.CalledProcessError) as problem:
                print(f"left out: {problem}", file=sys.stderr)
    print("| | ranks | predicted | measured | off |\n|---|---|---|---|---|")
    for row in rows:
        row["off"] = abs(row["predicted_s"] / row["measured_s"] - 1)
        print(f"| {row['case']} | {row['ranks']} | {1e3 * row['predicted_s']:.0f} ms | {1e3 * row['measured_s']:.0f} ms | {100 * row['off']:.1f} % |")
    if rows:
        print(f"median {100 * statistics.median(row['off'] for row in rows):.1f} %, worst {100 * max(row['off'] for row in rows):.1f} %; "
              f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if args.json:
        Path(args.json).write_text(json.dumps({"rows": rows, "cores": os.cpu_count(), "load": os.getloadavg()[0]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
