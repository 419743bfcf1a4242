#!/usr/bin/env python3
"""Compares Vitrail with torch on a GPU, like for like: the same timm model, images, batch and type of the residual
stream; torch is compiled in several modes, each in a process of its own, and the fastest of them counts. Rounds
alternate; the results are medians and ratios. Training is forward, backward and AdamW on a batch that stays on the GPU;
in inference both sides have the same weights, and the logits are compared. --jax adds the same model in JAX.

    python bench/compare_gpu.py train:vit_base_patch16_224:256 infer:vit_base_patch16_224:1
    python bench/compare_gpu.py train:vit_base_patch16_224:8:1024 --modes default,graphs --json out.json --svg out.svg

A case is train:MODEL:BATCH[:IMAGE][:cCLASSES][:STREAM] or infer:MODEL:BATCH[:IMAGE]. Training is compared with an f32 residual stream (torch: bf16 autocast over
f32 weights) and with a bf16 one (torch: weights in bf16 too; Vitrail keeps f32 master weights); inference is in bf16.
"At equal work" is the ratio of FLOP/s: Vitrail does not compute the outputs of the last block that nothing reads.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

from peers import OURS, Peer, stats
from peers.chart import chart
from peers.compare import run_rounds
from peers.ratios import ratio_plot
from peers.report import aligned, checked_text, title
from peers.sides import Unavailable, WorkerSide
from peers.vitrail import VitrailSide

MODES = ("default", "graphs", "autotune")  # of peers.torch_gpu, which only a Python with torch can read
STREAMS = {"train": ("f32", "bf16"), "infer": ("bf16",)}
FP8 = OURS + " fp8"
TORCH = Peer("torch", "peers.torch_gpu", ("torch", "timm"))
JAX = Peer("jax", "peers.jax_gpu", ("jax", "torch", "timm"))
COLUMNS = ("", "median", "min", "p90", "img/s", "GiB", "of torch's best", "equal work", "logits off by")


def parse_case(text):
    *parts, last = text.split(":")
    streams = (last,) if parts[:1] == ["train"] and last in STREAMS["train"] else None
    parts += [] if streams else [last]
    named = parts[:1] == ["train"] and parts[-1][:1] == "c" and parts[-1][1:].isdigit()
    classes = int(parts.pop()[1:]) if named else 1000
    if len(parts) not in (3, 4) or parts[0] not in STREAMS or not all(part.isdigit() for part in parts[2:]):
        raise argparse.ArgumentTypeError(f"expected train:MODEL:BATCH[:IMAGE][:cCLASSES][:STREAM] or infer:MODEL:BATCH[:IMAGE], not {text}")
    work, model, batch, *image = parts
    return {"work": work, "model": model, "streams": streams or STREAMS[work], "batch": int(batch), "image": int(image[0]) if image else None,
            "classes": classes, "config": None, "fields": None, "clip": 0, "device": "cuda",
            "threads": len(os.sched_getaffinity(0))}


class OursOnGpu(VitrailSide):
    """Vitrail on a GPU: its memory is its arenas; the types of its weights and residual stream stand beside the row."""

    def __init__(self, program, case):
        super().__init__(program, case, ("--warmup", "5"))
        masters = ", f32 master weights" if case["work"] == "train" else ""
        self.note = f"{case['dtype']} products{masters}"

    def close(self):
        return self.first["memory_peak"]


def openers(case, stream, options):
    """Name -> a function that opens that side."""
    settings = ["train.low_residual=true"] if stream == "bf16" else ["train.low_residual=false"]
    dtypes = {OURS: "bf16", **({FP8: "fp8"} if options.fp8 and stream == "bf16" else {})}
    ours = {name: lambda dtype=dtype: OursOnGpu(options.vitrail, {**case, "dtype": dtype, "settings": settings})
            for name, dtype in dtypes.items()}
    theirs = {f"torch {mode}": lambda mode=mode: WorkerSide(TORCH, {**case, "stream": stream, "mode": mode})
              for mode in options.modes}
    if options.jax:
        theirs[JAX.name] = lambda: WorkerSide(JAX, {**case, "stream": stream})
    return {**ours, **theirs}


def open_sides(case, stream, options, say):
    sides, missing = {}, {}
    for name, opened in openers(case, stream, options).items():
        try:
            sides[name] = opened()
        except Unavailable as reason:
            missing[name] = str(reason)
            say(f"  {name}: none, {reason}")
    return sides, missing


def is_torch(name):
    return name.startswith("torch")


def is_ours(name):
    return name in (OURS, FP8)


def logit_checks(sides):
    """Name -> how far its logits are from those of the first torch."""
    logits = {name: side.logits() for name, side in sides.items()}
    reference = next((found for name, found in logits.items() if is_torch(name)), None)
    if reference is None:
        return {}
    return {name: {"logits": stats.logit_difference(reference, found)} for name, found in logits.items()}


def compare(case, stream, options, say, opened=None):
    """Runs one case with one type of residual stream; rows of Vitrail are compared with the fastest mode of torch."""
    sides, missing = opened or open_sides(case, stream, options, say)
    checked = logit_checks(sides) if case["work"] == "infer" else {}
    rounds = run_rounds(sides, missing, options, say)
    best = stats.fastest({n: stats.combine(r)["median"] for n, r in rounds.items() if is_torch(n)}, OURS)
    rows = []
    for name, found in rounds.items():
        side, times = sides[name], stats.combine(found)
        row = {"peer": name, "ms": times, "rounds": found, "img_per_s": 1e3 * case["batch"] / times["median"],
               "version": side.version, "note": side.note, "bytes": side.close(), **checked.get(name, {})}
        if is_ours(name):
            row["command"] = [*side.command, "--seconds", str(options.seconds)]
            row["work_share"] = side.work_share
            if best:
                row["speedup"] = stats.speedup(rounds[best], found, side.work_share)
            if JAX.name in rounds:
                row["against_jax"] = stats.speedup(rounds[JAX.name], found, side.work_share)
        rows.append(row)
    kept = {key: case[key] for key in ("work", "model", "batch", "image")}
    return {**kept, "stream": stream, "torch_best": best, "rows": rows, "missing": missing, "threads": None,
            "dtype": "bf16" if case["work"] == "infer" else f"bf16 with {stream} residual stream"}


def cells(row):
    speed = row.get("speedup")
    ratios = [f"{speed[key]:.2f}x" if speed else "" for key in ("ratio", "equal_work")]
    return [row["peer"], *(f"{row['ms'][key]:.3f}" for key in ("median", "min", "p90")), f"{row['img_per_s']:.0f}",
            f"{row['bytes'] / 2**30:.1f}", *ratios, checked_text(row), row["note"]]


def table(result):
    """Returns the rows as text, and every command of Vitrail's that was run for them."""
    lines = [title(result)]
    if result["rows"]:
        lines += ["  " + line for line in aligned([[*COLUMNS, ""], *map(cells, result["rows"])])]
    lines += [f"  {row['peer']} against jax: {row['against_jax']['ratio']:.2f}x, "
              f"{row['against_jax']['equal_work']:.2f}x at equal work" for row in result["rows"] if "against_jax" in row]
    lines += [f"  {name}: none, {reason}" for name, reason in result["missing"].items()]
    lines += [f"  ran: {shlex.join(row['command'])}" for row in result["rows"] if "command" in row]
    return "\n".join(lines)


