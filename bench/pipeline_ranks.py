#!/usr/bin/env python3
"""Training through the stages of a pipeline against one rank on the same cores, and the share in which stages wait.

bench/pipeline_ranks.py [--vitrail PROGRAM] [--cores N] [--model NAME] [--stages P] [--micro-batches M ...] [--json FILE]

Every case is a `vitrail bench train` on synthetic images: one rank with all cores, then each schedule with P stages of
cores / P threads, the same micro-batches and the same images an update. The cases alternate `--rounds` times and medians
are shown. The share of waiting is what ranks spend within receives, sends and the sums of the update; beside it stands
(p-1)/(vm+p-1), what stages of equal cost must wait. Prints a markdown table."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--model", default="vit_small_patch16_224")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=4, help="images of a micro-batch")
    parser.add_argument("--stages", type=int, default=4)
    parser.add_argument("--virtual", type=int, default=3, help="virtual stages of the interleaved schedule; 0: leave it out")
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[16])
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], help="a further setting of every case")
    parser.add_argument("--json")
    return parser.parse_args()


def cases(args, micros):
    """Name, ranks, settings and the share that equal stages must wait."""
    p = args.stages
    yield "one rank", 1, [], 0.0
    yield "gpipe", p, ["mesh.schedule=gpipe"], (p - 1) / (micros + p - 1)
    yield "1f1b", p, ["mesh.schedule=1f1b"], (p - 1) / (micros + p - 1)
    if args.virtual > 1 and micros % p == 0:
        yield (f"interleaved, {args.virtual} parts a stage", p,
               ["mesh.schedule=interleaved", f"mesh.virtual_stages={args.virtual}"],
               (p - 1) / (args.virtual * micros + p - 1))


def run_case(args, micros, ranks, settings):
    """Images a second and the share of waiting."""
    command = [args.vitrail, "bench", "train", "-m", args.model, "--classes", str(args.classes),
               "--threads", str(max(1, args.cores // ranks)),
               "--steps", str(args.updates), "--json", "--quiet", "--set", f"train.accumulation={micros}",
               "--set", f"train.batch={micros * args.batch}"]
    if ranks > 1:
        command += ["--ranks", str(ranks), "--set", f"mesh.pp={ranks}"]
    for setting in settings + args.set:
        command += ["--set", setting]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    rate = result.get("images_per_second", result.get("img_per_s"))
    return rate, result.get("exposed_share", 0.0)


def main():
    """Runs the cases and prints the table."""
    args = arguments()
    print(f"{platform.node()}: {args.cores} cores, {args.model}, micro-batches of {args.batch}, "
          f"{args.stages} stages of {max(1, args.cores // args.stages)} threads", file=sys.stderr)
    rows = []
    for micros in args.micro_batches:
        seen = {}
        for number in range(args.rounds):
            order = list(cases(args, micros))
            for name, ranks, settings, bubble in order if number % 2 == 0 else reversed(order):
                seen.setdefault(name, (bubble, []))[1].append(run_case(args, micros, ranks, settings))
        alone = statistics.median(rate for rate, _ in seen["one rank"][1])
        for name, (bubble, results) in seen.items():
            rate = statistics.median(r for r, _ in results)
            rows.append({"micro_batches": micros, "case": name, "images_per_second": rate, "of_one_rank": rate / alone,
                         "waiting": statistics.median(w for _, w in results), "equal_stages_wait": bubble})
    print("| micro-batches | | images a second | of one rank | waiting | equal stages must wait |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['micro_batches']} | {row['case']} | {row['images_per_second']:.1f} | {row['of_one_rank']:.2f} | "
              f"{100 * row['waiting']:.1f} % | {100 * row['equal_stages_wait']:.1f} % |")
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
