#!/usr/bin/env python3
"""Kills training runs at random moments, resumes them, and compares what comes out with an undisturbed run.

kill_train.py VITRAIL CONFIG [--kills N] [--signals N] [--set KEY=VALUE]... [--threads 1,2] [--seed S]

An undisturbed run comes first. Then `--kills` times a run is ended by SIGKILL and resumed, and `--signals` times it
is asked to stop by one signal or by two of SIGTERM, SIGUSR1, SIGHUP, SIGXCPU and SIGINT, 1 to 100 ms apart: exit code
75, resumable; only before the program has set its handlers may a signal end it. The folder is kept whatever happened:
a run that died before its first checkpoint begins anew there. Whenever a disturbed run reaches its end, its last
checkpoint and its best model must equal the undisturbed ones byte for byte, its log but for the clock, and a new run
begins; the log must tell that its last life went on from the newest checkpoint. After each death every checkpoint outside of unfinished folders must be complete. VITRAIL_TEST_LONG in the
environment raises counts that are not 0 to those of a long campaign, at least 200 and 100, with its runs on the disk and not
in memory. Prints one JSON object; 0 when all held."""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from itertools import zip_longest
from pathlib import Path

STOPPED = 75
STEP = re.compile(r"step-\d{8,}$")
STOPS = [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGXCPU, signal.SIGINT]

CLOCK = ["time", "img_per_s", "interval_s", "data_wait_s", "seconds", "memory_bytes"]  # and the threads
LONG = {"kills": 200, "signals": 100}


class Broken(Exception):
    pass


def catches(pid, number):
    """Whether the process has a handler for the signal."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return bool(int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (number - 1) & 1)


def checkpoints(run):
    """Step folders of a run, oldest first."""
    return sorted(p for p in (run / "checkpoints").glob("step-*") if STEP.match(p.name))


def check_complete(run):
    """Everything a manifest lists is there in its size, and nothing unexpected stands beside the checkpoints."""
    for folder in checkpoints(run):
        try:
            manifest = json.loads((folder / "manifest.json").read_text())
        except (OSError, ValueError) as error:
            raise Broken(f"{folder}: {error}") from error
        for file in manifest["files"]:
            path = folder / file["name"]
            if not path.is_file() or path.stat().st_size != file["bytes"]:
                raise Broken(f"{path} is missing or not of {file['bytes']} bytes")
    for path in (run / "checkpoints").glob("*"):
        if not (STEP.match(path.name) or path.name == "latest" or path.name.startswith(".tmp-")):
            raise Broken(f"{path} does not belong there")


def tensors(path):
    """name -> bytes of a safetensors file."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__", None)
    return {name: raw[start + t["data_offsets"][0]:start + t["data_offsets"][1]] for name, t in header.items()}


def is_piece(path):
    """Whether the file is what one of several ranks has written: its header names the save, which no other save has."""
    return b"vitrail_piece" in path.read_bytes()[:1 << 20]


def compare(found, expected):
    """The last checkpoints and best models of two runs hold the same tensors, bit for bit, and the logs agree."""
    if not checkpoints(found):
        raise Broken(f"{found} finished without a checkpoint")
    ours, theirs = checkpoints(found)[-1], checkpoints(expected)[-1]
    if ours.name != theirs.name:
        raise Broken(f"{found} ended at {ours.name}, the undisturbed run at {theirs.name}")
    compare_folders(ours, theirs)
    compare_folders(found / "best", expected / "best")
    for number, (a, b) in enumerate(zip_longest(log(found), log(expected)), 1):
        if a != b:
            raise Broken(f"{found}/metrics.jsonl line {number} is {a}, that of the undisturbed run {b}")


def compare_folders(ours, theirs):
    names = sorted(p.name for p in theirs.glob("*.safetensors"))
    if not names or names != sorted(p.name for p in ours.glob("*.safetensors")):
        raise Broken(f"{ours} has other files than {theirs}")
    for name in names:
        if (ours / name).read_bytes() == (theirs / name).read_bytes():
            continue
        a, b = tensors(ours / name), tensors(theirs / name)
        differing = sorted(n for n in a.keys() | b.keys() if a.get(n) != b.get(n))
        if not differing and is_piece(ours / name) and is_piece(theirs / name):
            continue
        raise Broken(f"{ours / name} differs from the undisturbed run in {len(differing)} of {len(b)} tensors"
                     f"{', first ' + differing[0] if differing else ' only in its header'}")


