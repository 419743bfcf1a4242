#!/usr/bin/env python3
"""Tries the faults of a build by tools/mutate sweep, each with the tests that meet it: needs Python alone.
  sweep_run.py reach FOLDER [--jobs N] [--reach FILE]
  sweep_run.py run FOLDER [--jobs N] [--reach FILE] [--results FILE] [--only PATTERN...] [--budget S] [--minutes N]
                          [--again]
  sweep_run.py report FOLDER [--reach FILE] [--results FILE] [--survivors FOLDER]
FOLDER is as mutate_run.py takes it. `reach` runs every test once without a fault and notes its seconds and what it
meets. `run` tries each fault with tests that meet it, the quickest and nearest first, until one fails, dies or hangs,
or tests of --budget seconds have passed. Results are appended to FILE; what stands there is not tried again."""
import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mutate_run

NEAR = 0.2  # the seconds of a test in the program of the fault's layer count so much of those of another
FIRST_SECONDS, GROWTH = 1.0, 3.0  # of tests in a fault's first call, and from call to call
SHARE = 60  # tests of one call of `reach`


def pinned(jobs, cores_each=2):
    """A pool whose threads, and what they start, keep to a few cores each: tests take as many threads as they see."""
    cores, next_core = sorted(os.sched_getaffinity(0)), iter(range(10**9))

    def pin():
        first = next(next_core) * cores_each
        os.sched_setaffinity(0, {cores[(first + i) % len(cores)] for i in range(cores_each)})
    return ThreadPoolExecutor(jobs, initializer=pin)


def tests_of(trials, program):
    """The names of a program's tests, as it lists them."""
    binary = trials.folder / "bin" / program
    environment = {**os.environ, "LD_LIBRARY_PATH": str(binary.parent)}
    listed = subprocess.run([binary, "--gtest_list_tests", "--gtest_filter=-*Cuda*"], cwd=trials.folder,
                            env=environment, capture_output=True, text=True, check=True).stdout
    suite, names = "", []
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if line.startswith("  "):
            names.append(suite + name.strip())
        elif name.endswith("."):
            suite = name
    return names


def parse_reach(text):
    """{test: (how it ended, seconds, faults met)} of the lines that mutate.d/sweep_listener.cpp writes."""
    rows = [line.split() for line in text.splitlines()]
    return {row[0]: (row[1], float(row[2]), [int(n) for n in row[3:]]) for row in rows if len(row) >= 3}


