"""Runs one peer: reads requests as JSON lines, answers each with one. The libraries' own messages go to stderr.

    python -m peers.worker MODULE CASE     (CASE as JSON)
"""
import importlib
import json
import os
import pathlib
import sys
import time

from peers.stats import spread

FEWEST_RUNS = 3
WARMUP_RUNS = 2


def time_runs(run, seconds):
    """Returns milliseconds of each run, after a few that are not counted (as `vitrail bench` does)."""
    for _ in range(WARMUP_RUNS):
        run()
    times = []
    start = time.perf_counter()
    while len(times) < FEWEST_RUNS or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - before))
    return times


def peak_bytes():
    """Returns the most memory this process ever held, compilers it started not counted."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def answer(peer, request):
    match request["ask"]:
        case "time":
            return spread(time_runs(peer.run, request["seconds"]))
        case "logits":
            return peer.logits()
        case "first_loss":
            return peer.first_loss()
        case "peak_bytes":  # a peer on a GPU counts its memory itself
            return getattr(peer, "peak_bytes", peak_bytes)()


def main():
    module, case = sys.argv[1], json.loads(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(**what):
        print(json.dumps(what), file=answers, flush=True)

    try:
        peer = importlib.import_module(module).open(case)
        peer.run()  # a peer that compiles at its first run fails here or not at all
        say(answer={"version": peer.version, "note": peer.note})
        for line in sys.stdin:
            say(answer=answer(peer, json.loads(line)))
    except Exception as error:  # any library, any reason: the comparison goes on without this peer
        text = str(error).strip().splitlines()
        say(error=f"{type(error).__name__}: {text[0] if text else ''}")
        raise


if __name__ == "__main__":
    main()