def drawn(result):
    """Returns the input of peers.chart: ours and torch's fastest mode."""
    speedups = {row["peer"]: row["speedup"] for row in result["rows"] if "speedup" in row}
    rows = [dict(row, vitrail_speedup=speedups.get(OURS) if row["peer"] == result["torch_best"] else None)
            for row in result["rows"] if not is_torch(row["peer"]) or row["peer"] == result["torch_best"]]
    return {**result, "rows": rows}


def write_results(options, about, results):
    """Writes the results after every case, so that an interrupted run loses nothing."""
    if options.json:
        options.json.write_text(json.dumps({**about, "cases": results}, indent=1) + "\n")
    if options.svg:
        caption = f"{about['gpu']}, torch {about['torch']} in the fastest mode tried, {about['date']}; shorter is faster"
        options.svg.write_text(chart([drawn(result) for result in results], caption))
    if options.plot:
        options.plot.write_text(ratio_plot(results, f"{about['gpu']}, torch {about['torch']}, {about['date']}"))


def about_this_run():
    """Returns GPU and versions, read by a process that ends: this one must not hold the GPU."""
    probe = ("import json, timm, torch; print(json.dumps({'gpu': torch.cuda.get_device_name(), "
             "'torch': torch.__version__, 'timm': timm.__version__}))")
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("no GPU or no torch and timm here: " + (done.stderr.strip().splitlines() or ["without a word"])[-1])
    return {**json.loads(done.stdout), "date": time.strftime("%Y-%m-%d"), "command": sys.argv}


def chosen(known):
    def parse(text):
        unknown = [word for word in text.split(",") if word not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
        return text.split(",")
    return parse


def parse_options():
    root = pathlib.Path(__file__).resolve().parent.parent
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="+", type=parse_case, metavar="CASE")
    p.add_argument("--vitrail", default=str(root / "build/release/vitrail"), help="the program")
    p.add_argument("--modes", type=chosen(MODES), default=list(MODES), help="of torch: " + ",".join(MODES))
    p.add_argument("--streams", type=chosen(STREAMS["train"]), default=list(STREAMS["train"]),
                   help="of training: " + ",".join(STREAMS["train"]))
    p.add_argument("--fp8", action="store_true", help="also Vitrail in fp8, beside torch's bf16: it has no fp8 here")
    p.add_argument("--jax", action="store_true", help="also the same model in JAX")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=2, help="of each side a round")
    p.add_argument("--together", action="store_true", help="open all cases at once: needs memory for all, saves their start")
    p.add_argument("--limit", type=float, metavar="SECONDS",
                   help="seconds of rounds after which a case begins no further one")
    p.add_argument("--json", type=pathlib.Path, help="write the results here")
    p.add_argument("--svg", type=pathlib.Path, help="draw them here")
    p.add_argument("--plot", type=pathlib.Path, help="draw the ratios against tokens and against batch here")
    return p.parse_args()


def opened_together(work, options, say):
    """Opens the sides of all cases at once, since compiling takes far longer than timing; they wait for their turn."""
    with concurrent.futures.ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(lambda one: open_sides(*one, options, say), work))


def main():
    options = parse_options()
    about = about_this_run()
    print(f"{about['gpu']}, torch {about['torch']}, timm {about['timm']}\n", flush=True)
    work = [(case, stream) for case in options.cases for stream in case["streams"]
            if case["work"] != "train" or stream in options.streams]

    if not work:
        sys.exit("no case is left: --streams leaves out those that the cases name")

    def say(line):
        print(line, file=sys.stderr, flush=True)

    opened = opened_together(work, options, say) if options.together else [None] * len(work)
    results = []
    for (case, stream), sides in zip(work, opened):
        results.append(compare(case, stream, options, say, sides))
        print(table(results[-1]) + "\n", flush=True)
        write_results(options, about, results)
    return 0 if all(result["torch_best"] and result["rows"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