def log(run):
    """The lines of metrics.jsonl that measure something, without what the clock decides."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in CLOCK} for line in lines
            if line["kind"] not in ("event", "timing", "start")]


def resumes(run):
    """Steps from which lives of the run went on, by its log, whose last line a death may have torn."""
    path, steps = run / "metrics.jsonl", []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("what") == "resume":
            steps.append(event["step"])
    return steps


class NextLife:
    """The next life of a run: it shall go on from the newest checkpoint there is, and its log shall tell so. A run that began
    anew instead would end with the same bits."""

    def __init__(self, run):
        newest = max((int(folder.name[5:]) for folder in checkpoints(run)), default=-1)
        self.run, self.resumed = run, newest >= 0
        # A log is cut back to where a life begins: at step 0 nothing of it stays.
        kept = [step for step in resumes(run) if 0 < newest and step <= newest]
        self.expected = [*kept, newest] if self.resumed else []

    def check(self):
        if resumes(self.run) != self.expected:
            raise Broken(f"its log tells of lives that went on from {resumes(self.run)}, expected {self.expected}")


def has_finished(run):
    """Whether the run had said all it had to say: only the process was not gone yet."""
    path = run / "metrics.jsonl"
    last = path.read_text().splitlines()[-1:] if path.exists() else []
    return bool(last) and json.loads(last[0]).get("what") == "finished" and (run / "report.html").exists()


class Campaign:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.random = random.Random(args.seed)
        self.turn = 0
        self.counts = {"finished": 0, "resumed": 0, "begun": 0, "early": 0, "deaths": {}}

    def start(self, run, resume, output):
        command = [self.args.vitrail, "train", "--config", self.args.config, "--out", str(run), "--quiet"]
        for setting in self.args.set:
            command += ["--set", setting]
        if self.args.threads:
            command += ["--threads", self.random.choice(self.args.threads.split(","))]
        return subprocess.Popen(command + (["--resume"] if resume else []), stdin=subprocess.DEVNULL,
                                stdout=output, stderr=subprocess.STDOUT)

    def live(self, run, signals, delay):
        """One life of a run, ended after `delay` seconds; its exit code."""
        resume, life = run.exists(), NextLife(run)
        self.counts["resumed" if life.resumed else "begun"] += 1
        self.caught = False
        with open(self.work / "output.txt", "w+b") as output:
            process = self.start(run, resume, output)
            try:
                code = process.wait(delay)
            except subprocess.TimeoutExpired:
                self.caught = all(catches(process.pid, number) for number in signals)
                for number in signals:
                    process.send_signal(number)
                    time.sleep(self.random.uniform(0.001, 0.1) if len(signals) > 1 else 0)
                try:
                    code = process.wait(self.args.deadline)
                except subprocess.TimeoutExpired:
                    raise Broken(f"still running {self.args.deadline} s after {signals}") from None
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            output.seek(0)
            self.said = output.read().decode(errors="replace")[-2000:]
        if code == 0:
            life.check()
        return code

    def undisturbed(self):
        began = time.monotonic()
        code = self.live(self.work / "undisturbed", [], self.args.limit)
        if code != 0:
            raise Broken(f"the undisturbed run ended with {code}:\n{self.said}")
        check_complete(self.work / "undisturbed")
        return time.monotonic() - began

    def judge(self, run, kind, signals, code):
        """Whether the run is at its end, by the exit code after these signals."""
        died = code in [-number for number in signals]
        if code == 0 or (died and signals != [signal.SIGKILL] and has_finished(run)):
            return True
        if died and signals != [signal.SIGKILL] and not self.caught:
            self.counts["early"] += 1  # before the program had set its handlers
        elif code != (-signal.SIGKILL if signals == [signal.SIGKILL] else STOPPED):
            raise Broken(f"exit code {code} after {kind}:\n{self.said}")
        self.counts["deaths"][kind] = self.counts["deaths"].get(kind, 0) + 1
        return False

    def stops(self):
        """Signals that ask a run to stop, in turn each alone and a pair."""
        alone = STOPS[self.turn % len(STOPS)]
        self.turn += 1
        return [alone] if self.turn % 2 else [alone, self.random.choice(STOPS)]

    def disturb(self, signals_of, count, window):
        run = self.work / "disturbed"
        shutil.rmtree(run, ignore_errors=True)
        newest, idle, done = None, 0, 0
        while done < count:
            signals = signals_of()
            kind = " ".join(number.name for number in signals)
            finished = self.judge(run, kind, signals, self.live(run, signals, self.random.uniform(0, window)))
            check_complete(run)
            if finished:
                self.finish(run)
                window *= 0.8  # lives as long as the run disturb nothing
                continue
            done += 1
            latest = checkpoints(run)[-1:]
            idle = idle + 1 if latest == newest else 0
            newest = latest
            if idle >= 10:  # too short a life to get anywhere
                window, idle = 1.5 * window, 0
        if count:
            code = self.live(run, [], self.args.limit)
            if code != 0:
                raise Broken(f"the resumed run ended with {code}:\n{self.said}")
            self.finish(run)

    def finish(self, run):
        compare(run, self.work / "undisturbed")
        self.counts["finished"] += 1
        shutil.rmtree(run)


def memory():
    """A file system in memory, or None. What a process that is killed has written survives on any: on a disk, runs that save
    at every third step would do little but wait for it."""
    shared = Path("/dev/shm")
    roomy = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 1 << 30
    return shared if roomy else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vitrail")
    parser.add_argument("config")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--signals", type=int, default=8)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--threads", default="", help="thread counts to choose from, such as 1,2")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--window", type=float, default=0, help="longest life in seconds; 0: the run's own time")
    parser.add_argument("--deadline", type=float, default=60, help="seconds a run may take to stop")
    parser.add_argument("--limit", type=float, default=600, help="seconds an undisturbed run may take")
    args = parser.parse_args()
    long = bool(os.environ.get("VITRAIL_TEST_LONG"))
    if long:
        for name, least in LONG.items():
            if getattr(args, name):
                setattr(args, name, max(getattr(args, name), least))
    with tempfile.TemporaryDirectory(prefix="vitrail-kill-", dir=None if long else memory()) as work:
        campaign = Campaign(args, Path(work))
        try:
            seconds = campaign.undisturbed()
            window = args.window or seconds
            campaign.disturb(lambda: [signal.SIGKILL], args.kills, window)
            campaign.disturb(campaign.stops, args.signals, window)
            fault = None
        except Broken as broken:
            fault = str(broken)
    print(json.dumps({"ok": fault is None, "fault": fault, "seed": args.seed, **campaign.counts}))
    return 0 if fault is None else 1


if __name__ == "__main__":
    sys.exit(main())
