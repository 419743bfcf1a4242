#!/usr/bin/env python3
"""Whether a program became slower than another: each case is run by the old one, the new one and the old one again, round
after round, and the medians are compared. A change that is to cost nothing is held to it.

    tools/same_speed.py OLD NEW [--device cuda] [--rounds N] [--only PATTERN...]

OLD and NEW are programs. The last column is the old program against itself: what the machine does by itself."""
import argparse
import fnmatch
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from same_results import DEIT, IMAGES, ROOT, write_idx

IMAGE = IMAGES / "astronaut.png"


def bench(kind, model, batch, more):
    patch = 14 if model == "huge" else 16
    return ["bench", kind, "-m", f"vit_{model}_patch{patch}_224", "--batch", batch, *more]


def infer(model, batch, *more):
    return bench("infer", model, batch, more)


def train(model, batch, *more):
    return bench("train", model, batch, more)


STREAM = ["--set", "train.low_residual=true"]


BENCHES = {
    "cpu": {
        "B/16 batch 1": infer("base", 1),
        "B/16 batch 8": infer("base", 8),
        "Ti/16 batch 1": infer("tiny", 1),
        "Ti/16 batch 8": infer("tiny", 8),
        "training step of the demonstration": ["bench", "train", "--config", ROOT / "configs/demo-fashion.json"],
    },
    "cuda": {
        "B/16 bf16 batch 1": infer("base", 1, "--dtype", "bf16"),
        "B/16 bf16 batch 8": infer("base", 8, "--dtype", "bf16"),
        "B/16 bf16 batch 256": infer("base", 256, "--dtype", "bf16"),
        "B/16 fp8 batch 256": infer("base", 256, "--dtype", "fp8"),
        "Ti/16 bf16 batch 1": infer("tiny", 1, "--dtype", "bf16"),
        "B/16 bf16 training batch 64": train("base", 64, "--dtype", "bf16"),
        "B/16 bf16 training batch 256": train("base", 256, "--dtype", "bf16"),
        "S/16 bf16 training batch 512": train("small", 512, "--dtype", "bf16"),
        "B/16 bf16 stream training batch 256": train("base", 256, "--dtype", "bf16", *STREAM),
        "B/16 fp8 training batch 256": train("base", 256, "--dtype", "fp8", *STREAM),
        "B/16 at 384 bf16 training batch 64": train("base", 64, "--dtype", "bf16", "--image", 384),
        "B/16 at 1024 bf16 training batch 8": train("base", 8, "--dtype", "bf16", "--image", 1024),
        "B/16 bf16 batch 32": infer("base", 32, "--dtype", "bf16"),
        "S/16 bf16 batch 1024": infer("small", 1024, "--dtype", "bf16"),
        "L/16 bf16 batch 256": infer("large", 256, "--dtype", "bf16"),
        "L/16 fp8 batch 256": infer("large", 256, "--dtype", "fp8"),
        "B/16 at 384 bf16 batch 64": infer("base", 64, "--dtype", "bf16", "--image", 384),
        "B/16 at 1024 bf16 batch 8": infer("base", 8, "--dtype", "bf16", "--image", 1024),
        "L/16 bf16 stream training batch 96": train("large", 96, "--dtype", "bf16", *STREAM),
        "Ti/16 f32 training batch 8": train("tiny", 8),
        "B/16 bf16 batch 2": infer("base", 2, "--dtype", "bf16"),
        "B/16 bf16 batch 4": infer("base", 4, "--dtype", "bf16"),
        "S/16 bf16 batch 4": infer("small", 4, "--dtype", "bf16"),
        "S/16 fp8 batch 1024": infer("small", 1024, "--dtype", "fp8"),
        "L/16 bf16 batch 1": infer("large", 1, "--dtype", "bf16"),
        "B/16 bf16 stream training batch 64": train("base", 64, "--dtype", "bf16", *STREAM),
        "S/16 bf16 stream training batch 512": train("small", 512, "--dtype", "bf16", *STREAM),
        "S/16 fp8 training batch 512": train("small", 512, "--dtype", "fp8", *STREAM),
        "B/16 at 384 bf16 stream training batch 64": train("base", 64, "--dtype", "bf16", "--image", 384, *STREAM),
        "B/16 at 1024 bf16 stream training batch 8": train("base", 8, "--dtype", "bf16", "--image", 1024, *STREAM),
        "H/14 bf16 stream training batch 32": train("huge", 32, "--dtype", "bf16", *STREAM),
    },
}


