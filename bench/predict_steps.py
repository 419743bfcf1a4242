#!/usr/bin/env python3
"""Step times predicted before they are run, against what is then measured.

    bench/predict_steps.py --vitrail build/release/vitrail --target desk.json --threads 2
    bench/predict_steps.py --target h200.json --device cuda --dtype f32 --dtype bf16 --dtype fp8 --cases 20 --json

Every case is planned with `plan --target` first, from the device file alone, and run afterwards with `bench infer`
or `bench train`. The fixed cases are those a cost model may be developed with; `--seed N` draws others from
Ti to H, 1 to 512 images, 224 to 1,024 px, which stay unseen until then. A case whose predicted step is longer than
--longest seconds is left out, or replaced by the next draw. All cases are planned before the first is run, --jobs at once. On a machine
with other work, `--against min` compares with the fastest run instead of the median, since other work only ever slows a
run down. --out keeps the results as far as they have come, also when --limit or a kill ends them.
"""
import argparse
import concurrent.futures
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import study

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import experiment_tables  # noqa: E402: it lies in tools

MODELS = {"Ti": "vit_tiny_patch16_224", "S": "vit_small_patch16_224", "S/32": "vit_small_patch32_224",
          "B": "vit_base_patch16_224", "B/32": "vit_base_patch32_224", "L": "vit_large_patch16_224",
          "H": "vit_huge_patch14_224"}
BATCHES = {"cpu": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512],
           "cuda": [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]}
PIXELS = [224, 224, 224, 256, 288, 384, 448, 512, 768, 1024]
FIXED = [("Ti", 224, 1, False), ("Ti", 224, 16, False), ("Ti", 224, 16, True), ("Ti", 384, 4, True),
         ("S", 224, 4, False), ("S", 224, 8, True), ("S", 512, 1, True), ("B", 224, 1, False),
         ("B", 224, 4, True), ("B/32", 224, 8, False), ("L", 224, 1, False), ("Ti", 1024, 1, False),
         ("H", 224, 1, False), ("H", 224, 1, True), ("Ti", 1024, 1, True), ("L", 224, 8, True)]
FIXED_GPU = [("Ti", 224, 1, False), ("Ti", 224, 256, True), ("S", 224, 64, False), ("S", 384, 32, True),
             ("B", 224, 8, False), ("B", 224, 64, True), ("B", 224, 256, False), ("L", 224, 32, True),
             ("L", 384, 8, False), ("H", 224, 16, True), ("B", 1024, 4, False), ("B/32", 224, 256, True),
             ("B", 224, 512, False), ("B/32", 224, 512, True), ("S", 1024, 8, True), ("B", 1024, 4, True)]


