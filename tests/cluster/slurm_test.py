#!/usr/bin/env python3
"""deploy/slurm/vitrail.sbatch on a Slurm of two nodes.  slurm_test.py VITRAIL CONFIG [--only WORD]

The Slurm is made by slurm_two_nodes.sh; without root or its packages the test is skipped (77). A job ends with the weights
of a run without Slurm, bit for bit: also one whose time is over (warned, saved, requeued, resumed) and one whose node is
lost. A cancelled job ends within Slurm's KillWait and leaves nobody. Minutes: a requeued job waits in the queue."""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from jobs import AS_ROOT, DEADLINE, ENDLESS, SLACK, Broken, compare, processes  # noqa: E402

SCRIPT = str(HERE / "slurm_two_nodes.sh")
SBATCH = str(HERE.parent.parent / "deploy" / "slurm" / "vitrail.sbatch")
PROGRAMS = ["slurmctld", "slurmd", "munged", "sbatch", "ip", "nsenter"]
KILL_WAIT = 30  # as slurm_two_nodes.sh has it
RARELY = ["--set", "train.save_every=300", "--set", "train.eval_every=1000", "--set", "train.log_every=10"]
SHORT = ["--set", "train.steps=1500", *RARELY]  # and long enough to be met by a fault


def until(holds, what, seconds, every=0.25):
    start = time.time()
    while not (found := holds()):
        if time.time() - start > seconds:
            raise Broken(f"no {what} in {seconds} s")
        time.sleep(every)
    return found


class Slurm:
    """Two nodes while it is open."""

    def __init__(self, vitrail, config, work):
        self.vitrail, self.config, self.work = vitrail, config, work
        self.name, self.folder = f"vt{os.getpid() % 46656:x}s", work / "slurm"
        self.references = {}

    def __enter__(self):
        made = subprocess.run([SCRIPT, "up", self.name, self.folder], capture_output=True, text=True)
        if made.returncode != 0:
            self.__exit__()
            if "ermitted" in made.stderr or "ermission" in made.stderr:
                raise PermissionError(made.stderr.strip())
            raise RuntimeError(made.stderr.strip())
        os.environ.update(line.split("=", 1) for line in made.stdout.splitlines())
        return self

    def __exit__(self, *_):
        subprocess.run([SCRIPT, "down", self.folder], check=False)

    def start_node(self, node):
        subprocess.run([SCRIPT, "node", self.folder, node], check=True)

    def kill_slurmd(self, node):
        os.kill(int((self.folder / f"{node}.pid").read_text()), signal.SIGKILL)

    def processes_on(self, node):
        return list(map(int, subprocess.run(["ip", "netns", "pids", node], capture_output=True, text=True).stdout.split()))

    def reference(self, words):
        """An undisturbed run of the same command without Slurm."""
        key = tuple(words)
        if key not in self.references:
            folder = self.work / f"reference-{len(self.references)}"
            command = [self.vitrail, "launch", "-n", "2", "--mpirun", "train", "--config", self.config, "--out", str(folder),
                       "--threads", "1", *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ, **AS_ROOT))
            if done.returncode != 0:
                raise Broken(f"the reference ended with {done.returncode}: {done.stderr[-900:]}")
            self.references[key] = folder
        return self.references[key]


