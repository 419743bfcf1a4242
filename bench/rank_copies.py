"""Single ranks that run at once and exchange nothing, for bench/compare_ranks.py and predict_ranks.py: what the machine itself gives
to so many ranks, and how far the slowest of them is behind. Also how those scripts run a command that may hang."""
import json
import os
import random
import signal
import statistics
import subprocess
import sys

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
DRAWS = 4000


def exit_when_ended():
    """Makes SIGTERM an exit, so that what was started is ended, too: it runs in sessions of its own."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def end_group(running):
    """Asks a process and all that it started to end, as mpirun needs to end its ranks, and then makes them."""
    for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        try:
            os.killpg(running.pid, number)
            running.communicate(timeout=patience)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def last_json(command, timeout, extra=None):
    """What a command prints. One that takes too long is ended with all processes that it started."""
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**ENVIRONMENT, **(extra or {})},
                               start_new_session=True)
    try:
        out, err = running.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end_group(running)
        raise RuntimeError(f"{' '.join(command)}: not ended after {timeout:.0f} s") from None
    except BaseException:
        end_group(running)
        raise
    if running.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {running.returncode}: {err[-500:]}")
    return json.loads(out[out.index("{"):])


def cores_of_ranks(ranks):
    """The cores that each of so many ranks of one thread has of its own (mesh.bind); all of them where there are too few."""
    cores = sorted(os.sched_getaffinity(0))
    if ranks > len(cores):
        return [set(cores)] * ranks
    return [set(cores[rank * len(cores) // ranks:(rank + 1) * len(cores) // ranks]) for rank in range(ranks)]


def run_together(command, ranks, timeout):
    """What so many runs of a command print, each on the cores of its rank: they wait until a pipe is closed, and then begin."""
    gate, opener = os.pipe()
    waiting = ["sh", "-c", f'read go <&{gate}; exec "$@"', "sh", *command]
    running = [subprocess.Popen(waiting, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT,
                                pass_fds=[gate], preexec_fn=lambda own=own: os.sched_setaffinity(0, own))
               for own in cores_of_ranks(ranks)]
    os.close(gate)
    os.close(opener)
    try:
        return [json.loads(process.communicate(timeout=timeout)[0]) for process in running]
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()


def drawn_time(result, share, tail):
    """The time below which that share of a copy's updates lies, by its least, middle and 90 %; with `tail` by all of them, or by its
    largest, too: without, one that was disturbed beyond does not count more than its 90 %."""
    known = [(0, result["ms_min"]), (0.5, result["ms_median"]), (0.9, result["ms_p90"])]
    if tail and len(result.get("ms_each", [])) > 1:
        each = sorted(result["ms_each"])
        known = [(place / (len(each) - 1), time) for place, time in enumerate(each)]
    elif tail:
        known.append((1, result["ms_max"]))
    for (low, a), (high, b) in zip(known, known[1:]):
        if share <= high:
            return a + (b - a) * (share - low) / (high - low)
    return known[-1][1]


def draws(results, tail):
    """Updates of all ranks, over and over, each drawn from the times of its own copy."""
    dice = random.Random(1)
    for _ in range(DRAWS):
        yield [drawn_time(result, dice.random(), tail) for result in results]


def waiting_of_the_machine(results):
    """The share of its time that a rank would wait for the slowest, if each took as long as its copy does."""
    drawn = list(draws(results, tail=False))
    return 1 - statistics.fmean(map(statistics.fmean, drawn)) / statistics.fmean(map(max, drawn))


def pace(results):
    """(seconds of an update in the mean, seconds of the slowest rank's in the median update)."""
    drawn = list(draws(results, tail=True))
    return statistics.fmean(map(statistics.fmean, drawn)) / 1e3, statistics.median(map(max, drawn)) / 1e3
