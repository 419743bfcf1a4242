#!/usr/bin/env python3
"""The same training run on any mesh of processes: losses of several ranks under mpirun against those of one.

mpi_equality.py VITRAIL [--only NAME[,NAME...]] [--share I/N] [--steps N]

The model has 12 heads, 4 blocks of width 192 and 65 tokens, with dropout, stochastic depth, mixup, clipping and an average;
a step has 16 images. Each row runs `vitrail launch --mpirun`; the losses in its metrics.jsonl are those of one rank within
1e-5 of their size. Without --only the three rows of KEPT are run, with VITRAIL_TEST_LONG in the environment all of them.
Prints one line a row; 0 when all held."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = {
    "model": {"image": 32, "patch": 4, "width": 192, "depth": 4, "heads": 12, "mlp": 768},
    "data": {"train": "synthetic:3x32x32x10x160", "val_fraction": 0},
    "augment": {"crop": "resized", "hflip": 0.5, "mixup": 0.8, "cutmix": 1, "mix_group": 2},
    "train": {"batch": 16, "dropout": 0.1, "drop_path": 0.1, "smoothing": 0.1, "log_every": 1, "eval_every": 1000000,
              "tensorboard": False},
    "optim": {"lr": 0.001, "weight_decay": 0.05, "clip_norm": 1, "ema_decay": 0.99},
    "schedule": {"warmup": 3},
}
WITHIN = 1e-5
ROWS = {
    "dp2": (2, "mesh.dp=2"),
    "dp3": (3, "mesh.dp=3"),
    "dp4": (4, "mesh.dp=4"),
    "zero1_dp2": (2, "mesh.zero=1"),
    "zero1_dp4": (4, "mesh.zero=1"),
    "zero2_dp3": (3, "mesh.zero=2"),
    "zero3_dp2": (2, "mesh.zero=3"),
    "zero3_dp4": (4, "mesh.zero=3"),
    "tp2": (2, "mesh.tp=2"),
    "tp4": (4, "mesh.tp=4"),
    "tp2_tokens": (2, "mesh.tp=2", "mesh.tokens_on_tp=true"),
    "tp4_tokens": (4, "mesh.tp=4", "mesh.tokens_on_tp=true"),
    "sp3": (3, "mesh.sp=3"),
    "dp2_tp2": (4, "mesh.dp=2", "mesh.tp=2"),
    "zero3_dp2_tp2_tokens": (4, "mesh.tp=2", "mesh.zero=3", "mesh.tokens_on_tp=true"),
    "dp2_accumulated": (2, "mesh.dp=2", "train.accumulation=4", "train.micro_batch=0"),
    "dp2_lamb": (2, "mesh.dp=2", "optim.name=lamb"),
    "zero2_dp2_tp2_lamb": (4, "mesh.tp=2", "mesh.zero=2", "optim.name=lamb"),
}
KEPT = ("zero3_dp2", "sp3", "dp2_tp2")


def losses(vitrail, work, name, steps, ranks, *settings):
    folder, config = work / name, work / "run.json"
    words = [word for setting in (f"train.steps={steps}", *settings) for word in ("--set", setting)]
    start = ["launch", "-n", str(ranks), "--mpirun"] if ranks > 1 else []
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
    done = subprocess.run([vitrail, *start, "train", "--config", str(config), "--out", str(folder), "--threads", "1", *words],
                          env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280)
    if done.returncode != 0:
        sys.exit(f"{name}: exit code {done.returncode}: {done.stderr[-900:]}")
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    found = [line["loss"] for line in lines if line["kind"] == "train"]
    if len(found) != steps:
        sys.exit(f"{name}: {len(found)} losses of {steps} steps")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vitrail")
    parser.add_argument("--only", default="")
    parser.add_argument("--share", default="0/1", help="every Nth row, from the Ith on")
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    first, shares = map(int, args.share.split("/"))
    long = bool(os.environ.pop("VITRAIL_TEST_LONG", ""))
    names = args.only.split(",") if args.only else list(ROWS) if long else KEPT
    names = names[first::shares]
    alone, failed = {}, []
    with tempfile.TemporaryDirectory(prefix="vitrail-equality-") as folder:
        work = Path(folder)
        (work / "run.json").write_text(json.dumps(CONFIG))
        (work / "s").mkdir()
        os.environ["OMPI_MCA_orte_tmpdir_base"] = str(work / "s")  # that of other tests would go when their mpirun ends
        for name in names:
            ranks, *settings = ROWS[name]
            optim = [setting for setting in settings if setting.startswith("optim.")]
            key = "one" + "".join(optim).replace("=", "_")
            if key not in alone:
                alone[key] = losses(args.vitrail, work, key, args.steps, 1, *optim)
            start = time.time()
            found = losses(args.vitrail, work, name, args.steps, ranks, *settings)
            worst = max(abs(a - b) / abs(b) for a, b in zip(found, alone[key]))
            print(f"{name}: {ranks} ranks, {' '.join(settings)}: largest relative difference {worst:.1e} in {args.steps} steps, "
                  f"{time.time() - start:.1f} s", flush=True)
            if not worst <= WITHIN:
                failed.append(name)
    if failed:
        sys.exit(f"more than {WITHIN} apart: {', '.join(failed)}")


if __name__ == "__main__":
    main()