class BatchJob:
    def __init__(self, slurm, name, words, options=(), tasks=1, deadline=DEADLINE, losses=3):
        self.slurm, self.folder, self.log = slurm, slurm.work / name, slurm.work / f"{name}.log"
        command = ["sbatch", "--parsable", "--gres=none", "--nodes=2", f"--ntasks-per-node={tasks}", "--cpus-per-task=1",
                   f"--output={self.log}", *options, SBATCH, "train", "--config", slurm.config, "--out", str(self.folder),
                   "--deadline", str(deadline), *words]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, VITRAIL=slurm.vitrail, LOSSES=str(losses)))
        if done.returncode != 0:
            raise Broken(f"sbatch: {done.stderr}")
        self.number = done.stdout.strip()

    def facts(self):
        """What Slurm knows of it: JobState, ExitCode, Restarts, ..."""
        text = subprocess.run(["scontrol", "-o", "show", "job", self.number], capture_output=True, text=True).stdout
        return dict(re.findall(r"(\w+)=(\S*)", text))

    def text(self):
        return self.log.read_text() if self.log.exists() else ""

    def await_state(self, *states, seconds):
        try:
            return until(lambda: (state := self.facts().get("JobState")) in states and state, " or ".join(states), seconds)
        except Broken as error:
            raise Broken(f"{self.folder.name}: {error}: {self.facts()}: {self.text()[-1500:]}") from None

    def await_step(self):
        log = self.folder / "metrics.jsonl"
        until(lambda: log.exists() and '"kind":"train"' in log.read_text(), f"step of {self.folder.name}", 60)
        return self

    def expect_log(self, *words):
        for word in words:
            if word not in self.text():
                raise Broken(f"{self.folder.name}: {word!r} is not in: {self.text()[-1500:]}")

    def expect_exit(self, code):
        self.await_state("COMPLETED", "FAILED", seconds=90)
        if self.facts()["ExitCode"] != f"{code}:0":
            raise Broken(f"{self.folder.name}: {self.facts()['ExitCode']}, expected {code}: {self.text()[-1500:]}")

    def ranks(self):
        return {pid: state for pid, state in processes(str(self.folder)).items()
                if (Path(f"/proc/{pid}/comm").read_text().strip() if Path(f"/proc/{pid}").exists() else "") == "vitrail"}

    def rank_on(self, node):
        """The process of the rank on a node."""
        return next(pid for pid in self.ranks() if pid in self.slurm.processes_on(node))

    def expect_nobody(self, seconds):
        until(lambda: not processes(str(self.folder)), f"end of {self.folder.name}: {processes(str(self.folder))}", seconds)


def finishes(slurm):
    words = ["--set", "train.steps=20"]
    job = BatchJob(slurm, "finishes", words)
    job.expect_exit(0)
    job.expect_log("restart 0, 2 ranks", f" {slurm.name}2 ")
    compare(job.folder, slurm.reference(words))


def warned(slurm):
    """By the signal that Slurm sends before a job's time is over, sent when the run has made steps."""
    job = BatchJob(slurm, "warned", SHORT).await_step()
    subprocess.run(["scancel", "--batch", "--signal=USR1", job.number], check=True)
    job.await_state("COMPLETED", seconds=300)
    job.expect_log("USR1: the ranks save and stop", "the ranks ended with 75", ": requeued", "restart 1, 2 ranks", "resumed at")
    compare(job.folder, slurm.reference(SHORT))
    return f"{job.facts()['Restarts']} requeue"


def warned_by_the_clock(slurm):
    job = BatchJob(slurm, "clock", [*ENDLESS, *RARELY], ["--time=1", "--signal=B:USR1@50"]).await_step()
    until(lambda: "restart 1, 2 ranks" in job.text(), "second start", 180)
    job.expect_log("USR1: the ranks save and stop", "the ranks ended with 75", ": requeued")
    until(lambda: "resumed at" in job.text(), "step after the second start", 60)
    subprocess.run(["scancel", job.number], check=True)
    job.expect_nobody(KILL_WAIT)


def cancelled(slurm):
    job = BatchJob(slurm, "cancelled", [*ENDLESS, *RARELY]).await_step()
    subprocess.run(["scancel", job.number], check=True)
    start = time.time()
    job.expect_nobody(KILL_WAIT)
    seconds = time.time() - start
    job.await_state("CANCELLED", seconds=30)
    job.expect_log("everything is saved", "the ranks ended with 75")
    time.sleep(3)
    if job.facts()["JobState"] != "CANCELLED" or job.facts()["Restarts"] != "0":
        raise Broken(f"a cancelled job is {job.facts()}")
    return f"gone after {seconds:.1f} s"


def finish_on(slurm, job, node):
    """The node comes back: the requeued job is resumed and leaves the weights of an undisturbed run."""
    slurm.start_node(node)
    job.await_state("COMPLETED", seconds=300)
    job.expect_log("restart 1, 2 ranks", "resumed at")
    compare(job.folder, slurm.reference(SHORT))