def reach(trials, path, jobs):
    """Runs all tests once; {program: {test: ...}} goes to `path`. Tests that stand there are not run again."""
    programs = sorted({program for layer in trials.layers.values() for program in layer["programs"]})
    found = json.loads(path.read_text()) if path.exists() else {}
    shares, lock = [], threading.Lock()
    for program in programs:
        names = [name for name in tests_of(trials, program) if name not in found.setdefault(program, {})]
        shares += [(program, names[i::-(-len(names) // SHARE)]) for i in range(-(-len(names) // SHARE))]

    def one(share):
        program, names = share
        with tempfile.TemporaryDirectory() as scratch:
            mark = Path(scratch, "reached")
            by = trials.run(program, ":".join(names), 0, 900, mark, fail_fast=False)[0]
            rows = parse_reach(mark.read_text()) if mark.exists() else {}
        with lock:
            found[program].update(rows)
            path.write_text(json.dumps(found))
        if by:
            print(f"{program}: {by} without a fault; {len(set(names) - set(rows))} tests not run", flush=True)

    with pinned(jobs) as pool:
        list(pool.map(one, shares))
    seconds = sum(test[1] for tests in found.values() for test in tests.values())
    print(f"{sum(len(tests) for tests in found.values())} tests, {seconds:.0f} s", flush=True)


def meeting(reached):
    """{fault: [(program, test, seconds)]} of tests that pass by themselves."""
    by_fault = {}
    for program, tests in reached.items():
        for test, (ended, seconds, met) in tests.items():
            for number in met if ended == "passed" else []:
                by_fault.setdefault(number, []).append((program, test, seconds))
    return by_fault


def calls_of(tests, near, budget, skipped=0):
    """[(program, tests, seconds)] to make one after another for tests (program, test, seconds), but for those that an
    earlier run has tried."""
    order = sorted(tests, key=lambda one: ((one[2] + 0.01) * (NEAR if one[0] == near else 1), one))[skipped:]
    calls, batch, batch_end, total = [], {}, FIRST_SECONDS, 0.0
    for program, test, seconds in order:
        if total and total + seconds > budget:
            break
        total += seconds
        batch.setdefault(program, []).append((test, seconds))
        if total >= batch_end:
            calls += batch.items()
            batch, batch_end = {}, batch_end * GROWTH
    calls += batch.items()
    return [(program, [test for test, _ in part], sum(seconds for _, seconds in part)) for program, part in calls]


def caught_by(trials, program, names, number, limit):
    """The test that fails, dies or hangs with a fault but not without it; None."""
    by, failed, _ = trials.run(program, ":".join(names), number, limit)
    if by and "still ran" in by:  # as everything does on a host that has got busy
        limit = max(limit, mutate_run.PATIENCE * trials.run(program, ":".join(names))[2])
        by, failed, _ = trials.run(program, ":".join(names), number, limit)
    return None if by and failed and trials.run(program, failed[0], 0, limit)[0] else by


def try_fault(trials, fault, tests, budget, record, tried=0):
    """Records what came of one fault, of whose tests so many were tried before."""
    start = time.monotonic()
    for program, names, seconds in calls_of(tests, fault["near"], budget, tried):
        limit = 15 + mutate_run.PATIENCE * seconds
        by = caught_by(trials, program, names, fault["number"], limit)
        tried += len(names)
        if by:
            return record({"fault": fault["name"], "result": "caught", "by": f"{program}: {by}",
                           "seconds": round(time.monotonic() - start, 1)})
    record({"fault": fault["name"], "result": "survived" if tests else "not reached", "by": "", "tried": tried,
            "met": len(tests), "seconds": round(time.monotonic() - start, 1)})


def run(trials, reached, args):
    path, by_fault = Path(args.results).resolve(), meeting(reached)
    known = mutate_run.read_results(path)[0]
    again = {name: row["tried"] for name, row in known.items()
             if args.again and row["result"] == "survived" and row["tried"] < row["met"]}
    left = [fault for fault in trials.faults if (fault["name"] not in known or fault["name"] in again) and any(
        fnmatch.fnmatch(fault["name"], only) or fault["layer"] == only for only in args.only or ["*"])]
    record, end = mutate_run.Recorder(path, len(left)), time.monotonic() + 60 * args.minutes
    with pinned(args.jobs) as pool:
        list(pool.map(lambda fault: time.monotonic() < end and try_fault(
            trials, fault, by_fault.get(fault["number"], []), args.budget, record, again.get(fault["name"], 0)), left))


def shown(fault, row, tests):
    """A line of a layer's file."""
    few = ", ".join(f"{program} {test}" for program, test, _ in sorted(tests, key=lambda one: one[2])[:4])
    met = f" [met by {len(tests)}: {few}]" if tests else ""
    part = f" (only {row['tried']} tried)" if row.get("tried", 0) < row.get("met", 0) else ""
    return (f"{row['result']}{part}: {fault['file']}:{fault['line']}: {fault['from']} => {fault['to'] or 'left out'}"
            f"   in: {fault['text']}{met}")


def report(trials, reached, args):
    results, by_fault = mutate_run.read_results(Path(args.results))[0], meeting(reached)
    print("| layer | faults | not reached | caught | survived | not tried |\n|---|---|---|---|---|---|")
    for layer in sorted({fault["layer"] for fault in trials.faults}):
        rows = [(fault, results.get(fault["name"], {"result": "not tried"})) for fault in trials.faults
                if fault["layer"] == layer]
        found = [row["result"] for _, row in rows]
        counts = " | ".join(str(found.count(one)) for one in ("not reached", "caught", "survived", "not tried"))
        print(f"| {layer} | {len(rows)} | {counts} |")
        if args.survivors:
            lines = [shown(fault, row, by_fault.get(fault["number"], [])) for fault, row in rows
                     if row["result"] in ("survived", "not reached")]
            target = Path(args.survivors, layer.replace("/", "_") + ".txt")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("".join(line + "\n" for line in sorted(lines)))
    caught = sum(row["result"] == "caught" for row in results.values())
    print(f"sweep: {caught} of {len(results)} faults caught ({100 * caught / max(1, len(results)):.0f} %)")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["reach", "run", "report"])
    parser.add_argument("folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--reach", default="reach.json", help="what tests meet, written by reach")
    parser.add_argument("--results", default="sweep.jsonl")
    parser.add_argument("--only", nargs="+", help="layers or names, * allowed")
    parser.add_argument("--budget", type=float, default=60, help="seconds of tests for a fault")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no trial later than that")
    parser.add_argument("--again", action="store_true", help="go on with survivors that tests are left for")
    parser.add_argument("--survivors", help="a folder for a list a layer")
    args = parser.parse_args(arguments)
    trials, path = mutate_run.Trials(mutate_run.unpacked(args.folder)), Path(args.reach)
    if args.command == "reach":
        return reach(trials, path.resolve(), args.jobs)
    return {"run": run, "report": report}[args.command](trials, json.loads(path.read_text()), args)


if __name__ == "__main__":
    sys.exit(main())
