#!/usr/bin/env python3
"""Kills, stops and misleads ranks of small training runs, and checks how each job ends.

faults.py VITRAIL CONFIG [--shim LIBRARY] [--runs N] [--jobs N] [--only WORD] [--share I/N]

Every case starts `vitrail launch` (or mpirun) with two ranks and a deadline of 3 s. A rank is made to die in a phase by
VITRAIL_TEST_FAULT, whose marker file is written a quarter of a second before. Then: the exit code is the one that
docs/parallel.md promises, the last line names rank, host, phase and error, no process is left, and the job has ended
within its deadline. A run that is started again ends with the weights of an undisturbed one, bit for bit.
The file system of one rank alone is full for --shim, libfault_shim.so; without it that case is left out.
VITRAIL_TEST_LONG in the environment makes ten runs of each case, and adds those in which the program itself waits for
eight seconds. Prints one JSON object; 0 when all held."""
import argparse
import errno
import json
import os
import signal
import struct
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from jobs import DEADLINE, ENDLESS, HOST, SLACK, Bench, Broken, Job, compare, processes  # noqa: E402
from kill_train import check_complete  # noqa: E402

PHASES = ["init", "forward", "reduction", "evaluation", "save"]
HALF = ["--set", "train.steps=60"]  # of the config's updates: what happens to the run happens before