def call(vitrail, words):
    done = subprocess.run([vitrail, *words, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else str(done.returncode))
    return json.loads(done.stdout)


def words_of(case, args, dtype):
    model, pixels, batch, training = case
    patch = 14 if model == "H" else 32 if model.endswith("/32") else 16
    pixels = max(patch, round(pixels / patch) * patch)
    words = ["-m", MODELS[model], "--weights", "rule", "--image", str(pixels), "--batch", str(batch), "--dtype", dtype]
    if training:
        words += ["--classes", "1000"]
        words.remove("--weights"), words.remove("rule")
        words += [word for setting in args.set for word in ("--set", setting)]
    return words, pixels


def predict(case, args, dtype):
    words, _ = words_of(case, args, dtype)
    words = ["plan", *words, "--target", args.target]
    if args.device == "cpu":
        words += ["--threads", str(args.threads)]
    if case[3]:
        words.append("--train")
    plan = call(args.vitrail, words)
    fits = plan["memory"]["peak"] <= 0.9 * plan["memory_available"]
    return {"case": case, "dtype": dtype, "seconds": plan["update_s"] if case[3] else plan["run_s"], "fits": fits}


def measure(case, args, dtype, expected):
    words, _ = words_of(case, args, dtype)
    words = ["bench", "train" if case[3] else "infer", *words, "--device", args.device]
    if args.device == "cpu":
        words += ["--threads", str(args.threads)]
    seconds = args.seconds if expected < args.seconds / 3 else 0.01  # three runs at least
    words += ["--seconds", str(seconds), "--warmup", "2" if expected < 2 else "1"]
    answers = [call(args.vitrail, words) for _ in range(args.processes)]
    medians = [answer["ms_median"] / 1e3 for answer in answers]
    return medians, min(answer["ms_min"] for answer in answers) / 1e3, answers[0].get("peak_gflops", 0)


def is_asked(case, dtype, args):
    """int8 has no training, and settings are of trainings alone."""
    return not args.set if not case[3] else dtype != "int8"


def drawn(args):
    """Draws without end, each once."""
    source = random.Random(args.seed)
    kind = "cuda" if args.device.startswith("cuda") else "cpu"
    seen = set()
    while len(seen) < 10_000:
        case = (source.choice(list(MODELS)), source.choice(PIXELS), source.choice(BATCHES[kind]),
                source.random() < 0.5)
        dtype = source.choice(args.dtype)
        if (case, dtype) in seen or not is_asked(case, dtype, args):
            continue
        seen.add((case, dtype))
        yield case, dtype


def fixed(args):
    cases = FIXED_GPU if args.device.startswith("cuda") else FIXED
    return [(case, dtype) for dtype in args.dtype for case in cases[args.after:][:args.cases] if is_asked(case, dtype, args)]


def planned_cases(args):
    """The fixed cases, or the first draws that fit the device and the time; all predicted."""
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        def plan(cases):
            return list(pool.map(lambda one: predict(one[0], args, one[1]), cases))
        if args.seed is None:
            return [one for one in plan(fixed(args)) if one["seconds"] <= args.longest]
        chosen, source = [], drawn(args)
        wanted = args.cases or 12
        while len(chosen) < wanted:
            batch = list(itertools.islice(source, wanted))
            if not batch:
                break
            chosen += [one for one in plan(batch) if one["fits"] and one["seconds"] <= args.longest]
        return chosen[:wanted]


def name_of(one, args):
    model, _, batch, training = one["case"]
    pixels = words_of(one["case"], args, one["dtype"])[1]
    settings = "".join(f", {setting}" for setting in args.set) if training else ""
    return f"{model} {pixels} px, batch {batch}, {'train' if training else 'infer'}{settings}, {one['dtype']}"


def run(args, keep):
    rows, begin = [], time.time()
    for one in planned_cases(args):
        if time.time() - begin > args.limit:
            print(f"stopped after {args.limit} s", file=sys.stderr)
            break
        name, predicted = name_of(one, args), one["seconds"]
        try:
            medians, least, peak = measure(one["case"], args, one["dtype"], predicted)
        except RuntimeError as problem:
            print(f"{name}: left out: {problem}", file=sys.stderr)
            continue
        median = statistics.median(medians)
        against = least if args.against == "min" else median
        rows.append({"case": name, "predicted_s": predicted, "median_s": median, "min_s": least,
                     "spread": median / least - 1, "peak_gflops": peak, "error": predicted / against - 1})
        if args.processes > 1:
            rows[-1]["medians_s"] = medians
        keep(rows)
        if not args.json:
            print(f"{name:45} predicted {predicted * 1e3:10.3f} ms   measured {median * 1e3:10.3f} ms "
                  f"(min {least * 1e3:10.3f})   {100 * rows[-1]['error']:+6.1f} %", flush=True)
    return rows


def summary_of(rows, args):
    errors = sorted(abs(row["error"]) for row in rows)
    return {"made": study.made(), "cases": rows, "target": args.target, "device": args.device, "threads": args.threads,
            "seed": args.seed, "set": args.set, "against": args.against, "count": len(rows),
            "median_error": statistics.median(errors) if errors else None,
            "worst_error": errors[-1] if errors else None,
            "median_spread": statistics.median([row["spread"] for row in rows]) if rows else None}


def print_together(paths, as_json):
    """All cases of several runs, each as --json or --out wrote it: docs/experiments/data/step-times.json, or how far off they are."""
    sets = [json.loads(Path(path).read_text()) for path in paths]
    data = {**({"made": sets[0]["made"]} if "made" in sets[0] else {}), "sets": sets}
    print(json.dumps(data, indent=1) if as_json else experiment_tables.step_errors(data))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default="build/release/vitrail")
    parser.add_argument("--target", help="the device file of this machine")
    parser.add_argument("--together", nargs="+", metavar="FILE", help="measure nothing: the error of all of these outputs, or with --json all in one")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", action="append", help="may be repeated; f32 otherwise")
    parser.add_argument("--cases", type=int, help="so many; all of the fixed ones otherwise, or 12 drawn")
    parser.add_argument("--after", type=int, default=0, help="leave out so many of the fixed ones")
    parser.add_argument("--seed", type=int, help="draw the cases instead of the fixed ones")
    parser.add_argument("--seconds", type=float, default=1.0, help="to measure a case for, three runs at least")
    parser.add_argument("--processes", type=int, default=1, help="to measure a case in, one after the other; the median counts")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of every case, which are then trainings alone; may be repeated")
    parser.add_argument("--longest", type=float, default=20, help="seconds of the longest step")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for all cases")
    parser.add_argument("--against", choices=["median", "min"], default="median")
    parser.add_argument("--jobs", type=int, default=1, help="plans at once")
    parser.add_argument("--out", type=Path, help="a file for the results, written after every case")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.together:
        return print_together(args.together, args.json)
    if not args.target:
        parser.error("--target is missing: the device file of this machine")
    args.dtype = args.dtype or ["f32"]

    def keep(rows):
        if args.out:
            args.out.write_text(json.dumps(summary_of(rows, args), indent=1) + "\n")

    rows = run(args, keep)
    summary = summary_of(rows, args)
    if args.json:
        print(json.dumps(summary, indent=1))
    elif rows:
        print(f"{len(rows)} cases: median error {100 * summary['median_error']:.1f} %, worst "
              f"{100 * summary['worst_error']:.1f} %; runs of a case spread by {100 * summary['median_spread']:.1f} %")


if __name__ == "__main__":
    main()
