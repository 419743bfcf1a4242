#!/usr/bin/env python3
"""Tries every fault of a build by tools/mutate: needs Python alone, so a packed folder can be taken to a faster host.
  mutate_run.py run FOLDER [--jobs N] [--results FILE] [--only PATTERN...] [--nearest N] [--minutes N] [--again]
                           [--near FILE] [--shards N]
  mutate_run.py table FOLDER [--results FILE]
FOLDER holds faults.json, the test programs under bin/ and the files they read; or pack.tar.xz with all that, which is
unpacked beside it. First every program runs without a fault: tests that fail then are told and left out. A fault is
caught when a test fails, the program dies or hangs. Results are appended to FILE, a line each; what stands there is
not tried again, but for survivors with --again. --near names a JSON of {pattern of a source: filter}, tests to
try instead of the layer's (--again without it then tries survivors with all); --shards runs a program as so many processes."""
import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FAILED = re.compile(r"^\[  FAILED  \] ([^\s,]+\.[^\s,]+)", re.MULTILINE)
STARTED = re.compile(r"^\[ RUN      \] (\S+)", re.MULTILINE)
PATIENCE, LEAST_SECONDS = 5, 60  # times a program's own duration, and no less than so many seconds


class Trials:
    """The programs of a folder, run with a fault or without."""

    def __init__(self, folder, shards=1, near=None):
        self.folder, self.shards, self.near = Path(folder), shards, near or {}
        facts = json.loads((self.folder / "faults.json").read_text())
        self.layers, self.faults = facts["layers"], facts["faults"]
        self.durations, self.broken = {}, {}
        programs = sorted({program for layer in self.layers.values() for program in layer["programs"]})
        missing = [program for program in programs if not (self.folder / "bin" / program).exists()]
        if missing:
            print(f"not built, so faults may survive that they would catch: {', '.join(missing)}", flush=True)
        for layer in self.layers.values():
            layer["programs"] = [program for program in layer["programs"] if program not in missing]

    def run(self, *args, **options):
        """(what failed or None, all that failed, seconds) of one program, whose shards run at once."""
        if self.shards == 1:
            return self.run_shard(0, *args, **options)
        start = time.monotonic()
        with ThreadPoolExecutor(self.shards) as pool:
            done = list(pool.map(lambda shard: self.run_shard(shard, *args, **options), range(self.shards)))
        return (next((by for by, _, _ in done if by), None), [name for _, failed, _ in done for name in failed],
                time.monotonic() - start)

    def run_shard(self, shard, program, test_filter, fault=0, seconds=None, reached=None, fail_fast=True):
        """What `run` returns, of every so many of the program's tests."""
        programs = self.folder / "bin"  # and the libraries that came with them
        libraries = ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), str(programs)]))
        environment = {**os.environ, "VT_FAULT": str(fault), "VT_FAULT_REACHED": str(reached or ""),
                       "LD_LIBRARY_PATH": libraries, "GTEST_TOTAL_SHARDS": str(self.shards),
                       "GTEST_SHARD_INDEX": str(shard)}
        command = [str(programs / program), f"--gtest_filter={test_filter}"]
        if fail_fast:
            command.append("--gtest_fail_fast")
        start = time.monotonic()
        with tempfile.TemporaryFile() as log:
            try:
                done = subprocess.run(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                      stderr=subprocess.STDOUT, timeout=seconds)
                ended = None if done.returncode == 0 else f"ended with status {done.returncode}"
            except subprocess.TimeoutExpired:
                ended = f"still ran after {seconds:.0f} s"
            log.seek(0)
            text = log.read().decode(errors="replace")
        failed = list(dict.fromkeys(FAILED.findall(text)))
        if ended and not failed:
            begun = STARTED.findall(text)
            failed = begun[-1:]
            return f"{begun[-1] if begun else 'it'} {ended}", failed, time.monotonic() - start
        return failed[0] if failed else None, failed, time.monotonic() - start

    def filter_of(self, fault):
        """The first of --near that fits the fault's source, or else its layer's."""
        return next((tests for pattern, tests in self.near.items() if fnmatch.fnmatch(fault["file"], pattern)),
                    self.layers[fault["layer"]]["filter"])

    def without_broken(self, wanted, program):
        """A filter without tests that fail by themselves."""
        without = self.broken.get((program, wanted))
        return wanted + (":" if "-" in wanted else "-") + ":".join(without) if without else wanted

    def try_fault(self, fault, record):
        layer, wanted = self.layers[fault["layer"]], self.filter_of(fault)
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            mark = Path(scratch, "reached")
            for program in sorted(layer["programs"], key=lambda one: self.durations[one, wanted]):
                test_filter = self.without_broken(wanted, program)
                limit = max(LEAST_SECONDS, PATIENCE * self.durations[program, wanted])
                by, failed, _ = self.run(program, test_filter, fault["number"], limit, mark)
                # A test that also fails without the fault shows nothing.
                if by and (not failed or not self.run(program, failed[0], 0, limit)[0]):
                    return record({"fault": fault["name"], "result": "caught", "by": f"{program}: {by}",
                                   "seconds": round(time.monotonic() - start, 1)})
                if by:
                    print(f"{program}: {failed[0]} fails now and then, fault or none", flush=True)
            met = mark.exists() or layer.get("device", False)
        record({"fault": fault["name"], "result": "survived" if met else "not reached", "by": "",
                "seconds": round(time.monotonic() - start, 1)})


