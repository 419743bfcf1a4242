#!/usr/bin/env python3
"""Why ranks of one host wait for each other: every update of every rank, and of copies that exchange nothing, on the same cores.

    bench/update_jitter.py [--vitrail PROGRAM] [--ranks 16] [--batch 64] [--updates 30] [--sides threads mpi ...] [--json FILE]

1. The machine without us: arithmetic, and copies of memory, by one process and by one on each core. "Slowest" is the expected
   slowest of so many, each drawn from the times of its own core: what waiting costs there, whatever is computed.
2. One copy alone and one on each core (`bench train`, one thread), with a rank's share of the images and with twice as many: the part of
   an update that does not depend on images is the optimizer's way through memory.
3. The ranks. A rank's work is its update less what it spends within collectives.
Of each side: the mean of the work; the slowest rank by its mean (a core that is always slow: shares of its own would help); the slowest of each
update if all ranks had the same mean (jitter: nothing but fewer exchanges helps); both together, which is the least that a synchronous
update takes; the same of 4 updates in a row (does it average out?); the update as it was. With 16 ranks about 80 s; --json keeps all times."""
import argparse
import collections
import ctypes
import json
import mmap
import multiprocessing
import os
import platform
import random
import resource
import shutil
import statistics
import sys
import time
from pathlib import Path

import study
from compare_ranks import MODEL, MPIRUN, SIDES, WAYS
from rank_copies import exit_when_ended, last_json, run_together

ON_RANKS = [name for name in SIDES if name.startswith(("threads", "mpi"))]
USUAL = ["threads", "threads_zero", "mpi", "mpi_zero"]
CHUNK_S = 0.02
COPIED = 32 << 20


def seat_reader():
    """A function that returns the processor and the memory node by the processor's own word (rdtscp), which no sandbox translates; none elsewhere."""
    if platform.machine() != "x86_64" or "rdtscp" not in Path("/proc/cpuinfo").read_text():
        return lambda: None
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\x0f\x01\xf9\x89\xc8\xc3")  # rdtscp; mov eax, ecx; ret
    call = ctypes.CFUNCTYPE(ctypes.c_uint)(ctypes.addressof(ctypes.c_char.from_buffer(page)))

    def seat(page=page):  # which must outlast the calls
        word = call()
        return word & 0xfff, word >> 12
    return seat


def arithmetic():
    number = (1 << 24000) - 12345
    return lambda: number * number


def copying():
    source, target = bytearray(COPIED), bytearray(COPIED)

    def run():
        target[:] = source
    run()
    return run


PROBES = {"arithmetic": arithmetic, "copies of memory": copying}


def probe_one(kind, core, calls, seconds, barrier, pipe):
    """Times chunks of so many calls on one core."""
    os.sched_setaffinity(0, {core})
    work, seat, times, seats = PROBES[kind](), seat_reader(), [], collections.Counter()
    barrier.wait()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(calls):
            work()
        times.append(time.perf_counter() - start)
        seats[seat()] += 1
    pipe.send((times, sorted(place for place in seats if place)))


def probe(kind, cores, calls, seconds):
    """The times of chunks and the processors seen, by core."""
    fork = multiprocessing.get_context("fork")
    barrier, pipes, running = fork.Barrier(len(cores)), [], []
    for core in cores:
        here, there = fork.Pipe(False)
        running.append(fork.Process(target=probe_one, args=(kind, core, calls, seconds, barrier, there)))
        running[-1].start()
        there.close()  # the end of a process is then seen
        pipes.append(here)
    found = [pipe.recv() for pipe in pipes]
    for process in running:
        process.join()
    return [times for times, _ in found], [seats for _, seats in found]


