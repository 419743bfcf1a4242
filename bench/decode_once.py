#!/usr/bin/env python3
"""What loading images costs on ranks that share a model, against one rank: processor seconds of all loaders together.

bench/decode_once.py [--vitrail PROGRAM] [--image FILE.jpg] [--updates N] [--rounds N] [--json FILE] [MESH ...]

A ViT of width 256 with 8 heads trains on a folder of JPEGs (copies of one photograph), with one rank and with each MESH (tp=4, sp=2, pp=4),
whose ranks are threads. The run prints what its loaders took (train.breakdown). Sides alternate and medians are shown."""
import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = {"model.image": 224, "model.patch": 16, "model.width": 256, "model.depth": 4, "model.heads": 8, "model.mlp": 512,
            "train.batch": 16, "train.accumulation": 4, "train.eval_every": 1000000, "train.save_every": 1000000, "train.save_minutes": 0,
            "train.breakdown": "true", "train.tensorboard": "false", "data.val_fraction": 0, "loader.workers": 1}


def loading_seconds(args, data, out, mesh):
    """Of all ranks together."""
    settings = dict(SETTINGS, **{"data.train": f"folder:{data}", "train.steps": args.updates})
    sizes = dict(word.split("=") for word in mesh.split(",") if word)
    settings.update({f"mesh.{axis}": size for axis, size in sizes.items()})
    ranks = 1
    for size in sizes.values():
        ranks *= int(size)
    command = [args.vitrail, "train", "--out", str(out), "--threads", str(args.threads)]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run(command + (["--ranks", str(ranks)] if ranks > 1 else []), capture_output=True, text=True, timeout=args.timeout)
    found = re.search(r"loading training images took ([\d.]+) s.*", done.stdout + done.stderr)
    if done.returncode != 0 or not found:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-800:]}")
    print(f"{mesh or 'one rank'}: {found[0]}", file=sys.stderr, flush=True)
    return float(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("meshes", nargs="*", metavar="MESH")
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--image", default=str(ROOT / "examples/images/rocket.jpg"))
    parser.add_argument("--copies", type=int, default=64, help="of the image, in each of two classes")
    parser.add_argument("--threads", type=int, default=1, help="of a rank")
    parser.add_argument("--updates", type=int, default=20, help="of 16 images")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--json", help="a file for the results")
    args = parser.parse_args()
    sides = ["", *(args.meshes or ["tp=4"])]
    seen = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as work:
        data = Path(work) / "images"
        for label in "ab":
            (data / label).mkdir(parents=True)
            for i in range(args.copies):
                shutil.copy(args.image, data / label / f"{i:03}.jpg")
        for number in range(args.rounds):
            for side in sides if number % 2 == 0 else reversed(sides):
                seen[side].append(loading_seconds(args, data, Path(work) / f"run-{number}-{side or 'one'}", side))
    alone = statistics.median(seen[""])
    rows = [{"mesh": side or "one rank", "seconds": statistics.median(times), "of_one_rank": statistics.median(times) / alone,
             "all": times} for side, times in seen.items()]
    print("| | processor seconds of loading | of one rank |\n|---|---|---|")
    for row in rows:
        print(f"| {row['mesh']} | {row['seconds']:.2f} | {row['of_one_rank']:.2f} |")
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
