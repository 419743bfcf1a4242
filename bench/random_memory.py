#!/usr/bin/env python3
"""Memory of training steps drawn at random, planned and allocated, to the byte.

    bench/random_memory.py [--tests PROGRAM] [--jobs 2] [--few] [--keep]

Runs the draws of tests/ranks/random_memory_test.cpp, each a model, resolution, batch, type, optimizer, recomputation, mesh and ZeRO
stage that follows from its number: 300 on processors (--few: 30) and, where there is a GPU, 100 on it, --jobs processes at once. Prints how many
draws had a byte off on any rank. --keep writes docs/experiments/data/random-memory.json; without a GPU its row of one stays as it was."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import study

NAME = "random-memory.json"
WHERE = {"CudaRandomMemory": "{gpu}, meshes of dp, tp and sp of up to 4 ranks that share it; f32, tf32, bf16, f16, fp8",
         "RandomMemory": "processor, meshes of dp, tp, sp and pp of up to 4 ranks; f32, bf16, f16"}
COLUMNS = [{"title": "where"}] + [{"title": title, "unit": "count"} for title in ("draws", "ranks", "draws with a byte off")]


def start(args, shard, out):
    environment = {**os.environ, "GTEST_TOTAL_SHARDS": str(args.jobs), "GTEST_SHARD_INDEX": str(shard)}
    environment.pop("VITRAIL_TEST_LONG", None)
    if not args.few:
        environment["VITRAIL_TEST_LONG"] = "1"
    words = [args.tests, "--gtest_filter=*RandomMemory*", f"--gtest_output=json:{out}"]
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)


def counted(reports):
    """Draws, ranks and draws that are off, by where they ran. A test that was skipped counts nothing."""
    counts = {}
    for report in reports:
        for suite in report["testsuites"]:
            kind = suite["name"].split("/")[-1]
            for test in suite["testsuite"]:
                if test["result"] == "COMPLETED":
                    found = counts.setdefault(kind, [0, 0, 0])
                    for i, key in enumerate(("draws", "ranks", "off")):
                        found[i] += int(test[key])
    return counts


def table(counts):
    name = study.gpu().split(",")[0] or "GPU"
    return {"columns": COLUMNS, "rows": [[WHERE[kind].format(gpu=name), *counts[kind]] for kind in ("RandomMemory", "CudaRandomMemory") if kind in counts]}


def is_of_gpu(row):
    """Every other row is a GPU's, by whatever name."""
    return not row[0].startswith("processor")


def with_known(rows, known):
    """The rows, and of those that were known the one of the device that did not run now."""
    kinds = {is_of_gpu(row) for row in rows}
    return sorted(rows + [row for row in known if is_of_gpu(row) not in kinds], key=is_of_gpu)


def keep(made):
    """What is said of the GPU's row stays with it."""
    known, about = (json.loads((study.DATA / name).read_text()) for name in (NAME, "about.json"))
    note = {} if any(map(is_of_gpu, made["rows"])) else {key: about[NAME][key] for key in ("note",) if key in about[NAME]}
    made["rows"] = with_known(made["rows"], known["tables"]["draws"]["rows"])
    study.keep(NAME, {"experiment": "004: memory planned and allocated, drawn steps", "document": "memory-before-training.md",
                      "command": "bench/random_memory.py --keep", **note}, {"tables": {"draws": made}})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", default=str(study.ROOT / "build/release/test_ranks"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--few", action="store_true", help="30 draws on processors")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder) / f"{shard}.json" for shard in range(args.jobs)]
        running = [start(args, shard, out) for shard, out in enumerate(outs)]
        failed = [process.wait() for process in running]
        made = table(counted([json.loads(out.read_text()) for out in outs if out.exists()]))
    print(json.dumps(made["rows"], indent=1))
    if any(failed) or not made["rows"]:
        return 1
    if args.keep:
        keep(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
