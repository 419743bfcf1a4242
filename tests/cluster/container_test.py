#!/usr/bin/env python3
"""The image of deploy/container, built from a clean clone, on two "pods".  container_test.py CONFIG [--image-root FOLDER]

Builds the image as deploy/container/build.sh does, and starts its root three times, each in namespaces of its own (pod.sh):
two with sshd and one that runs `vitrail launch --hosts /etc/mpi/hostfile`, which is how the MPI Operator starts a job. Two
steps on both end with the weights of two processes in one pod, bit for bit; a host that does not answer is named (69).
Needs root, buildah, mmdebstrap, openssh-client and Debian's archive; skipped (77) without. BASE, CCACHE_DIR and JOBS
are those of build.sh; --image-root takes a root that was built before."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from jobs import Broken, compare  # noqa: E402

NODES, POD = str(HERE / "two_nodes.sh"), str(HERE / "pod.sh")
BUILD = str(HERE.parent.parent / "deploy" / "container" / "build.sh")
PROGRAMS = ["buildah", "mmdebstrap", "git", "ip", "unshare", "ssh-keygen"]


def build(storage):
    """The root of a fresh image."""
    subprocess.run([BUILD, "localhost/vitrail-test"], check=True, env=dict(os.environ, STORAGE=str(storage)))
    buildah = ["buildah", "--storage-driver", "vfs", "--root", storage / "images", "--runroot", storage / "run"]
    made = subprocess.run([*buildah, "from", "localhost/vitrail-test"], check=True, capture_output=True, text=True)
    return subprocess.run([*buildah, "mount", made.stdout.strip()], check=True, capture_output=True,
                          text=True).stdout.strip()


class Pods:
    """Two pods with sshd, while it is open."""

    def __init__(self, root, work, config):
        self.name, self.root, self.work = f"vt{os.getpid() % 46656:x}p", root, work
        self.runs, self.started = work / "runs", []
        self.runs.mkdir(parents=True)
        shutil.copy(config, self.runs / "my.json")

    def __enter__(self):
        made = subprocess.run([NODES, "up", self.name, "3"], capture_output=True, text=True)
        if made.returncode != 0:
            self.__exit__()
            if "ermitted" in made.stderr or "ermission" in made.stderr:
                raise PermissionError(made.stderr.strip())
            raise RuntimeError(made.stderr.strip())
        try:
            self.start(dict(line.split("=", 1) for line in made.stdout.splitlines())["OMPI_MCA_btl_tcp_if_include"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, net):
        self.nobody = net.replace(".0/24", ".99")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.work / "id_ed25519"], check=True)
        for number in (1, 2):
            log = open(self.work / f"sshd-{number}.log", "w")
            self.started.append(subprocess.Popen(self.command(number, "sshd"), stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        self.hostfile = f"{self.name}1 slots=1\n{self.name}2 slots=1\n"
        self.await_sshd()

    def __exit__(self, *_):
        for process in self.started:
            process.kill()
            process.wait()
        subprocess.run([NODES, "down", self.name], check=False)

    def command(self, number, *words, hostfile="", folder=None):
        """A pod's start; what the operator mounts is laid over its image."""
        node, folder = f"{self.name}{number}", self.work / (folder or f"pod-{number}")
        files = folder / "files"
        for path in ("etc/mpi", "root/.ssh"):
            (files / path).mkdir(parents=True, exist_ok=True)
        (files / "etc/mpi/hostfile").write_text(hostfile)
        shutil.copy(f"/etc/netns/{node}/hosts", files / "etc/hosts")
        shutil.copy(self.work / "id_ed25519", files / "root/.ssh/id_ed25519")
        shutil.copy(self.work / "id_ed25519.pub", files / "root/.ssh/authorized_keys")
        return [POD, node, self.root, folder, self.runs, *words]

    def await_sshd(self):
        start = time.time()
        while any("listening on" not in (self.work / f"sshd-{number}.log").read_text() for number in (1, 2)):
            if time.time() - start > 60 or any(process.poll() is not None for process in self.started):
                raise Broken("sshd: " + (self.work / "sshd-1.log").read_text() + (self.work / "sshd-2.log").read_text())
            time.sleep(0.2)

    def run(self, *words, hostfile=None):
        """The third pod, from its start to its end."""
        folder = f"launcher-{len(list(self.work.glob('launcher-*')))}"
        command = self.command(3, *words, hostfile=self.hostfile if hostfile is None else hostfile, folder=folder)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
        return done.returncode, done.stdout + done.stderr


def train(out, *words):
    return ("train", "--config", "/runs/my.json", "--out", f"/runs/{out}", "--threads", "1", "--set", "train.steps=2", *words)


def two_steps(pods):
    code, text = pods.run("launch", "--hosts", "/etc/mpi/hostfile", *train("both"))
    if code != 0 or "2 ranks (mpi)" not in text or any(f" {pods.name}{number} " not in text for number in (1, 2)):
        raise Broken(f"exit code {code}: {text}")
    code, text = pods.run("launch", "-n", "2", "--mpirun", *train("one"))
    if code != 0:
        raise Broken(f"the reference ended with {code}: {text}")
    compare(pods.runs / "both", pods.runs / "one")


def host_that_does_not_answer(pods, host):
    start = time.time()
    code, text = pods.run("launch", "--hosts", "/etc/mpi/hostfile", *train("none"), hostfile=f"{pods.hostfile}{host} slots=1\n")
    last = text.strip().splitlines()[-1]
    if code != 69 or not last.startswith("error: no command can be started on " + host) or f"{pods.name}1" in last:
        raise Broken(f"exit code {code}: {text}")
    if (pods.runs / "none").exists():
        raise Broken("a folder was made for a run that did not start")
    return f"{time.time() - start:.1f} s: {last}"


def more_ranks_than_slots(pods):
    code, text = pods.run("launch", "-n", "3", "--hosts", "/etc/mpi/hostfile", *train("three"))
    if code != 64 or "3 ranks do not fit the 2 slots" not in text:
        raise Broken(f"exit code {code}: {text}")


def check_all(pods):
    failed = 0
    for check, *arguments in [(two_steps,), (host_that_does_not_answer, "nobody.invalid"),
                              (host_that_does_not_answer, pods.nobody), (more_ranks_than_slots,)]:
        start, told = time.time(), ""
        try:
            told = check(pods, *arguments) or ""
        except (Broken, OSError, subprocess.SubprocessError) as error:
            failed, told = failed + 1, f"FAILED: {error}"
        print(f"container: {check.__name__} {' '.join(arguments)}: {time.time() - start:.1f} s {told}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("--image-root")
    args = parser.parse_args()
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if os.geteuid() != 0 or missing:
        print(f"container: skipped: {' '.join(missing) + ' not installed' if missing else 'namespaces need root'}")
        return 77
    with tempfile.TemporaryDirectory() as work:
        try:
            start = time.time()
            root = args.image_root or build(Path(work) / "storage")
            print(f"container: built in {time.time() - start:.0f} s", flush=True)
            with Pods(root, Path(work) / "pods", os.path.abspath(args.config)) as pods:
                return 1 if check_all(pods) else 0
        except PermissionError as error:
            print(f"container: skipped: {error}")
            return 77
        except (Broken, subprocess.CalledProcessError) as error:
            print(f"container: FAILED: {error}")
            return 1


if __name__ == "__main__":
    sys.exit(main())
