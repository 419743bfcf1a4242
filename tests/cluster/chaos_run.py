"""D12: one long run on two nodes, disturbed at random until it is done, and the share of its time that steps took which count.

A slow network makes steps long enough for a fault to cost what it costs in earnest; the undisturbed run it is compared with is on one host.
The effective training time is the sum of the steps' times that the finished log holds, none of them counted for more than three times the
median, over the time from the start to the end: what is lost are steps made again, starts, saves, evaluations and waiting for a judgement."""
import json
import os
import signal
import statistics
import subprocess
import threading
import time

from jobs import Broken, compare

DEADLINE = 10  # seconds
SLOW = "tbf rate 1mbit burst 16kb latency 400ms".split()  # a fifth of a second an update
STEADY = ("--set", "train.eval_every=500", "--set", "train.save_every=40", "--set", "train.log_every=1")


def intervals(folder):
    """Seconds of each step in the log."""
    log = folder / "metrics.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")] if log.exists() else []
    return [line["interval_s"] for line in lines if line["kind"] == "train"]


def small_disk(folder):
    """Checkpoints on a file system of their own."""
    (folder / "checkpoints").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "vitrail-chaos", str(folder / "checkpoints")], check=True)


def kill(job, _, draw):
    ranks = job.ranks()
    os.kill(ranks[draw.choice(sorted(ranks))], signal.SIGKILL)


def stop(seconds):
    def stop_for(job, _, draw):
        ranks = job.ranks()
        pid = ranks[draw.choice(sorted(ranks))]
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(seconds, lambda: job.go_on(pid)).start()
    return stop_for


def cut(seconds):
    def cut_for(_, nodes, draw):
        node = draw.choice("12")
        nodes.call("cut", node)
        threading.Timer(seconds, lambda: nodes.call("heal", node)).start()
    return cut_for


def filler_of(folder):
    return folder / "checkpoints" / ".tmp-filler"


def fill(folder):
    """Takes what is left of the small disk."""
    try:
        with open(filler_of(folder), "ab", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
    except OSError:
        pass
    return True


def fill_for(job, _, __):
    end = time.monotonic() + 8
    while time.monotonic() < end and job.process.poll() is None and fill(job.folder):
        time.sleep(0.05)
    filler_of(job.folder).unlink(missing_ok=True)


FAULTS = {"kill -9": kill, "stopped for 3 s": stop(3), "stopped until the deadline": stop(60), "link down for 3 s": cut(3),
          "link down until the deadline": cut(12), "disk full for 8 s": fill_for}


def slow_network_job(chaos, nodes, *arguments, **named):
    for node in "12":
        nodes.call("shape", node, *SLOW)
    return nodes.job(chaos, *arguments, **named)


def steps_in(chaos, nodes, minutes):
    """As many updates as an undisturbed run makes in that time, found by a short one."""
    job = slow_network_job(chaos, nodes, "d12-speed", ("--set", "train.steps=40", *STEADY), deadline=60)
    job.wait(240).expect(0, last=False)
    return max(100, int(60 * minutes / statistics.median(intervals(job.folder)[5:])))


def disturb(job, nodes, draw, every):
    """Faults until the run ends; what was done, when."""
    done, next_at, started = [], every * draw.uniform(0.5, 1.5), time.monotonic()
    while job.process.poll() is None:
        time.sleep(0.2)
        now = time.monotonic() - started
        if now < next_at:
            continue
        name = draw.choice(sorted(FAULTS))
        next_at += every * draw.uniform(0.5, 1.5)
        if not job.ranks():
            continue  # it is being started again
        try:
            FAULTS[name](job, nodes, draw)
            done.append({"at": round(now, 1), "fault": name})
        except ProcessLookupError:
            continue
        if now > 60 * 90:
            raise Broken("no end in 90 minutes")
    return done


def random_faults(chaos, _, draw):
    """Returns what the run was worth."""
    args = chaos.args
    with chaos.nodes() as nodes:
        # A tenth of the time is left for what the faults cost.
        words = ("--set", f"train.steps={steps_in(chaos, nodes, 0.9 * args.minutes)}", *STEADY)
        job = slow_network_job(chaos, nodes, "d12", words, ("--max-restarts", "1000"), deadline=DEADLINE, in_folder=small_disk)
        done = disturb(job, nodes, draw, args.every)
        job.wait()
        wall = job.ended - job.started
        job.expect(0, last=False).expect_nobody(DEADLINE)
        times = intervals(job.folder)
        most = 3 * statistics.median(times)
        effective = sum(min(one, most) for one in times) / wall
        compare(job.folder, chaos.reference(*words))
    counts = {name: sum(one["fault"] == name for one in done) for name in FAULTS}
    return (f"{len(times)} steps in {wall:.0f} s with {len(done)} faults, one every {args.every:.0f} s ("
            + ", ".join(f"{count} {name}" for name, count in counts.items() if count)
            + f"), {job.text().count('restart ')} restarts: effective training time {100 * effective:.1f} %")
