#!/usr/bin/env python3
"""Ranks on two nodes that lose each other.  two_nodes_test.py VITRAIL CONFIG [--runs N] [--share I/N]

The nodes are network namespaces made by two_nodes.sh, so it needs root and iproute2; without them it is skipped (77).
A job over both ends with the weights of a job on one host; a link that is cut ends it within its deadline, naming the
rank and the host behind it, with nobody left on either side; a link that is cut for two seconds is survived. With
--allow-fewer a job of four ranks goes on with the two that are left: the same losses as one rank has."""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from jobs import DEADLINE, ENDLESS, Bench, Broken, Job, Nodes, compare  # noqa: E402


def finishes(bench, nodes):
    compare(nodes.job(bench, "both").wait(90).expect(0).expect_nobody().folder, bench.reference())


def cut_for_ever(bench, nodes, node):
    job = nodes.job(bench, f"cut-{node}", ENDLESS)
    job.await_step()
    nodes.call("cut", node)
    job.marker.touch()
    try:
        job.wait().expect(69, f"rank {int(node) - 1} on {nodes.name}{node}", "is cut off", " at step ")
        job.expect_nobody(DEADLINE + 3).expect_within(DEADLINE)
    finally:
        nodes.call("heal", node)


def cut_for_two_seconds(bench, nodes):
    job = nodes.job(bench, "healed", deadline=15)
    job.await_step()
    nodes.call("cut", "2")
    time.sleep(2)
    nodes.call("heal", "2")
    compare(job.wait(90).expect(0).expect_nobody().folder, bench.reference())


def losses_of(job):
    """Step -> loss, as the log has them."""
    lines = [json.loads(line) for line in (job.folder / "metrics.jsonl").read_text().splitlines() if line.endswith("}")]
    return {line["step"]: line["loss"] for line in lines if line["kind"] == "train"}


def goes_on_with_fewer(bench, nodes, node):
    # A model whose steps take long enough for the cut to come early, on any machine.
    model = [word for setting in ("width=128", "depth=6", "mlp=512") for word in ("--set", f"model.{setting}")]
    # Adam divides by the root of small gradients, so roundings grow to 1e-5 within some twenty steps; SGD's stay small.
    sgd = ["--set", "optim.name=sgd", "--set", "optim.lr=0.02"]
    words = [*ENDLESS, *model, *sgd, "--set", "train.batch=32", "--set", "train.micro_batch=0", "--set", "train.eval_every=1000000"]
    job = nodes.job(bench, f"fewer-{node}", words, ("--max-restarts", "2", "--allow-fewer"), each=2)
    job.await_step()
    cut_at = max(losses_of(job))
    nodes.call("cut", node)
    began = time.time()
    # Ten steps of the ranks that are left: after hundreds, which a quick machine makes, roundings have grown.
    compared = range(1, cut_at + 11)
    try:
        one = Job(bench, "fewer-alone", words, start=("launch", "-n", "1", "--rank-threads"))
        one.await_that(lambda: (one.folder / "metrics.jsonl").exists() and max(losses_of(one), default=0) >= compared[-1], "step", 60)
        one.process.send_signal(signal.SIGTERM)
        one.wait().expect(75, last=False)
        job.await_that(lambda: "going on with 2 of 4 ranks" in job.text() and max(losses_of(job), default=0) > cut_at + 10,
                       "steps of the ranks that are left", 30)
        print(f"node {node} cut: ten steps with the ranks that are left {time.time() - began:.1f} s later")
        job.process.send_signal(signal.SIGTERM)
        job.wait().expect(75, last=False).expect_nobody(DEADLINE + 3)
    finally:
        nodes.call("heal", node)
    found, wanted = losses_of(job), losses_of(one)
    if sorted(found) != list(range(1, len(found) + 1)):
        raise Broken(f"the log has the steps {sorted(found)}")
    worst = max(abs(found[step] - wanted[step]) / abs(wanted[step]) for step in compared)
    print(f"cut at step {cut_at}, {len(found)} steps; the first {len(compared)} within {worst:.1e}")
    if not worst < 1e-5:
        raise Broken(f"losses differ from one rank's by {worst:.1e}")


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
    cases = [(finishes,), (cut_for_two_seconds,), (cut_for_ever, "1"), (cut_for_ever, "2"),
             (goes_on_with_fewer, "2"), (goes_on_with_fewer, "1")][first::shares]
    failed = []
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(os.path.abspath(args.vitrail), os.path.abspath(args.config), Path(work))
        if any(check in (finishes, cut_for_two_seconds) for check, *_ in cases):
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