def read_results(path):
    """The last line of every fault and every program without one."""
    faults, baseline = {}, {}
    for line in path.read_text().splitlines() if path.exists() else []:
        row = json.loads(line)
        if "fault" in row:
            faults[row["fault"]] = row
        else:
            baseline[row["program"], row["filter"]] = row
    return faults, baseline


class Recorder:
    def __init__(self, path, total):
        self.path, self.total, self.done, self.lock = path, total, 0, threading.Lock()

    def __call__(self, row):
        with self.lock, self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
            self.done += 1
            what = row.get("fault") or f"{row['program']} {row['filter']} without a fault"
            print(f"[{self.done}/{self.total}] {what}: {row['result']} {row.get('by', '')}", flush=True)


def run_baseline(trials, needed, known, path, jobs):
    """Every (program, filter) without a fault; what fails is left out of all trials."""
    record = Recorder(path, len([one for one in needed if one not in known]))

    def one(pair):
        by, failed, seconds = trials.run(*pair, seconds=1800, fail_fast=False)
        record({"program": pair[0], "filter": pair[1], "result": "fails" if by else "passes", "by": by or "",
                "failed": failed, "seconds": round(seconds, 1)})

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, [pair for pair in needed if pair not in known]))
    for pair, row in read_results(path)[1].items():
        trials.durations[pair] = row["seconds"]
        if row["result"] != "passes":
            if not row["failed"]:
                raise SystemExit(f"{pair[0]} {row['by']} without any fault: nothing can be said")
            trials.broken[pair] = row["failed"]
            print(f"{pair[0]}: left out, since they fail without a fault: {', '.join(row['failed'])}", flush=True)


def unpacked(folder):
    folder = Path(folder).resolve()
    archive = folder / "pack.tar.xz"
    if not archive.exists():
        return folder
    target = folder / "unpacked"
    if not (target / "faults.json").exists():
        with tarfile.open(archive) as packed:
            packed.extractall(target)
    return target


def run(args):
    trials = Trials(unpacked(args.folder), args.shards, json.loads(Path(args.near).read_text()) if args.near else {})
    for layer in trials.layers.values():
        layer["programs"] = layer["programs"][:args.nearest]
    path = Path(args.results).resolve()
    faults, baseline = read_results(path)
    chosen = [fault for fault in trials.faults
              if any(fnmatch.fnmatch(fault["name"], only) or fnmatch.fnmatch(fault["layer"], only)
                     for only in args.only or ["*"])]
    settled = {name for name, row in faults.items() if row["result"] == "caught" or not args.again}
    left = [fault for fault in chosen if fault["name"] not in settled]
    needed = sorted({(program, trials.filter_of(fault)) for fault in left
                     for program in trials.layers[fault["layer"]]["programs"]})
    run_baseline(trials, needed, baseline, path, args.jobs)
    record, end = Recorder(path, len(left)), time.monotonic() + 60 * args.minutes
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda fault: time.monotonic() < end and trials.try_fault(fault, record), left))
    return show(trials.faults, path)


def print_tables(faults, results):
    """Markdown: how many of each layer, then every fault."""
    rows = [(fault, results.get(fault["name"], {"result": "not tried", "by": ""})) for fault in faults]
    print("| layer | faults | caught | survived | not reached | not tried |\n|---|---|---|---|---|---|")
    for layer in dict.fromkeys(fault["layer"] for fault in faults):
        found = [row["result"] for fault, row in rows if fault["layer"] == layer]
        counts = " | ".join(str(found.count(one)) for one in ("caught", "survived", "not reached", "not tried"))
        print(f"| {layer} | {len(found)} | {counts} |")
    print("\n| layer | fault | result | by |\n|---|---|---|---|")
    for fault, row in rows:
        print(f"| {fault['layer']} | {fault['name']} | {row['result']} | {row['by'].replace(': ', ' ', 1)} |")
    print()


def show(faults, path, tables=False):
    """What came of all faults so far; 1 when one got through."""
    results = read_results(path)[0]
    if tables:
        print_tables(faults, results)
    tried = [fault for fault in faults if fault["name"] in results]
    missed = [fault for fault in tried if results[fault["name"]]["result"] != "caught"]
    for fault in missed:
        print(f"{fault['layer']}: {fault['name']} {results[fault['name']]['result']}: {fault['file']}:{fault['line']}: "
              f"{fault['from']} became {fault['to']}")
    share = 100 * (len(tried) - len(missed)) / max(1, len(tried))
    print(f"mutate: {len(tried) - len(missed)} of {len(tried)} faults caught ({share:.0f} %), "
          f"{len(faults) - len(tried)} not tried")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="try the faults")
    runs.add_argument("folder")
    runs.add_argument("--jobs", type=int, default=os.cpu_count())
    runs.add_argument("--results", default="mutate.jsonl")
    runs.add_argument("--only", nargs="+", help="names of faults or layers, * allowed")
    runs.add_argument("--nearest", type=int, help="only so many of a layer's programs, the nearest")
    runs.add_argument("--minutes", type=float, default=float("inf"), help="begin no trial later than that")
    runs.add_argument("--again", action="store_true", help="try survivors once more")
    runs.add_argument("--near", help="filters by source, a JSON")
    runs.add_argument("--shards", type=int, default=1, help="processes of a program at once")
    table = commands.add_parser("table", help="what came of it")
    table.add_argument("folder")
    table.add_argument("--results", default="mutate.jsonl")
    args = parser.parse_args()
    if args.command == "run":
        return run(args)
    return show(Trials(unpacked(args.folder)).faults, Path(args.results), tables=True)


if __name__ == "__main__":
    sys.exit(main())
