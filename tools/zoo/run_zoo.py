#!/usr/bin/env python3
"""Gives every model of a zoo (make_zoo.py) to `vitrail predict` and says whether it answers as the library does.

run_zoo.py ZOO [--vitrail PROGRAM] [--only WORD] [--verbose]

equal                the library's probabilities, logits or features
WRONG                other numbers, or an answer where the library has no plain ViT
refused rightly      no plain ViT, refused under a name that fits
REFUSED MISNAMED     no plain ViT, refused under a name that does not
REFUSED WRONGLY      a plain ViT that the library loads
CRASHED              anything but an answer or a refusal
Ends with 0 when there is nothing in capitals.
"""
import argparse
import collections
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGE = ROOT / "examples" / "images" / "chelsea.png"
PROBABILITY, RELATIVE = 2e-5, 2e-4  # of a probability; of logits and features against the largest of them
REFUSALS = (64, 65)


def predict(program, case, folder, *options):
    command = [program, "predict", "-m", str(folder / case["model"]), *case["args"], "--json", "--threads", "1",
               "--quiet", *options, str(IMAGE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    answer = json.loads(done.stdout.splitlines()[0]) if done.returncode == 0 else None
    return done.returncode, answer, done.stderr.strip()


def furthest(found, wanted):
    if len(found) != len(wanted):
        return float("inf")
    return max((abs(a - b) for a, b in zip(found, wanted)), default=0.0)


def compare(program, case, folder):
    """The verdict, and a word on it."""
    wants_answer = case["kind"] == "answer"
    embed = wants_answer and case["features"] is not None
    status, answer, message = predict(program, case, folder, *(["--embed"] if embed else ["-k", "4000000"]))
    if status == 0 and not wants_answer:
        return "WRONG", "answered, though it is no plain ViT"
    if status != 0:
        if status not in REFUSALS:
            return "CRASHED", f"exit {status}: {message}"
        if wants_answer:
            return "REFUSED WRONGLY", message
        said = message.replace(str(folder), "").lower()  # the folder is called after what it holds
        named = any(name.lower() in said for name in case["names"])
        return ("refused rightly" if named else "REFUSED MISNAMED"), message
    if embed:
        return numbers_verdict(answer["embedding"], case["features"], "features")
    found = {row["class"]: row["prob"] for row in answer["top"]}
    gap = furthest([found[i] for i in sorted(found)], case["probabilities"])
    if gap > PROBABILITY:
        return "WRONG", f"probabilities off by {gap:.3g}"
    _, answer, _ = predict(program, case, folder, "--logits")
    return numbers_verdict(answer["logits"], case["logits"], f"probabilities within {gap:.1g}, logits")


def numbers_verdict(found, wanted, what):
    gap = furthest(found, wanted) / max(1.0, max(map(abs, wanted), default=0.0))
    return ("WRONG" if gap > RELATIVE else "equal"), f"{what} off by {gap:.3g} of the largest"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("zoo", type=Path)
    parser.add_argument("--vitrail", default=str(ROOT / "build" / "release" / "vitrail"))
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true", help="a line for every model")
    options = parser.parse_args()
    counts, bad = collections.Counter(), 0
    for file in sorted(options.zoo.glob("*/case.json")):
        case = json.loads(file.read_text())
        if options.only not in case["name"]:
            continue
        verdict, word = compare(options.vitrail, case, file.parent)
        counts[verdict] += 1
        bad += verdict != verdict.lower()
        if options.verbose or verdict != verdict.lower():
            print(f"{verdict:17} {case['name']}: {' '.join(word.split())[:400]}", flush=True)
    print("\n".join(f"{count:5} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if bad or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
