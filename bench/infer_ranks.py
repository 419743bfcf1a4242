#!/usr/bin/env python3
"""Inference that ranks share, by images, by parts of the model and by both, against one rank on the same cores.

bench/infer_ranks.py [--vitrail PROGRAM] [--cores N] [--model NAME] [--batch N ...] [--mesh AXES ...] [--json FILE]

Every case is a `vitrail bench infer --mesh ...`, which runs the ranks and the one rank in turn; the cases are gone
through `--rounds` times, every other time backwards, and the medians of the rounds' medians are shown. A rank has
cores / ranks threads. Prints a markdown table; no round is begun that would end after --limit seconds."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MESHES = ["dp=2", "tp=2", "tp=4", "dp=2,tp=2"]


def ranks_of(mesh):
    """How many ranks a mesh has."""
    product = 1
    for axis in mesh.split(","):
        if "=" in axis:
            product *= int(axis.split("=")[1])
    return product


def run_case(args, batch, mesh):
    """What one command measured."""
    command = [args.vitrail, "bench", "infer", "--weights", "rule", "-m", args.model, "--batch", str(batch), "--mesh", mesh,
               "--threads", str(args.cores // ranks_of(mesh)), "--seconds", str(args.seconds), "--json", "--quiet"]
    if args.launch:
        at = command.index("bench")
        command[at:at] = ["launch", "-n", str(ranks_of(mesh)), "--mpirun"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def summary(results):
    """The medians over the rounds of one case."""
    def middle(*keys):
        def at(result):
            for key in keys:
                result = result[key]
            return result
        return statistics.median(at(r) for r in results)
    row = {key: middle(key) for key in ("throughput_ratio", "latency_ratio", "exposed_share")}
    row["largest_difference"] = max(r["largest_difference"] for r in results)
    for side in ("shared", "alone"):
        row[side] = {key: middle(side, key) for key in ("ms_median", "ms_min", "img_per_s", "memory_peak", "batch", "threads")}
    row.update(mesh=results[0]["mesh"], ranks=results[0]["ranks"], transport=results[0]["transport"], rounds=len(results))
    return row


def table(rows):
    """The rows as markdown; the one rank first, with the median of what the cases of its batch saw of it."""
    lines = ["| batch | ranks | threads a rank | ms a batch | images/s | throughput | speed of a batch | in collectives | "
             "MiB a rank | logits apart |", "|---|---|---|---|---|---|---|---|---|---|"]
    for batch in sorted({row["asked"] for row in rows}):
        own = [row for row in rows if row["asked"] == batch]
        alone = {key: statistics.median(row["alone"][key] for row in own) for key in own[0]["alone"]}
        lines.append(f"| {batch} | one | {alone['threads']:.0f} | {alone['ms_median']:.1f} | {alone['img_per_s']:.1f} | 1 | 1 | | "
                     f"{alone['memory_peak'] / 2**20:.0f} | |")
        for row in own:
            side = row["shared"]
            computed = f" ({side['batch']:.0f} images)" if side["batch"] != batch else ""
            lines.append(f"| {batch}{computed} | {row['mesh']} | {side['threads']:.0f} | {side['ms_median']:.1f} | "
                         f"{side['img_per_s']:.1f} | {row['throughput_ratio']:.2f} | {row['latency_ratio']:.2f} | "
                         f"{100 * row['exposed_share']:.0f} % | {side['memory_peak'] / 2**20:.0f} | "
                         f"{row['largest_difference']:.1e} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--model", default="vit_base_patch16_224")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--mesh", nargs="+", default=MESHES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of measuring, a case and round")
    parser.add_argument("--limit", type=float, default=55.0)
    parser.add_argument("--launch", action="store_true", help="ranks as processes, by vitrail launch --mpirun")
    parser.add_argument("--json", help="also write everything here")
    args = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.cores])
    cases = []
    for mesh in args.mesh:
        if ranks_of(mesh) > args.cores:
            print(f"{mesh} is left out: {ranks_of(mesh)} ranks on {args.cores} cores", file=sys.stderr)
        else:
            cases += [(batch, mesh) for batch in args.batch]
    measured = {case: [] for case in cases}
    start = time.monotonic()
    for number in range(args.rounds):
        for case in cases if number % 2 == 0 else reversed(cases):
            measured[case].append(run_case(args, *case))
        spent = time.monotonic() - start
        if spent + spent / (number + 1) > args.limit:
            break
    rows = [dict(summary(results), asked=batch) for (batch, _), results in measured.items()]
    print(f"{args.model}, f32, {args.cores} cores, {rows[0]['transport']}, {rows[0]['rounds']} rounds of {args.seconds:g} s, "
          f"{time.monotonic() - start:.0f} s in all\n\n{table(rows)}")
    if args.json:
        Path(args.json).write_text(json.dumps({"model": args.model, "cores": args.cores, "host": platform.processor() or platform.machine(),
                                               "date": time.strftime("%Y-%m-%d"), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