def slurmd_killed(slurm):
    """Of a node whose rank hangs: Slurm gives the node up before the ranks' deadline, and requeues the job."""
    node = slurm.name + "2"
    job = BatchJob(slurm, "slurmd", SHORT, deadline=600).await_step()
    rank = job.rank_on(node)
    os.kill(rank, signal.SIGSTOP)
    slurm.kill_slurmd(node)
    start = time.time()
    job.await_state("PENDING", "REQUEUED", seconds=120)
    given_up = time.time() - start
    os.kill(rank, signal.SIGCONT)
    until(lambda: not job.ranks(), f"end of the ranks {job.ranks()}", KILL_WAIT)
    finish_on(slurm, job, node)
    return f"requeued {given_up:.0f} s after, finished {time.time() - start:.0f} s after"


def node_lost(slurm):
    """With all that ran there: the other ranks end at once and say which is gone, and Slurm requeues the job in its time."""
    node = slurm.name + "2"
    job = BatchJob(slurm, "node", SHORT).await_step()
    slurm.kill_slurmd(node)
    for pid in slurm.processes_on(node):
        os.kill(pid, signal.SIGKILL)
    start = time.time()
    until(lambda: not job.ranks(), f"end of the ranks {job.ranks()}", DEADLINE + SLACK)
    noticed = time.time() - start
    job.expect_log(f"rank 1 on {node}", "was killed")
    job.await_state("PENDING", "REQUEUED", seconds=120)
    finish_on(slurm, job, node)
    return f"ranks gone {noticed:.1f} s after, finished {time.time() - start:.0f} s after"


def rank_killed(slurm):
    job = BatchJob(slurm, "killed", SHORT).await_step()
    os.kill(job.rank_on(slurm.name + "2"), signal.SIGKILL)
    job.await_state("COMPLETED", seconds=300)
    job.expect_log(f"error: rank 1 on {slurm.name}2", "was killed", "ended with 137", "requeued after loss 1 of 3", "resumed at")
    compare(job.folder, slurm.reference(SHORT))


def rank_killed_once_too_often(slurm):
    job = BatchJob(slurm, "often", [*ENDLESS, *RARELY], losses=0).await_step()
    os.kill(job.rank_on(slurm.name + "2"), signal.SIGKILL)
    job.expect_exit(137)
    job.expect_nobody(DEADLINE)


def other_number_of_tasks(slurm):
    words = ["--set", "mesh.dp=2", "--set", "data.train=folder:/nowhere"]
    job = BatchJob(slurm, "tasks", words, tasks=2)
    job.expect_exit(64)
    job.expect_log("mesh.dp 2", "does not make the 4 ranks of this run")
    if job.folder.exists():
        raise Broken("a folder was made for a run that cannot be")


def without_pmix(slurm):
    done = subprocess.run(["srun", "--mpi=none", "--nodes=2", "--ntasks-per-node=1", slurm.vitrail, "train", "--config",
                           slurm.config, "--out", str(slurm.work / "none")], capture_output=True, text=True, timeout=60)
    if done.returncode != 64 or "srun --mpi=pmix" not in done.stderr:
        raise Broken(f"{done.returncode}: {done.stderr[-900:]}")


CASES = [finishes, other_number_of_tasks, without_pmix, cancelled, rank_killed_once_too_often, rank_killed, warned,
         warned_by_the_clock, node_lost, slurmd_killed]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vitrail")
    parser.add_argument("config")
    parser.add_argument("--only", default="", help="cases whose name has this word")
    args = parser.parse_args()
    missing = [program for program in PROGRAMS if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if os.geteuid() != 0 or missing:
        print(f"slurm: skipped: {' '.join(missing) + ' not installed' if missing else 'network namespaces need root'}")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        try:
            with Slurm(os.path.abspath(args.vitrail), os.path.abspath(args.config), Path(work)) as slurm:
                for check in CASES:
                    if args.only not in check.__name__:
                        continue
                    start, told = time.time(), ""
                    try:
                        told = check(slurm) or ""
                    except (Broken, OSError, subprocess.SubprocessError, LookupError) as error:
                        failed, told = failed + 1, f"FAILED: {error}"
                    print(f"slurm: {check.__name__}: {time.time() - start:.1f} s {told}", flush=True)
        except PermissionError as error:
            print(f"slurm: skipped: {error}")
            return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