def png(number):
    """A grey image of 8 by 8."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((number * 37 + y * 8 + x) % 256 for x in range(8)) for y in range(8))
    header = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class RankFaults(Bench):
    """The cases."""

    def killed(self, phase, rank):
        step = {"init": 0, "save": 6, "evaluation": 6}.get(phase, 5)
        job = Job(self, f"kill-{phase}-{rank}", ENDLESS, f"{rank}:{phase}:{step}:kill:MARKER").wait()
        job.expect(137, f"rank {rank} on {HOST}", "was killed", f"in {phase}").expect_nobody().expect_within(DEADLINE)
        if phase != "init":
            job.expect(137, " at step ")
            job.expect_crash_file(rank)
        self.note("killed", job)

    def stopped(self, rank):
        job = Job(self, f"stop-{rank}", ENDLESS, f"{rank}:forward:5:stop:MARKER").wait()
        job.expect(70, f"rank {rank} on {HOST}", "is stopped", "in forward at step").expect_nobody()
        job.expect_within(DEADLINE)
        self.note("stopped for ever", job)

    def paused(self, seconds=4):
        job = Job(self, "pause", HALF, "1:forward:20:stop:MARKER", deadline=15)
        job.await_that(lambda: "T" in processes(job.word).values(), "stopped rank", 40)
        threading.Thread(target=self.reference, args=HALF).start()  # what the run is compared with, meanwhile
        time.sleep(seconds)
        for pid, state in processes(job.word).items():
            if state == "T":
                os.kill(pid, signal.SIGCONT)
        job.wait().expect(0, "rank 1 on", "was silent for", last=False).expect_nobody()
        events = [json.loads(line) for line in (job.folder / "metrics.jsonl").read_text().splitlines()]
        if not any(e.get("what") == "slow_rank" for e in events):
            raise Broken("the log has no slow_rank")
        compare(job.folder, self.reference(*HALF))

    def launcher_killed(self):
        job = Job(self, "launcher", ENDLESS)
        job.await_step()
        job.process.kill()
        job.wait().expect_nobody(15)

    def mpirun_killed(self):
        job = Job(self, "mpirun", ENDLESS)
        job.await_step()
        children = [pid for pid in processes(job.word) if "mpirun" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]]
        os.kill(children[0], signal.SIGKILL)
        job.wait().expect(137, "mpirun was killed by signal 9").expect_nobody()

    def throws(self, start):
        data = self.work / f"images-{self.number()}"
        for label in ("a", "b"):
            (data / label).mkdir(parents=True)
            for i in range(12):
                (data / label / f"{i}.png").write_bytes(png(i))
        (data / "b" / "11.png").write_bytes(png(11)[:50])
        job = Job(self, "throws", ["--set", f"data.train=folder:{data}", "--set", f"data.val=folder:{data}", "--set",
                                   "loader.on_error=fail"], start=start).wait()
        job.expect(65, "error: rank ", "b/11.png", f" on {HOST}", " in ").expect_nobody()

    def absent(self):
        Job(self, "absent", ENDLESS, "1:init:0:absent", deadline=1).wait().expect(69, "rank 1 of 2 never came").expect_nobody()

    def absent_in_plain_mpirun(self, rank):
        """Two ranks of three wait in MPI_Init, where nothing of ours watches; one of them speaks."""
        sleeper = [sys.executable, "-c", "import time; time.sleep(600)", "FOLDER"]
        one, two = ["-n", "1", *sleeper], ["-n", "2"]
        start = ["mpirun", "--oversubscribe", "--bind-to", "none", *(two if rank == 2 else [*one, ":", *two])]
        job = Job(self, f"plain-absent-{rank}", [*ENDLESS, *([":", *one] if rank == 2 else [])], deadline=1, start=start).wait()
        told = f"error: rank {rank} of 3 never came within 8 s, says rank "
        job.expect(69, told, last=False).expect_nobody()
        if job.text().count("error: ") != 1:
            raise Broken(f"{job.folder.name}: not told once: {job.text()}")
        if not 8 < job.ended - job.started < 8 + 2 * SLACK:
            raise Broken(f"{job.folder.name}: ended after {job.ended - job.started:.1f} s")

    def port_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            Job(self, "port", start=("launch", "-n", "2", "--port", str(port))).wait().expect(
                69, f"the port {port}", last=False)

    def restarted(self, phase, rank):
        fault = f"{rank}:{phase}:25:kill:MARKER"
        job = Job(self, f"restart-{phase}", HALF, fault, start=("launch", "-n", "2", "--max-restarts", "2")).wait(90)
        job.expect(0, f"rank {rank} on {HOST}", "restart 1 of 2", last=False).expect_nobody()
        compare(job.folder, self.reference(*HALF))

    def repeats(self):
        """Each start makes the steps behind the newest checkpoint again, and none that is new."""
        job = Job(self, "repeats", [*ENDLESS, "--set", "train.save_every=10"], "1:forward:25:kill",
                  start=("launch", "-n", "2", "--max-restarts", "5")).wait(120)
        job.expect(137, "gave up after 2 restarts without a new step", "rank 1 on", "at step 25").expect_nobody()

    def gives_up(self):
        job = Job(self, "vain", ENDLESS, "1:init:0:kill", start=("launch", "-n", "2", "--max-restarts", "5")).wait(90)
        job.expect(137, "gave up after 2 restarts without a new step", "rank 1 on").expect_nobody()

    def no_room(self, shim, rank):
        """Writes of one rank to its checkpoints fail for a while, as on a disk of its own that is full."""
        barred = ["env", f"LD_PRELOAD={shim}", "FAULT_ROOT=FOLDER/checkpoints", "FAULT_CLASS=write", "FAULT_AT=1500",
                  "FAULT_FOR=9", f"FAULT_ACTION={errno.ENOSPC}"]
        first, second = (barred, []) if rank == 0 else ([], barred)
        job = Job(self, "no-room", [":", "-n", "1", *second, self.vitrail, "train", "--config", self.config, "--out", "FOLDER",
                                    "--threads", "1", "--deadline", str(DEADLINE)],
                  start=("mpirun", "--oversubscribe", "--bind-to", "none", "-n", "1", *first)).wait(120)
        job.expect(0, last=False).expect_nobody()
        said = [event for event in job.events("write_failed") if "checkpoint" in event["text"]]
        if not said or not all(f"rank {rank}: " in event["text"] and "No space left" in event["text"] for event in said):
            raise Broken(f"{job.folder.name}: rank {rank} had no room, and the log has {said}")
        if len({event["step"] for event in said}) != len(said):
            raise Broken(f"{job.folder.name}: a failed save was told more than once: {said}")
        check_complete(job.folder)
        compare(job.folder, self.reference())

    def asked_to_stop(self, start):
        job = Job(self, "asked", ENDLESS, start=start)
        job.await_step()
        job.process.send_signal(signal.SIGTERM)
        job.wait().expect(75, "stopped on request", last=False).expect_nobody()

    def plain_mpirun(self, rank):
        """Of the two ranks that are left one speaks."""
        job = Job(self, f"plain-{rank}", [*ENDLESS, "--set", "train.batch=12"], f"{rank}:forward:5:kill:MARKER",
                  start=("mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3")).wait()
        told = "error: " + ("the process of rank 0 is gone" if rank == 0 else f"rank 1 on {HOST}")
        job.expect(137, told, last=False).expect_nobody().expect_within(DEADLINE)
        if job.text().count(told) != 1:
            raise Broken(f"{job.folder.name}: said {job.text().count(told)} times: {told!r}")

    def threads_killed(self):
        job = Job(self, "threads", ENDLESS, "1:forward:5:kill:MARKER", start=("launch", "-n", "2", "--rank-threads")).wait()
        job.expect(137, "rank 0 on", "was killed").expect_nobody().expect_within(DEADLINE)

    def differing(self):
        job = Job(self, "differ", start=("mpirun", "--oversubscribe", "--bind-to", "none", "-n", "1"),
                  words=["--set", "train.steps=40", ":", "-n", "1", self.vitrail, "train", "--config", self.config, "--out",
                         str(self.work / "differ"), "--threads", "1", "--set", "train.steps=41"]).wait()
        job.expect(64, "train.steps is 41 on rank 1 and 40 on rank 0", last=False).expect_nobody()


def cases(bench, long, shim):
    for rank in (0, 1):
        for phase in PHASES:
            yield f"kill -9 of rank {rank} in {phase}", bench.killed, (phase, rank)
    mpi, threads = ("launch", "-n", "2", "--mpirun"), ("launch", "-n", "2", "--rank-threads")
    yield "SIGSTOP of rank 1 for 4 s", bench.paused, ()
    for rank in (0, 1) if long else (1,):
        yield f"SIGSTOP of rank {rank} for ever", bench.stopped, (rank,)
        yield f"plain mpirun, kill -9 of rank {rank}", bench.plain_mpirun, (rank,)
    if not long:
        yield "plain mpirun, kill -9 of rank 0", bench.plain_mpirun, (0,)
    yield "launcher killed", bench.launcher_killed, ()
    yield "mpirun killed", bench.mpirun_killed, ()
    yield "a rank throws", bench.throws, (mpi,)
    yield "a rank thread throws", bench.throws, (threads,)
    if long:  # the program waits eight times its least deadline
        yield "a rank never comes", bench.absent, ()
        yield "plain mpirun, rank 0 never comes", bench.absent_in_plain_mpirun, (0,)
    yield "plain mpirun, rank 2 never comes", bench.absent_in_plain_mpirun, (2,)
    for rank in (0, 1) if shim else ():
        yield f"no room on the disk of rank {rank}", bench.no_room, (shim, rank)
    yield "port taken", bench.port_taken, ()
    for phase in PHASES[1:] if long else ["forward"]:
        yield f"restarted after a death in {phase}", bench.restarted, (phase, 1)
    if long:  # the program waits eight seconds before the last restart
        yield "restarts in vain", bench.gives_up, ()
        yield "restarts that repeat steps", bench.repeats, ()
    yield "asked to stop", bench.asked_to_stop, (mpi,)
    yield "rank threads asked to stop", bench.asked_to_stop, (threads,)
    yield "rank threads killed", bench.threads_killed, ()
    yield "configs that differ", bench.differing, ()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vitrail")
    parser.add_argument("config")
    parser.add_argument("--shim", type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--share", default="0/1", help="every Nth case, from the Ith on")
    args = parser.parse_args()
    long = bool(os.environ.pop("VITRAIL_TEST_LONG", ""))
    runs = max(args.runs, 10) if long else args.runs
    failures, started = [], time.time()

    def attempt(case):
        name, check, arguments = case
        try:
            check(*arguments)
        except (Broken, OSError, ValueError, IndexError) as error:
            failures.append(f"{name}: {error}")

    with tempfile.TemporaryDirectory() as work:
        bench = RankFaults(os.path.abspath(args.vitrail), os.path.abspath(args.config), Path(work))
        first, shares = map(int, args.share.split("/"))
        todo = [case for case in cases(bench, long, args.shim) if args.only in case[0]][first::shares] * runs
        with ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(attempt, todo))
    found = {case: {"runs": len(all), "median": sorted(all)[len(all) // 2], "most": max(all)}
             for case, all in bench.detections.items()}
    print(json.dumps({"cases": len(todo), "failed": failures, "seconds": round(time.time() - started, 1),
                      "seconds_to_the_end": found}, indent=2))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
