#!/usr/bin/env python3
"""Accuracy against batch size at a fixed number of epochs, with and without a learning rate that follows the batch, and
three optimizers at large batches. A small ViT on CIFAR-10; each run is `vitrail train`, several at a time, since only
accuracy is compared.

    python bench/accuracy_by_batch.py --vitrail build/release/vitrail --data cifar10:DIR --device cuda --json FILE [--jobs 6]
    python bench/accuracy_by_batch.py --small --keep

The rate is --lr at --base images a batch; "sqrt" and "linear" scale it by the batch over that, or the square root of it.
--small is for a CPU: the demo's model on a quarter of Fashion-MNIST, some five minutes on two cores; --keep writes
docs/experiments/data/accuracy-by-batch.json.
"""
import argparse
import concurrent.futures
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import study

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import experiment_tables  # noqa: E402: it lies in tools

# What --small puts in place of the defaults.
SMALL = {"config": ROOT / "configs/demo-fashion.json", "data": "idx:/usr/share/datasets/fashion-mnist", "device": "cpu", "lr": 2e-3,
         "batches": [16, 64, 128, 256, 1024, 4096], "large": [1024, 4096], "epochs": 3, "images": 15000, "fraction": 0.25, "jobs": 1}
SCALES = {"fixed": lambda ratio: 1.0, "sqrt": lambda ratio: ratio**0.5, "linear": lambda ratio: ratio}
# Rates at --base images for the optimizers of large batches; AdamW has --lr.
LARGE = {"sgd": 0.1, "lamb": 0.004}


def cases(args):
    for batch in args.batches:
        for scale in SCALES:
            if batch != args.base or scale == "fixed":
                yield {"optimizer": "adamw", "batch": batch, "scale": scale, "lr": args.lr * SCALES[scale](batch / args.base)}
    for batch in args.large:
        for optimizer, rate in {"adamw": args.lr, **LARGE}.items():
            for scale in ("sqrt", "linear") if optimizer == "sgd" else ("sqrt",):
                if (optimizer, batch) != ("adamw", batch) or batch not in args.batches:
                    yield {"optimizer": optimizer, "batch": batch, "scale": scale,
                           "lr": rate * SCALES[scale](batch / args.base)}


def train(case, args, folder):
    steps = args.epochs * args.images // case["batch"]
    settings = {"data.train": args.data, "data.fraction": args.fraction, "train.batch": case["batch"], "train.epochs": args.epochs,
                "train.eval_every": max(1, steps // args.epochs), "train.log_every": max(1, steps // 50), "optim.lr": case["lr"],
                "optim.name": case["optimizer"], "schedule.warmup": max(1, steps // 10), "train.save_minutes": 0,
                "train.save_every": 10**9, "train.tensorboard": "false", "train.seed": args.seed,
                "augment.policy": "", "augment.erase": 0, "augment.mixup": 0, "augment.cutmix": 0,  # epochs are few
                "optim.weight_decay": 5e-4 if case["optimizer"] == "sgd" else 0.05}
    out = folder / "-".join(str(case[key]) for key in ("optimizer", "batch", "scale"))
    command = [args.vitrail, "train", "--config", str(args.config), "--device", args.device, "--out", str(out), "--quiet"]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()] if out.exists() else []
    evals = [line for line in lines if line.get("kind") == "eval"]
    losses = [line["loss"] for line in lines if line.get("kind") == "train"]
    result = {**case, "steps": steps, "exit": done.returncode, "seconds": time.monotonic() - began,
              "top1_by_epoch": [line.get("top1") for line in evals], "top1": evals[-1].get("top1") if evals else None,
              "last_loss": losses[-1] if losses else None, "error": done.stderr[-300:] if done.returncode else None}
    print(f"{case['optimizer']} {case['batch']} {case['scale']}: top-1 {result['top1']}", file=sys.stderr, flush=True)
    return result


def tables(rows):
    """A row a batch with a column for each rule of the rate, and one a case of the optimizers."""
    def top(optimizer, batch, scale, key="top1"):
        return next((row[key] if row[key] is not None else f"exit code {row['exit']}" for row in rows
                     if (row["optimizer"], row["batch"], row["scale"]) == (optimizer, batch, scale)), None)
    batches = sorted({row["batch"] for row in rows if row["optimizer"] == "adamw"})
    steps = {row["batch"]: row["steps"] for row in rows}
    large = [row for row in rows if row["optimizer"] != "adamw" or row["batch"] in {r["batch"] for r in rows if r["optimizer"] != "adamw"}]
    share = {"unit": "top1"}
    return {"batches": {"columns": ["batch", "updates", {"title": "rate fixed", **share}, {"title": "rate by the root", **share},
                                    {"title": "rate by the batch", **share}, {"title": "last training loss, rate fixed", "unit": "loss"}],
                        "rows": [[batch, steps[batch], *(top("adamw", batch, scale) for scale in SCALES),
                                  top("adamw", batch, "fixed", "last_loss")] for batch in batches]},
            "optimizers": {"columns": ["batch", "optimizer", "rate", {"title": "test top-1", **share}, {"title": "last loss", "unit": "loss"}],
                           "rows": [[row["batch"], row["optimizer"], f"{row['lr']:.2g} ({row['scale']})",
                                     row["top1"] if row["top1"] is not None else f"exit code {row['exit']}", row["last_loss"]]
                                    for row in sorted(large, key=lambda row: (row["batch"], row["optimizer"], row["scale"]))]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--config", default=ROOT / "configs/cifar10-gpu-90.json")
    parser.add_argument("--data", default="cifar10:data/cifar10")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", type=numbers, default=[16, 32, 64, 128, 256, 512, 1024])
    parser.add_argument("--large", type=numbers, default=[1024, 4096])
    parser.add_argument("--base", type=int, default=128)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--images", type=int, default=50000)
    parser.add_argument("--fraction", type=float, default=1, help="of the data; --images are what is left")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--keep", action="store_true")
    if "--small" in sys.argv:
        parser.set_defaults(**SMALL)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(lambda case: train(case, args, Path(work)), cases(args)))
    result = {"config": Path(args.config).name, "epochs": args.epochs, "base": args.base, "rows": rows, "tables": tables(rows)}
    for name in result["tables"]:
        print(experiment_tables.plain(result, name))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    if args.keep:
        study.keep("accuracy-by-batch.json", {"experiment": "003: accuracy against batch size; SGD, AdamW and LAMB at large batches",
                                              "document": "accuracy-by-batch.md",
                                              "command": "bench/accuracy_by_batch.py --small --keep"}, result)


if __name__ == "__main__":
    main()
