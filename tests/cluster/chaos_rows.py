"""The rows D1 to D13: a fault, how it is made, what must be seen. Each attempt gets the run of tries (chaos.Chaos), its kind and its own
random numbers, and raises Broken where something did not hold."""
import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from chaos_run import STEADY, fill, filler_of, random_faults, slow_network_job, small_disk
from faults import PHASES, png
from jobs import DEADLINE, ENDLESS, HOST, Broken, Job, compare, processes
from kill_train import check_complete

SHORT = ("--set", "train.steps=40")
MPIRUN = ("mpirun", "--oversubscribe", "--bind-to", "none")
LEAVES = {69, 70, 137}  # how a job may end whose ranks cannot hear each other


def needs_nothing(_):
    return ""


def needs_nodes(_):
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [program for program in ("ip", "tc", "iptables", "unshare") if not shutil.which(program)]
    return f"not installed: {' '.join(missing)}" if missing else ""


def needs_shim(chaos):
    shim = Path(chaos.vitrail).parent / "tests/faults/libfault_shim.so"
    return needs_nodes(chaos) or ("" if shim.exists() else f"{shim} is not built")


def needs_netem(chaos):
    """Delay and reordering need a kernel with netem."""
    if why := needs_nodes(chaos):
        return why
    tried = subprocess.run(["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"],
                           capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"this kernel has no netem ({tried.stderr.strip()})"


def needs_tests(chaos):
    program = Path(chaos.vitrail).parent / "test_dist"
    return "" if program.exists() else f"{program} is not built"


def run_to_the_end(job, chaos, words=SHORT):
    compare(job.wait(240).expect(0, last=False).expect_nobody().folder, chaos.reference(*words))


# D1
def kill_a_rank(chaos, kind, draw):
    phase, rank = draw.choice(PHASES), draw.randrange(2)
    step = 0 if phase == "init" else draw.randrange(3, 25)
    fault = f"{rank}:{phase}:{step}:kill:MARKER"
    if kind == "ends":
        job = Job(chaos, f"d1-{phase}", ENDLESS, fault).wait()
        job.expect(137, f"rank {rank} on {HOST}", "was killed", f"in {phase}").expect_nobody().expect_within(DEADLINE)
        if phase != "init":
            job.expect(137, " at step ").expect_crash_file(rank)
        return
    job = Job(chaos, f"d1-{phase}-again", SHORT, fault, start=("launch", "-n", "2", "--mpirun", "--max-restarts", "2"))
    run_to_the_end(job, chaos)
    job.expect(0, f"rank {rank} on {HOST}", "was killed", f"in {phase}", "restart 1 of 2", last=False)


# D2
def stop_a_rank(chaos, kind, draw):
    if kind == "for ever":
        return chaos.stopped(draw.randrange(2))
    seconds = int(kind.split()[0])
    job = Job(chaos, f"d2-{seconds}", SHORT, f"{draw.randrange(2)}:forward:{draw.randrange(3, 30)}:stop:MARKER",
              deadline=15 if seconds < 10 else 3 * seconds)
    job.await_that(lambda: "T" in processes(job.word).values(), "stopped rank", 60)
    time.sleep(seconds)
    for pid, state in processes(job.word).items():
        if state == "T":
            os.kill(pid, signal.SIGCONT)
    run_to_the_end(job, chaos)
    job.expect(0, "was silent for", last=False)
    if '"slow_rank"' not in (job.folder / "metrics.jsonl").read_text():
        raise Broken("the log has no slow_rank")


# D3
def part_nodes(chaos, kind, draw):
    node = str(draw.choice((1, 2)))
    with chaos.nodes() as nodes:
        job = nodes.job(chaos, f"d3-{node}", ENDLESS)
        job.await_step()
        time.sleep(draw.uniform(0, 0.5))
        if kind == "link down":
            nodes.call("cut", node)
        else:
            nodes.call("lose", node, "1")
        job.marker.touch()
        job.wait()
        if kind == "link down":
            job.expect(69, f"rank {int(node) - 1} on {nodes.name}{node}", "is cut off", " at step ")
        elif job.code not in LEAVES or f"{nodes.name}{node}" not in job.lines()[-1]:
            raise Broken(f"exit code {job.code}: {job.lines()[-1]}")
        job.expect_nobody(DEADLINE + 3).expect_within(DEADLINE)


# D4
def worsen_the_link(chaos, kind, draw):
    chaos.reference(*SHORT)
    with chaos.nodes() as nodes:
        job = nodes.job(chaos, "d4", SHORT, deadline=60)
        job.await_that(lambda: (job.folder / "metrics.jsonl").exists(), "log", 60)
        for node in "12":
            if kind == "5 % lost":
                nodes.call("lose", node, f"{draw.uniform(0.04, 0.06):.3f}")
            else:
                nodes.call("shape", node, *("tbf rate 1mbit burst 16kb latency 400ms" if kind == "1 Mbit/s"
                                            else "netem delay 100ms 20ms reorder 5%").split())
        run_to_the_end(job, chaos)


# D5: steps of a slow network, so that there are some between two flaps
def flap(chaos, _, draw):
    words, node, flaps = ("--set", "train.steps=120", *STEADY), draw.choice("12"), 0
    chaos.reference(*words)
    with chaos.nodes() as nodes:
        job = slow_network_job(chaos, nodes, "d5", words, deadline=15)
        job.await_step(90)
        while job.process.poll() is None and flaps < 12:
            nodes.call("cut", node)
            time.sleep(1)
            nodes.call("heal", node)
            flaps += 1
            end = time.monotonic() + 9
            while job.process.poll() is None and time.monotonic() < end:
                time.sleep(0.2)
        job.wait(240)
        if job.code == 0:
            compare(job.folder, chaos.reference(*words))
        elif job.code not in LEAVES or not job.lines()[-1].startswith("error: rank"):
            raise Broken(f"exit code {job.code}: {job.text()[-600:]}")
        job.expect_nobody(DEADLINE)
        return f"{flaps} flaps, exit code {job.code}"


# D6
def bar_one_rank(chaos, draw):
    """Its view of the checkpoints' folder is read-only for a while; the other rank may write."""
    rank, words = draw.randrange(2), ("--set", "train.steps=200")
    job = Job(chaos, "d6-ro", [*words, ":", "-n", "1", "unshare", "--mount", chaos.vitrail, "train", "--config", chaos.config, "--out",
                               "FOLDER", "--threads", "1", "--deadline", "3", *words],
              start=(*MPIRUN, "-n", "1", "unshare", "--mount"))
    job.await_step()
    folder = job.folder / "checkpoints"
    enter = ["nsenter", "--target", str(job.ranks()[rank]), "--mount"]
    # Refused while a file there is open for writing.
    subprocess.run([*enter, "sh", "-c", 'mount --bind "$0" "$0" && until mount -o remount,bind,ro "$0"; do sleep 0.02; done',
                    str(folder)], check=True, timeout=60)
    job.await_that(lambda: job.events("write_failed"), "write_failed", 60)
    subprocess.run([*enter, "umount", "--lazy", str(folder)], check=False)
    return rank, job, words


def fill_the_disk(chaos, draw):
    """The file system of checkpoints is full for a while, for all ranks."""
    words = ("--set", "train.steps=200")
    job = Job(chaos, "d6-full", words, in_folder=small_disk)
    job.await_step()
    time.sleep(draw.uniform(0, 0.5))
    # Older checkpoints make room, down to two: what they leave is taken, too.
    job.await_that(lambda: fill(job.folder) and job.events("write_failed"), "write_failed", 60)
    filler_of(job.folder).unlink()
    return None, job, words


def fail_to_save(chaos, kind, draw):
    if kind == "no room for one rank":
        return chaos.no_room(str(Path(chaos.vitrail).parent / "tests/faults/libfault_shim.so"), draw.randrange(2))
    rank, job, words = (bar_one_rank if kind == "read-only for one rank" else fill_the_disk)(chaos, draw)
    job.wait(240).expect(0, last=False).expect_nobody()
    compare(job.folder, chaos.reference(*words))
    check_complete(job.folder)
    said = job.events("write_failed")
    if len({line["step"] for line in said if "checkpoint" in line["text"]}) != sum("checkpoint" in line["text"] for line in said):
        raise Broken(f"a failed save was told more than once: {said}")
    if rank is not None and not all(f"rank {rank}: " in line["text"] for line in said):
        raise Broken(f"not rank {rank}: {said}")


# D7
def other_program(chaos):
    """The program with another version in it."""
    folder = chaos.work / "other-program"
    if not folder.exists():
        made = chaos.work / f"making-{chaos.number()}"
        made.mkdir()
        for library in Path(chaos.vitrail).parent.glob("libvitrail*"):
            (made / library.name).symlink_to(library)
        version = subprocess.run([chaos.vitrail, "--version"], capture_output=True, text=True).stdout.split()[1].encode()
        four = version[:4]  # of "0.3.0": compilers put so many into one instruction
        other = made / "vitrail"
        other.write_bytes(Path(chaos.vitrail).read_bytes().replace(four, four.replace(version[2:3], b"9")))
        other.chmod(0o755)
        try:
            made.rename(folder)
        except OSError:
            pass  # another try was faster
    return str(folder / "vitrail")


def start_mixed(chaos, kind, draw):
    settings = {"config": ("optim.lr", draw.choice(("0.5", "0.25"))), "seed": ("train.seed", str(draw.randrange(2, 99))),
                "data": ("data.train", f"synthetic:3x8x8x4x{draw.choice((48, 64, 72))}")}.get(kind)
    told = {"config": "optim.lr is", "seed": "train.seed is", "data": "data.train, its names and labels,",
            "program": "the program is"}[kind]
    other = ["--set", "=".join(settings)] if settings else []
    folder = chaos.work / f"d7-other-{chaos.number()}"
    job = Job(chaos, "d7", [":", "-n", "1", chaos.vitrail if settings else other_program(chaos), "train", "--config", chaos.config,
                            "--out", str(folder), "--threads", "1", "--deadline", "3", *other],
              start=(*MPIRUN, "-n", "1")).wait()
    job.expect(64, told, "on rank 1", last=False).expect_nobody()
    if (job.folder / "checkpoints").exists():
        raise Broken(f"{kind}: the run was begun")


# D8
def uneven_data(chaos, kind, draw):
    if kind == "an image missing on one rank":
        return missing_on_one_rank(chaos, draw)
    ranks = draw.choice((2, 3))
    images = draw.choice([n for n in range(50, 140) if n % ranks and n % 24])
    words = ["--set", f"data.train=synthetic:3x8x8x4x{images}", "--set", "train.batch=24", "--set", "train.micro_batch=0", *SHORT]
    logs = []
    for count in (ranks, 1):
        job = Job(chaos, f"d8-{count}", words, start=("launch", "-n", str(count), "--mpirun" if count > 1 else "--rank-threads"))
        job.wait(120).expect(0, *([f"each pass leaves out {images % 24} of them"] if count > 1 else []), last=False).expect_nobody()
        logs.append({line["step"]: line["loss"] for line in map(json.loads, (job.folder / "metrics.jsonl").read_text().splitlines())
                     if line["kind"] == "train"})
    worst = max(abs(logs[0][step] - loss) / abs(loss) for step, loss in logs[1].items())
    if logs[0].keys() != logs[1].keys() or not worst < 1e-5:
        raise Broken(f"{images} images on {ranks} ranks: losses differ from one rank's by {worst:.1e}")


def missing_on_one_rank(chaos, draw):
    folders = [chaos.work / f"d8-images-{chaos.number()}" for _ in range(2)]
    for folder in folders:
        for label in "ab":
            (folder / label).mkdir(parents=True)
            for i in range(12):
                (folder / label / f"{i:02}.png").write_bytes(png(i))
    next(folders[1].glob(f"{draw.choice('ab')}/{draw.randrange(12):02}.png")).unlink()
    words = [["--set", f"data.train=folder:{folder}", "--set", "data.val_fraction=0"] for folder in folders]
    job = Job(chaos, "d8-missing", [*words[0], ":", "-n", "1", chaos.vitrail, "train", "--config", chaos.config, "--out",
                                    str(chaos.work / f"d8-other-{chaos.number()}"), "--threads", "1", "--deadline", "3", *words[1]],
              start=(*MPIRUN, "-n", "1")).wait()
    job.expect(64, "data.train, its names and labels,", "on rank 1", last=False).expect_nobody()


# D9
def flip_a_bit(chaos, _, draw):
    words = ("--set", "train.batch=12", "--set", "mesh.verify_every=3", *SHORT)
    start = ("launch", "-n", "3", "--mpirun")
    rank, step = draw.randrange(3), draw.randrange(1, 36)
    whole = chaos.reference(*words, start=start)
    job = Job(chaos, "d9", words, f"{rank}:flip:{step}:{draw.randrange(1 << 30)}:MARKER", start=start)
    job.wait(120).expect(0, last=False).expect_nobody()
    events = [json.loads(line) for line in (job.folder / "metrics.jsonl").read_text().splitlines()]
    told = [event["text"] for event in events if event.get("what") == "replica_differs"]
    if len(told) > 1 or (told and f"rank {rank}" not in told[0]):
        raise Broken(f"rank {rank} flipped after step {step}: told {told}")
    # A low bit of a moment may be rounded away before the next comparison: then nothing of it is left.
    compare(job.folder, whole)
    return None if told else f"rank {rank}, step {step}: gone before the next comparison"


# D10, D11
def kill_the_starter(chaos, kind, _):
    (chaos.launcher_killed if kind == "launch" else chaos.mpirun_killed)()


def fail_to_meet(chaos, kind, draw):
    if kind == "port taken":
        return chaos.port_taken()
    if kind == "wrong host":
        job = Job(chaos, "d11", start=("launch", "-n", "2", "--hosts", f"{HOST}:1,nobody-{draw.randrange(1000)}.invalid:1"))
        job.wait(60).expect(69, "no command can be started on nobody-").expect_nobody()
        return None
    Job(chaos, "d11", ENDLESS, f"{draw.randrange(2)}:init:0:absent", deadline=1).wait().expect(
        69, " of 2 never came").expect_nobody()


# D13
NCCL_ERRORS = ("AnErrorOfAMeetingEndsAllRanks", "ASilentMeetingEndsAtTheDeadline", "AnErrorOfACallIsTold", "ALateErrorEndsWhatWaits",
               "SilenceEndsAtTheDeadline", "AnAbortOfTheRanksReachesTheirDevices")


def fail_in_nccl(chaos, kind, _):
    """By a library with NCCL's names that fails on cue; two ranks of one GPU are refused by the real one."""
    done = subprocess.run([Path(chaos.vitrail).parent / "test_dist", f"--gtest_filter=Nccl.{kind}"], capture_output=True, text=True,
                          timeout=60)
    if done.returncode != 0 or "[  PASSED  ] 1 test" not in done.stdout:
        raise Broken(done.stdout[-600:] + done.stderr[-300:])


@dataclass
class Row:
    name: str
    fault: str
    seen: str  # what must be
    n: int  # tries before a release,
    ci: int  # and in a short round
    attempt: Callable
    kinds: tuple = ("",)
    lacks: Callable = needs_nothing
    jobs: int = 2  # tries at a time


ROWS = [
    Row("D1", "a rank killed in any phase", "the others gone, rank, host, phase and step named; restarted, bit-equal", 500, 6,
        kill_a_rank, ("ends", "restarts")),
    Row("D2", "a rank stopped", "5 and 60 s: told, bit-equal; for ever: the deadline ends the job", 60, 4, stop_a_rank,
        ("5 s", "for ever", "5 s", "for ever", "for ever", "60 s"), jobs=4),
    Row("D3", "nodes that cannot reach each other", "ended within the deadline, the node named", 60, 3, part_nodes,
        ("link down", "hears nobody"), needs_nodes),
    Row("D4", "a bad link", "slower, bit-equal", 20, 2, worsen_the_link, ("1 Mbit/s", "5 % lost"), needs_nodes),
    Row("D4-delay", "delay and reordering", "slower, bit-equal", 20, 1, worsen_the_link, ("delay",), needs_netem),
    Row("D5", "a link that is down 1 s in 10", "bit-equal, or a clean end", 20, 1, flap, ("flaps",), needs_nodes),
    Row("D6", "a disk that cannot be written at a save", "nobody commits, all go on, told once, bit-equal", 40, 4, fail_to_save,
        ("read-only for one rank", "full", "no room for one rank"), needs_shim),
    Row("D7", "a rank with another program, config, seed or data", "refused, the difference named", 20, 4, start_mixed,
        ("config", "seed", "data", "program")),
    Row("D8", "data that ranks cannot share evenly", "counted, losses of one rank; what differs is refused", 40, 4, uneven_data,
        ("uneven", "an image missing on one rank")),
    Row("D9", "a bit flipped in one replica", "named at the next comparison and undone, or rounded away before; bit-equal", 50, 3, flip_a_bit, ("flip",)),
    Row("D10", "the launcher killed", "no rank left within 15 s", 50, 2, kill_the_starter, ("launch", "mpirun")),
    Row("D11", "ranks that do not meet", "ended, naming port, host or ranks", 20, 3, fail_to_meet,
        ("port taken", "absent", "wrong host")),
    Row("D12", "faults at random", "finished, bit-equal", 20, 1, random_faults, ("run",), needs_nodes, jobs=1),
    Row("D13", "NCCL fails or hangs", "the job is ended, no hang", 40, 6, fail_in_nccl, NCCL_ERRORS, needs_tests),
]