def output(program, words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(map(str, words))}\nexit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def bench_ms(words, options):
    """A benchmark's own median."""
    more = ["--json", "--seconds", options.seconds, "--device", options.device]
    more += ["--weights", "rule"] if "--config" not in words else []
    more += ["--threads", options.threads] if options.threads else []
    return lambda program: json.loads(output(program, [*words, *more]))["ms_median"]


def predict_ms(options):
    """One image from the start of the process to its end, the median of ten."""
    def ms(program):
        seconds = []
        for _ in range(10):
            begin = time.perf_counter()
            output(program, ["predict", "-m", DEIT, "--device", options.device, IMAGE])
            seconds.append(time.perf_counter() - begin)
        return 1e3 * statistics.median(seconds)
    return ms


# Models of which a micro-batch of 8 images is a fraction of a millisecond's work up to some: width, depth.
SMALL = {"64 wide, 2 blocks": (64, 2), "128 wide, 4 blocks": (128, 4), "192 wide, 12 blocks": (192, 12)}


def small_updates_ms(width, depth, options):
    """An update of a small model in 32 micro-batches of 8 images: the median of a run's own intervals, its first ten left out."""
    settings = ["train.batch=256", "train.micro_batch=8", "model.image=28", "model.patch=4", "model.channels=1",
                f"model.width={width}", f"model.depth={depth}", "model.heads=2", f"model.mlp={4 * width}", "train.seed=1",
                "train.steps=60", "train.log_every=1"]

    def ms(program):
        with tempfile.TemporaryDirectory(prefix="vitrail-speed-") as folder:
            write_idx(pathlib.Path(folder))
            words = [word for setting in [*settings, f"data.train=idx:{folder}"] for word in ("--set", setting)]
            output(program, ["train", "--quiet", "--device", options.device, "--out", f"{folder}/run", *words])
            lines = map(json.loads, pathlib.Path(f"{folder}/run/metrics.jsonl").read_text().splitlines())
            seconds = [line["interval_s"] for line in lines if line["kind"] == "train"]
            return 1e3 * statistics.median(seconds[10:])

    return ms


def cases(options):
    for name, words in BENCHES[options.device].items():
        yield name, bench_ms(words, options)
    yield "predict of one image, start to end", predict_ms(options)
    if options.device == "cuda":
        for name, (width, depth) in SMALL.items():
            yield f"update of 32 micro-batches of 8 small images, {name}", small_updates_ms(width, depth, options)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("--device", default="cpu", choices=sorted(BENCHES))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=2, help="of each benchmark (default: 2)")
    p.add_argument("--threads", type=int, help="of the CPU (default: all)")
    p.add_argument("--limit", type=float, default=1e9, help="begin no round after so many seconds")
    p.add_argument("--only", nargs="+", default=["*"], help="names of cases, * allowed")
    options = p.parse_args()
    chosen = {name: ms for name, ms in cases(options) if any(fnmatch.fnmatch(name, only) for only in options.only)}
    if not chosen:
        p.error(f"no such case; there are: {', '.join(name for name, _ in cases(options))}")
    times = {name: ([], [], []) for name in chosen}
    begin = time.monotonic()
    for round_number in range(options.rounds):
        if time.monotonic() - begin > options.limit:
            break
        for name, ms in chosen.items():
            for column, program in zip(times[name], (options.old, options.new, options.old)):
                column.append(ms(program))
        print(f"round {round_number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    print("| case | old, ms | new, ms | new / old | old / old |\n|---|---|---|---|---|")
    for name, columns in times.items():
        old, new, again = map(statistics.median, columns)
        print(f"| {name} | {old:.3f} | {new:.3f} | {new / old:.3f} | {again / old:.3f} |")


if __name__ == "__main__":
    main()