def calls_of(kind):
    """So many calls take CHUNK_S on a core that has nothing else to do."""
    work, count, start = PROBES[kind](), 0, time.perf_counter()
    while time.perf_counter() - start < 5 * CHUNK_S:
        work()
        count += 1
    return max(1, count // 5)


def slowest_drawn(rows, draws=4000):
    """The times of the slowest of one draw from each row."""
    dice = random.Random(1)
    return [max(dice.choice(row) for row in rows) for _ in range(draws)]


def of_four(row):
    return [statistics.fmean(row[at:at + 4]) for at in range(0, len(row) - 3, 4)] or row


def follows(row):
    """How far an update is like the one before it: 1 always, 0 not at all."""
    mean = statistics.fmean(row)
    square = sum((x - mean) ** 2 for x in row)
    return sum((a - mean) * (b - mean) for a, b in zip(row, row[1:])) / square if square else 0.0


def spread(rows, together):
    """What a side's times say. `rows`: those of each rank, one an update, in the same update where they are `together`; else any go with any."""
    means = [statistics.fmean(row) for row in rows]
    mean = statistics.fmean(means)
    level = [[x - own + mean for x in row] for row, own in zip(rows, means)]

    def slowest(some):
        return [max(column) for column in zip(*some)] if together else slowest_drawn(some)
    each, four = slowest(rows), slowest([of_four(row) for row in rows])
    found = {"mean": mean, "slowest_rank": max(means), "by_jitter": statistics.fmean(slowest(level)), "floor": statistics.fmean(each),
             "floor_median": statistics.median(each), "floor_of_four": statistics.fmean(four),
             "between": statistics.pstdev(means) / mean, "within": statistics.fmean(statistics.pstdev(row) for row in rows) / mean,
             "follows": statistics.fmean(follows(row) for row in rows)}
    if together:
        columns = list(zip(*rows))
        found["all_at_once"] = statistics.pstdev(statistics.fmean(column) for column in columns) / mean
        found["slowest_how_often"] = collections.Counter(column.index(max(column)) for column in columns).most_common()
    return found


def counted():
    """What the system counts: jiffies stolen and in all, periods in which the group's quota was used up, and of processes that ended
    their switches against their will, page faults and time in the kernel."""
    jiffies = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    usage, quota = resource.getrusage(resource.RUSAGE_CHILDREN), Path("/sys/fs/cgroup/cpu.stat")
    throttled = [int(line.split()[1]) for line in quota.read_text().splitlines() if line.startswith("nr_throttled")] if quota.exists() else []
    return {"stolen": jiffies[7] if len(jiffies) > 7 else 0, "jiffies": sum(jiffies[:8]), "throttled": sum(throttled), "switched": usage.ru_nivcsw,
            "slept": usage.ru_nvcsw, "faults": usage.ru_minflt, "user_s": usage.ru_utime, "kernel_s": usage.ru_stime}


class Report:
    """Runs one measurement after another; each is a line as soon as it is known, and a part of the JSON."""

    def __init__(self, args):
        self.args, self.kept, self.began = args, {"made": study.made(), "kernel": platform.release(), "rows": {}}, time.monotonic()

    def row(self, name, run, together):
        """`run` returns the times of each rank and whatever else is to be kept."""
        before = counted()
        try:
            rows, extra = run()
        except (RuntimeError, ValueError, KeyError, OSError, EOFError) as problem:
            print(f"{name}: left out: {problem}", flush=True)
            return None
        counts = {key: value - before[key] for key, value in counted().items()}
        found = {**spread(rows, together), **extra, "counts": counts, "times": rows}
        self.kept["rows"][name] = found
        print(tell(name, found), flush=True)
        if self.args.json:
            Path(self.args.json).write_text(json.dumps(self.kept) + "\n")
        return found


def shares(found):
    """The columns that all rows have: ms, and times of the mean."""
    mean = found["mean"]
    return (f"{1e3 * mean:7.1f} | {found['slowest_rank'] / mean:5.2f} | {found['by_jitter'] / mean:5.2f} | {found['floor'] / mean:5.2f} | "
            f"{found['floor_of_four'] / mean:5.2f} | {100 * found['between']:5.1f} % | {100 * found['within']:5.1f} % | {found['follows']:5.2f}")


def tell(name, found):
    """A row of the table: times of the mean; then what is known of ranks alone, and of the system."""
    counts = found["counts"]
    line = f"| {name:22} | {shares(found)} | "
    if "update" in found:
        often = ", ".join(f"{rank} {count}x" for rank, count in found["slowest_how_often"][:4])
        line += f"{1e3 * found['update']:6.1f} | {100 * found['exposed']:4.1f} % | {100 * found['all_at_once']:4.1f} % | {often} | "
    else:
        line += " | | | | "
    used = counts["user_s"] + counts["kernel_s"]
    return line + (f"{100 * counts['stolen'] / max(1, counts['jiffies']):.1f} % | {counts['throttled']} | {counts['switched']} | "
                   f"{100 * counts['kernel_s'] / used if used else 0:.0f} % |")


TITLES = ["", "mean ms", "slow rank", "jitter", "both", "of four", "between", "within", "follows", "update ms", "exposed", "all at once",
          "slowest rank", "stolen", "throttled", "switched", "in kernel"]


def machine_facts(cores):
    words = [study.machine(), f"kernel {platform.release()}" + (" (gVisor: binding has no effect)" if platform.release() == "4.4.0" else "")]
    for name, path in (("quota", "/sys/fs/cgroup/cpu.max"), ("huge pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
                       ("threads of core 0", f"/sys/devices/system/cpu/cpu{cores[0]}/topology/thread_siblings_list"),
                       ("memory nodes", "/sys/devices/system/node/online")):
        if Path(path).exists():
            words.append(f"{name} {Path(path).read_text().strip()}")
    return "; ".join(words)


def probes(report, cores, seconds):
    """What the cores give to work that is none of ours."""
    for kind in PROBES:
        calls, seen = calls_of(kind), []

        def run(which, share=1.0, kind=kind, calls=calls, seen=seen):
            rows, seats = probe(kind, which, calls, share * seconds)
            seen[:] = seats
            return rows, {"seats": seats}
        report.row(f"{kind}, one", lambda run=run: run(cores[:1], 0.5), False)
        for other in sorted({1, len(cores) // 2} if len(cores) > 2 else ()):
            report.row(f"{kind}, 0 and {other}", lambda run=run, other=other: run([cores[0], cores[other]], 0.25), False)
        report.row(f"{kind}, {len(cores)}", lambda run=run: run(cores), False)
    nodes = sorted({place[1] for seats in seen for place in seats})
    if nodes:
        print(f"\nA process that is bound to one core ran on {statistics.fmean(len(seats) for seats in seen):.1f} processors on average, "
              f"all of them on {len({place[0] for seats in seen for place in seats})}, memory nodes {nodes}.\n", flush=True)


def bench(args, batch, *words):
    return [args.vitrail, "bench", "train", *MODEL, "--batch", str(batch), "--threads", "1", "--steps", str(args.updates), "--json", *words]


def copies(args, cores, batch):
    """The updates of copies, one a core, while all of them were running: the first and the last have the machine to themselves."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        found = run_together(bench(args, batch), len(cores), args.timeout)
    finally:
        os.sched_setaffinity(0, before)
    first = max(result["began_s"] for result in found)
    last = min(result["began_s"] + sum(result["ms_each"]) / 1e3 for result in found)
    rows, all_updates = [], 0
    for result in found:
        at, row = result["began_s"], []
        for seconds in (ms / 1e3 for ms in result["ms_each"]):
            row += [seconds] if at >= first and at + seconds <= last + 1e-9 else []
            at += seconds
        rows.append(row)
        all_updates += len(result["ms_each"])
    if min(len(row) for row in rows) < 4:
        raise ValueError(f"copies ran together for {last - first:.2f} s: --updates")
    of_all = statistics.fmean(statistics.median(result["ms_each"]) for result in found) / 1e3
    return rows, {"kept": sum(len(row) for row in rows) / all_updates, "median_of_all": of_all}


def exchanging(args, name):
    """The work of each rank in every update, and the updates."""
    by, _, way = name.partition("_")
    command = bench(args, args.batch // args.ranks, *WAYS["_" + way if way else ""])
    found = last_json([*command, "--ranks", str(args.ranks)] if by == "threads" else [*MPIRUN, "-n", str(args.ranks), *command], args.timeout)
    updates = found["update_s"]["each"]
    total = statistics.fmean(updates)
    work = statistics.fmean(statistics.fmean(row) for row in found["compute_s"])
    return found["compute_s"], {"update": total, "update_median": statistics.median(updates), "exposed": 1 - work / total,
                                "updates": updates, "timing": found["timing"]}


def sums_alone(args):
    """Milliseconds of an all-reduce of 22 MB by itself, by transport."""
    words = [args.vitrail, "bench", "dist", "--seconds", "1", "--json"]
    commands = {"threads": [*words, "--ranks", str(args.ranks)], "mpi": [*MPIRUN, "-n", str(args.ranks), *words]}
    found = {}
    for by, command in commands.items():
        if any(side.startswith(by) for side in args.sides) and (by == "threads" or shutil.which("mpirun")):
            found[by] = last_json(command, args.timeout)[by]["ms_median"]
    return found


def line_through(rows, names, images):
    """(what an update takes without images, what an image takes) by two rows, in ms."""
    few, many = (1e3 * rows[name]["mean"] for name in names)
    return 2 * few - many, (many - few) / images


def conclude(rows, ranks, batch):
    """The parts of an update one by one."""
    images = batch // ranks
    for who in ("one copy", f"{ranks} copies"):
        names = [f"{who}, {count} images" for count in (images, 2 * images)]
        if all(name in rows for name in names):
            fixed, each = line_through(rows, names, images)
            print(f"{who}: {fixed:.1f} ms an update and {each:.1f} ms an image")
    for name, row in rows.items():
        if "kept" in row and row["kept"] < 1:
            print(f"{name}: {100 * row['kept']:.0f} % of their updates were made while all ran; {1e3 * row['mean']:.1f} ms, by the medians of "
                  f"all {1e3 * row['median_of_all']:.1f} ms")
    base = rows.get(f"{ranks} copies, {images} images")
    for name, row in rows.items():
        if "update" not in row or not base:
            continue
        parts = {"a copy's update": base["mean"], "more work than a copy": row["mean"] - base["mean"],
                 "slow ranks": row["slowest_rank"] - row["mean"], "jitter": row["floor"] - row["slowest_rank"],
                 "exchange": row["update"] - row["floor"]}
        print(f"{name}: {1e3 * row['update']:.1f} ms = " + " + ".join(f"{1e3 * seconds:.1f} {part}" for part, seconds in parts.items()) +
              f"; {100 * base['mean'] / row['update']:.0f} % of {ranks} copies, where their own times allow {100 * base['mean'] / base['floor']:.0f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default=str(study.ROOT / "build/release/vitrail"))
    parser.add_argument("--ranks", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--batch", type=int, default=64, help="images of an update, of all ranks")
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--sides", nargs="*", choices=ON_RANKS, default=USUAL, help="of the ranks")
    parser.add_argument("--seconds", type=float, default=2, help="of each look at the machine; 0: none")
    parser.add_argument("--timeout", type=float, default=120, help="seconds of one run")
    parser.add_argument("--json", help="a file for all times")
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:args.ranks]
    if len(cores) < args.ranks or args.batch < args.ranks:
        sys.exit(f"{args.ranks} ranks want as many cores and images: here are {len(cores)} cores, {args.batch} images")
    exit_when_ended()
    report, images = Report(args), args.batch // args.ranks
    print(machine_facts(cores) + "\n\n| " + " | ".join(TITLES) + " |\n|" + "---|" * len(TITLES), flush=True)
    if args.seconds > 0:
        probes(report, cores, args.seconds)
    for alone in (True, False):
        for share in (1, 2):
            name = f"{'one copy' if alone else f'{args.ranks} copies'}, {share * images} images"
            report.row(name, lambda alone=alone, share=share: copies(args, cores[:1] if alone else cores, share * images), False)
    for name in args.sides:
        if name.startswith("threads") or shutil.which("mpirun"):
            report.row(name, lambda name=name: exchanging(args, name), True)
    print("\nan all-reduce of 22 MB by itself: " + ", ".join(f"{by} {ms:.1f} ms" for by, ms in sums_alone(args).items()), flush=True)
    conclude(report.kept["rows"], args.ranks, args.batch)
    print(f"{time.monotonic() - report.began:.0f} s in all")


if __name__ == "__main__":
    main()
