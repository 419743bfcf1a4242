#!/usr/bin/env python3
"""Compares Vitrail with torch, torch.compile, onnxruntime and OpenVINO on this machine, in one run: same model, same
weights (all by rule), same threads, batch and dtype; rounds alternate, so that a slow minute affects all.
Peers that are not installed are left out by name. docs/benchmarking.md says what is measured.

    python bench/compare_peers.py --model vit_base_patch16_224 --batch 1 8 --threads 2
    python bench/compare_peers.py --train vit_tiny_patch16_224 --batch 32
    python bench/compare_peers.py --train configs/demo-fashion.json
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

from peers import NAMES, PEERS
from peers.chart import chart
from peers.compare import compare
from peers.report import table, threads
from peers.stats import spread

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUNDLED = (ROOT / "models/deit_tiny_patch16_224", ROOT / "examples/images/chelsea.png")
DISAGREE, NOTHING = 2, 1  # exit codes


def cpu_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def read_recipe(path):
    """Reads a training config: JSON in which comments are whole lines."""
    return json.loads(re.sub(r"^\s*//.*$", "", pathlib.Path(path).read_text(), flags=re.MULTILINE))


def make_case(options, work, model, batch):
    case = {"work": work, "model": model, "config": None, "fields": None, "image": options.image, "batch": batch,
            "threads": options.threads, "dtype": options.dtype, "clip": options.clip}
    if model.endswith(".json"):
        recipe = read_recipe(model)
        fields = recipe["model"]
        fields.setdefault("classes", len(recipe.get("data", {}).get("class_names", [])) or 1000)
        case.update(model=pathlib.Path(model).stem, config=model, fields=fields,
                    batch=batch or recipe["train"]["batch"])
    return case


def cases(options):
    if options.train:
        return [make_case(options, "train", options.train, batch) for batch in options.batch or [None]]
    return [make_case(options, "infer", model, batch) for model in options.model for batch in options.batch or [1]]


def first_answer_ms(program, model, image, repeats=7):
    """Returns the wall time from the start of the program to its exit with an answer; None when it gives none."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        done = subprocess.run([program, "predict", "-m", model, image, "--json"], capture_output=True)
        times.append(1e3 * (time.perf_counter() - start))
        if done.returncode != 0:
            return None
    return spread(times)


def say(line):
    print(line, file=sys.stderr, flush=True)


def compare_all(options):
    chosen = [peer for peer in PEERS if peer.name in options.peers]
    results = []
    for case in cases(options):
        say(f"{case['model']}, {case['dtype']}, batch {case['batch']}: {options.rounds} rounds")
        with tempfile.TemporaryDirectory(prefix="vitrail-compare-") as folder:
            results.append(compare(chosen, case, options, pathlib.Path(folder), say))
        print(table(results[-1]) + "\n", flush=True)
    return results


def peer_list(text):
    names = text.split(",")
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return names


def parse_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"), help="the program")
    p.add_argument("--vitrail-args", type=shlex.split, default=[], help="more of its options, in one word")
    p.add_argument("--model", nargs="+", default=["vit_base_patch16_224"], help="timm names")
    p.add_argument("--train", metavar="MODEL", help="training steps instead: a timm name or a recipe (.json)")
    p.add_argument("--image", type=int, help="another input size")
    p.add_argument("--batch", nargs="+", type=int, help="images at a time (1; a recipe's own)")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--dtype", choices=["f32", "bf16", "int8"], default="f32")
    p.add_argument("--clip", type=float, default=0, help="norm gradients are clipped to in training; 0: not")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=3.0, help="of each peer a round")
    p.add_argument("--limit", type=float, metavar="SECONDS",
                   help="seconds of rounds after which a case begins no further one")
    p.add_argument("--peers", type=peer_list, default=list(NAMES), help="of " + ",".join(NAMES))
    p.add_argument("--first-answer", nargs="*", metavar="MODEL IMAGE",
                   help="also time Vitrail from its start to an answer (the bundled model and image)")
    p.add_argument("--json", type=pathlib.Path, help="write the results here")
    p.add_argument("--svg", type=pathlib.Path, help="draw them here")
    options = p.parse_args()
    if options.train and not options.train.endswith(".json"):
        options.batch = options.batch or [32]
    if not options.train and any(name.endswith(".json") for name in options.model):
        p.error("--model takes timm names; a recipe goes with --train")
    if options.first_answer is not None and len(options.first_answer) not in (0, 2):
        p.error("--first-answer takes a model and an image, or nothing")
    if options.limit is not None and options.limit <= 0:
        p.error("--limit is more than 0")
    if options.rounds < 1 or options.threads < 1 or min(options.batch or [1]) < 1:
        p.error("--rounds, --threads and --batch are at least 1")
    return options


def main():
    options = parse_options()
    about = {"cpu": cpu_name(), "threads": options.threads, "date": time.strftime("%Y-%m-%d"), "command": sys.argv,
             "load_before": os.getloadavg()[0]}
    caption = f"{about['cpu']}, {threads(options.threads)}, {about['date']}; shorter is faster"
    print(f"{about['cpu']}, {threads(options.threads)}, load {about['load_before']:.2f}\n", flush=True)
    results = compare_all(options)
    if options.first_answer is not None:
        answer = first_answer_ms(options.vitrail, *(options.first_answer or map(str, BUNDLED)))
        about["first_answer_ms"] = answer
        print("first answer: " + (f"{answer['median']:.1f} ms median, {answer['min']:.1f} min" if answer else "none"))
    if options.json:
        options.json.write_text(json.dumps({**about, "cases": results}, indent=1) + "\n")
    if options.svg:
        options.svg.write_text(chart(results, caption))
    if any(result["disagree"] for result in results):
        return DISAGREE
    return 0 if all(result["rows"] for result in results) else NOTHING


if __name__ == "__main__":
    sys.exit(main())
