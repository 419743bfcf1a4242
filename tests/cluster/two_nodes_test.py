#!/usr/bin/env python3
"""Ranks on two nodes that lose each other.  two_nodes_test.py VITRAIL CONFIG [--runs N] [--share I/N]

The nodes are network namespaces made by two_nodes.sh, so it needs root and iproute2; without them it is skipped (77).
A job over both ends with the weights of a job on one host; a link that is cut ends it within its deadline, naming the
rank and the host behind it, with nobody left on either side; a link that is cut for two seconds is survived."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from faults import DEADLINE, ENDLESS, Bench, Broken, Job, compare  # noqa: E402

SCRIPT = str(Path(__file__).resolve().parent / "two_nodes.sh")


class Nodes:
    """A pair of nodes while it is open."""

    def __init__(self):
        self.name = f"vt{os.getpid() % 46656:x}n"

    def __enter__(self):
        made = subprocess.run([SCRIPT, "up", self.name], capture_output=True, text=True)
        if made.returncode != 0:
            self.__exit__()
            raise PermissionError(made.stderr.strip())
        os.environ.update(line.split("=", 1) for line in made.stdout.splitlines())
        return self

    def __exit__(self, *_):
        subprocess.run([SCRIPT, "down", self.name], check=False)

    def call(self, verb, node):
        subprocess.run([SCRIPT, verb, self.name + node], check=True)

    def start(self, *options):
        return ("launch", "-n", "2", "--mpirun", "--hosts", f"{self.name}1:1,{self.name}2:1", *options)


def finishes(bench, nodes):
    compare(Job(bench, "both", start=nodes.start()).wait(90).expect(0).expect_nobody().folder, bench.reference())


def cut_for_ever(bench, nodes, node):
    job = Job(bench, f"cut-{node}", ENDLESS, start=nodes.start())
    job.await_step()
    nodes.call("cut", node)
    job.marker.touch()
    try:
        job.wait().expect(69, f"rank {int(node) - 1} on {nodes.name}{node}", "is cut off", " at step ")
        job.expect_nobody(DEADLINE + 3).expect_within(DEADLINE)
    finally:
        nodes.call("heal", node)


def cut_for_two_seconds(bench, nodes):
    job = Job(bench, "healed", deadline=15, start=nodes.start())
    job.await_step()
    nodes.call("cut", "2")
    time.sleep(2)
    nodes.call("heal", "2")
    compare(job.wait(90).expect(0).expect_nobody().folder, bench.reference())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vitrail")
    parser.add_argument("config")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--share", default="0/1", help="every Nth case, from the Ith on")
    args = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("skipped: network namespaces need root and iproute2")
        return 77
    runs = max(args.runs, 10) if os.environ.pop("VITRAIL_TEST_LONG", "") else args.runs
    first, shares = map(int, args.share.split("/"))
    cases = [(finishes,), (cut_for_two_seconds,), (cut_for_ever, "1"), (cut_for_ever, "2")][first::shares]
    failed = []
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(os.path.abspath(args.vitrail), os.path.abspath(args.config), Path(work))
        bench.reference()
        try:
            with Nodes() as nodes:
                for check, *arguments in cases * runs:
                    try:
                        check(bench, nodes, *arguments)
                    except (Broken, OSError) as error:
                        failed.append(f"{check.__name__} {arguments}: {error}")
        except PermissionError as error:
            print(f"skipped: {error}")
            return 77
    print(f"two nodes: {runs} runs of {len(cases)} cases, {len(failed)} failed", *failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
