"""Training jobs of several ranks that tests disturb: what starts one, waits for it and judges its end, the undisturbed run it
is compared with, and two nodes that are network namespaces. What disturbs them is the tests' own matter."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from kill_train import Broken, compare  # noqa: E402

DEADLINE = 3
SLACK = 2.5  # seconds that a busy machine may add to a deadline
HOST = re.sub(r"[^A-Za-z0-9._]", "_", socket.gethostname())
ENDLESS = ["--set", "train.steps=1000000"]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Ranks that wait leave the core to others: tests have more ranks than cores.
PATIENT = {"OMPI_MCA_mpi_yield_when_idle": "1"}
SESSIONS = "OMPI_MCA_orte_tmpdir_base"  # where mpirun makes its folder; one that ends removes what others share with it
TWO_NODES = str(Path(__file__).resolve().parent / "two_nodes.sh")


def processes(word):
    """pid -> state of every process whose command line has the word."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    found[int(entry.name)] = state
        except OSError:
            pass
    return found


class Job:
    """One start of a job, ended or not. FOLDER in its words is that of the run."""

    def __init__(self, bench, name, words=(), fault=None, deadline=DEADLINE, start=("launch", "-n", "2", "--mpirun"),
                 in_folder=None, **extra):
        self.folder = bench.work / f"{name}-{bench.number()}"
        if in_folder:
            in_folder(self.folder)
        self.marker = Path(f"{self.folder}.marker")
        self.log = open(f"{self.folder}.err", "w+")
        environment = dict(os.environ, **AS_ROOT, **PATIENT, **{SESSIONS: bench.session()}, **extra)
        if fault:
            environment["VITRAIL_TEST_FAULT"] = fault.replace("MARKER", str(self.marker))
        command = ["train", "--config", bench.config, "--out", str(self.folder), "--threads", "1",
                   "--deadline", str(deadline), *words]
        if start[0] == "launch":
            command = [bench.vitrail, *start, *command]
        else:
            command = [*start, bench.vitrail, *command]
        command = [word.replace("FOLDER", str(self.folder)) for word in command]
        self.started = time.time()
        self.process = subprocess.Popen(command, stderr=self.log, stdout=subprocess.DEVNULL, env=environment,
                                        stdin=subprocess.DEVNULL)
        self.word = str(self.folder)

    def wait(self, seconds=60):
        try:
            self.code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill_all()
            raise Broken(f"{self.folder.name}: still there after {seconds} s: {self.text()[-600:]}") from None
        self.ended = time.time()
        return self

    def text(self):
        self.log.flush()
        return Path(self.log.name).read_text()

    def events(self, what):
        """Events of this kind in the run's log."""
        log = self.folder / "metrics.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [event for event in (json.loads(line) for line in lines if f'"{what}"' in line and line.endswith("}"))
                if event.get("what") == what]

    def ranks(self):
        """Rank -> pid of what mpirun has started."""
        found = {}
        for pid in processes(self.word):
            try:
                words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if Path(f"/proc/{pid}/comm").read_text().strip() != "vitrail":
                    continue
            except OSError:
                continue
            found.update((int(word[21:]), pid) for word in words if word.startswith(b"OMPI_COMM_WORLD_RANK="))
        return found

    def lines(self):
        return [line for line in self.text().splitlines() if line.strip()]

    def detection(self):
        """Seconds from the fault to the end of the job."""
        return self.ended - self.marker.stat().st_mtime - 0.25

    def kill_all(self):
        for pid in processes(self.word):
            os.kill(pid, signal.SIGKILL)

    def go_on(self, pid):
        """Ends the stop of a process, if it is still one of the job's."""
        if pid in processes(self.word):
            os.kill(pid, signal.SIGCONT)

    def await_step(self, seconds=40):
        """Returns when the run has made steps, and its ranks have had the time to report one."""
        log = self.folder / "metrics.jsonl"
        self.await_that(lambda: log.exists() and log.read_text().count('"kind":"train"') > 5, "a step", seconds)
        time.sleep(0.3)

    def await_that(self, holds, what, seconds):
        start = time.time()
        while not holds():
            if time.time() - start > seconds or self.process.poll() is not None:
                self.kill_all()
                raise Broken(f"{self.folder.name}: no {what} in {time.time() - start:.0f} s: {self.text()[-600:]}")
            time.sleep(0.05)

    def expect(self, code, *words, last=True):
        text = self.lines()[-1] if last and self.lines() else self.text()
        if self.code != code:
            raise Broken(f"{self.folder.name}: exit code {self.code}, expected {code}: {self.text()[-900:]}")
        for word in words:
            if word not in text:
                raise Broken(f"{self.folder.name}: {word!r} is not in: {text[-900:]}")
        return self

    def expect_nobody(self, seconds=0.5):
        start = time.time()
        while processes(self.word):
            if time.time() - start > seconds:
                left = processes(self.word)
                self.kill_all()
                raise Broken(f"{self.folder.name}: left behind: {left}")
            time.sleep(0.05)
        return self

    def expect_within(self, seconds):
        if self.detection() > seconds + SLACK:
            raise Broken(f"{self.folder.name}: ended {self.detection():.1f} s after the fault, expected {seconds}")
        return self

    def expect_crash_file(self, rank):
        crash = json.loads((self.folder / "crash" / f"rank-{rank}.json").read_text())
        if crash["rank"] != rank or not 0 < len(crash["events"]) <= 64 or not crash["ended_by"]["text"]:
            raise Broken(f"{self.folder.name}: crash/rank-{rank}.json holds {crash}")


class Bench:
    """Where jobs run, and what they are compared with."""

    def __init__(self, vitrail, config, work):
        self.vitrail, self.config, self.work = vitrail, config, work
        self.lock, self.making, self.count = threading.Lock(), threading.Lock(), 0
        self.detections, self.undisturbed = {}, {}

    def number(self):
        with self.lock:
            self.count += 1
            return self.count

    def session(self):
        """A folder for a job's mpirun alone, gone with the bench; sockets lie in it, whose paths must be short."""
        folder = self.work / f"s{self.number()}"
        folder.mkdir()
        return str(folder)

    def note(self, case, job):
        with self.lock:
            self.detections.setdefault(case, []).append(round(job.detection(), 2))

    def reference(self, *words, start=("launch", "-n", "2", "--mpirun")):
        """An undisturbed run with these words."""
        key = (*start, *words)
        with self.making:
            if key not in self.undisturbed:
                self.undisturbed[key] = Job(self, "reference", words, start=start).wait(900).expect(0).folder
            return self.undisturbed[key]


class Nodes:
    """A pair of nodes while it is open."""

    def __init__(self, name=f"vt{os.getpid() % 46656:x}n"):
        self.name, self.environment = name, {}

    def __enter__(self):
        made = subprocess.run([TWO_NODES, "up", self.name], capture_output=True, text=True)
        if made.returncode != 0:
            self.__exit__()
            raise PermissionError(made.stderr.strip())
        self.environment = dict(line.split("=", 1) for line in made.stdout.splitlines())
        return self

    def __exit__(self, *_):
        subprocess.run([TWO_NODES, "down", self.name], check=False)

    def call(self, verb, node, *words):
        subprocess.run([TWO_NODES, verb, self.name + node, *words], check=True)

    def job(self, bench, name, words=(), options=(), each=1, **named):
        """A job with as many ranks on each node."""
        start = ("launch", "-n", str(2 * each), "--mpirun", "--hosts", f"{self.name}1:{each},{self.name}2:{each}", *options)
        return Job(bench, name, words, start=start, **named, **self.environment)
