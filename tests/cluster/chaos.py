#!/usr/bin/env python3
"""Faults of ranks, networks and disks, row by row and drawn by a seed: what was done, how often, and how often it was met.

chaos.py VITRAIL CONFIG --seed S [--only D4,D5] [--tries ci|n|NUMBER] [--limit MINUTES] [--minutes M] [--every SECONDS] [--json FILE]

The rows are D1 to D13 of docs/reliability.md (chaos_rows.py, chaos_run.py). A try is drawn from the seed, its row and its number, so that
a seed brings the same faults again, whatever else runs. `ci` and `n` are each row's own counts. --limit ends every row after that
time, whatever its count. D12 is one run of --minutes (5) with a fault every so many seconds (300). A row that this machine
cannot make is skipped by name. Network namespaces, mounts and processes that were made are gone at the end, whatever happened. Prints
a table; 0 when every try held."""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from chaos_rows import ROWS  # noqa: E402
from faults import RankFaults  # noqa: E402
from jobs import Broken, Nodes, processes  # noqa: E402


class Chaos(RankFaults):
    """What the tries of all rows share."""

    def __init__(self, args, work):
        super().__init__(os.path.abspath(args.vitrail), os.path.abspath(args.config), work)
        self.args, self.made, self.nodes_lock = args, [], threading.Lock()
        self.stopping = False

    def nodes(self):
        """A pair of nodes of its own, gone at the end of the `with`."""
        with self.nodes_lock:
            self.made.append(Nodes(f"vtc{os.getpid() % 4096:x}{chr(97 + len(self.made) % 26)}"))
            return self.made[-1]

    def clean(self):
        """Ends what is left of all tries, and lets none begin."""
        self.stopping = True
        for pid in processes(str(self.work)):
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for mount in sorted((m for m in mounts if m.startswith(str(self.work))), reverse=True):
            subprocess.run(["umount", "--lazy", mount], check=False)
        for nodes in self.made:
            nodes.__exit__()


class Tally:
    """The tries of one row."""

    def __init__(self, row):
        self.row, self.kinds, self.failures, self.notes = row, {}, [], []
        self.lock, self.seconds = threading.Lock(), 0.0

    def add(self, kind, failure=None, note=None):
        with self.lock:
            count = self.kinds.setdefault(kind, [0, 0])
            count[0] += 1
            count[1] += failure is None
            if failure:
                self.failures.append(f"{kind}: {failure}")
            if note:
                self.notes.append(note)

    def tries(self):
        return sum(count for count, _ in self.kinds.values())

    def passed(self):
        return sum(good for _, good in self.kinds.values())

    def as_json(self):
        return {"row": self.row.name, "fault": self.row.fault, "aim": self.row.n, "tries": self.tries(), "passed": self.passed(),
                "kinds": {kind: {"tries": count, "passed": good} for kind, (count, good) in sorted(self.kinds.items())},
                "failures": self.failures, "notes": self.notes, "seconds": round(self.seconds, 1)}


def run_row(chaos, row, args):
    """Makes a row's tries, some at a time."""
    tally, started = Tally(row), time.monotonic()
    count = {"ci": row.ci, "n": row.n}.get(args.tries) or int(args.tries)

    def attempt(number):
        if chaos.stopping or time.monotonic() - started > 60 * args.limit:
            return
        draw = random.Random(f"{args.seed}/{row.name}/{number}")
        kind = row.kinds[number % len(row.kinds)]
        try:
            tally.add(kind, note=row.attempt(chaos, kind, draw))
        except (Broken, OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
            tally.add(kind, failure=f"try {number}: {error}")
        print(f"{row.name} try {number + 1} of {count}, {kind}: {tally.passed()} of {tally.tries()} passed, "
              f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(args.jobs or row.jobs) as pool:
        try:
            list(pool.map(attempt, range(1 if row.name == "D12" and args.tries != "n" else count)))
        except BaseException:
            chaos.clean()  # tries that wait for their jobs end with them
            raise
    tally.seconds = time.monotonic() - started
    return tally


def show(results, skipped):
    print("| row | fault | tries | passed | seconds | kinds |\n|---|---|---|---|---|---|")
    for one in results:
        kinds = ", ".join(f"{kind} {c['passed']}/{c['tries']}" for kind, c in one["kinds"].items())
        print(f"| {one['row']} | {one['fault']} | {one['tries']} of {one['aim']} | {one['passed']} | {one['seconds']} | {kinds} |")
    for name, why in skipped.items():
        print(f"| {name} | skipped: {why} | | | | |")
    for one in results:
        for line in [f"note: {note}" for note in one["notes"]] + [f"FAILED: {failure}" for failure in one["failures"]]:
            print(f"{one['row']}: {line}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vitrail", nargs="?", default="build/release/vitrail")
    parser.add_argument("config", nargs="?", default=str(Path(__file__).resolve().parent.parent / "faults/kill_run.json"))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--only", default="", help="rows, as D4,D5")
    parser.add_argument("--tries", default="ci", help="ci, n, or how many of each row")
    parser.add_argument("--limit", type=float, default=1e6, help="minutes after which a row begins no further try")
    parser.add_argument("--minutes", type=float, default=5, help="the length of D12's run")
    parser.add_argument("--every", type=float, default=300, help="seconds between two faults of D12, on average")
    parser.add_argument("--jobs", type=int, help="tries at a time; else each row's own number")
    parser.add_argument("--json", help="a file for the results")
    return parser.parse_args()


def main():
    args = arguments()
    wanted = [name for name in args.only.split(",") if name]
    if unknown := set(wanted) - {row.name for row in ROWS}:
        sys.exit(f"chaos: no row {', '.join(sorted(unknown))}; there are {', '.join(row.name for row in ROWS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    results, skipped = [], {}
    with tempfile.TemporaryDirectory(prefix="vitrail-chaos-") as work:
        chaos = Chaos(args, Path(work))
        try:
            for row in ROWS:
                if wanted and row.name not in wanted:
                    continue
                if why := row.lacks(chaos):
                    skipped[row.name] = why
                    continue
                results.append(run_row(chaos, row, args).as_json())
        finally:
            chaos.clean()
    print(f"seed {args.seed}, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    show(results, skipped)
    if args.json:
        Path(args.json).write_text(json.dumps({"seed": args.seed, "rows": results, "skipped": skipped}, indent=1) + "\n")
    return 1 if any(one["failures"] for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
