"""The interface of a peer: open it, request a round of times or logits, close it and read its memory."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent.parent


class Unavailable(Exception):
    """Raised with the reason when a peer cannot take part."""


def environment(threads):
    paths = [str(BENCH), str(BENCH.parent / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads),
            "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def missing_package(packages):
    """Returns the first package that is not installed, or None; nothing is imported into this process."""
    probe = "import importlib.util as u, sys; print(*[p for p in sys.argv[1:] if not u.find_spec(p)])"
    done = subprocess.run([sys.executable, "-c", probe, *packages], capture_output=True, text=True)
    return next(iter(done.stdout.split()), None)


class WorkerSide:
    """A Python peer in a process of its own, which stays for all rounds."""
    starts_by_rule = True

    def __init__(self, peer, case):
        missing = missing_package(peer.packages)
        if missing:
            raise Unavailable(f"{missing} is not installed")
        self.log = tempfile.TemporaryFile(mode="w+")
        start = time.perf_counter()
        self.process = subprocess.Popen([sys.executable, "-m", "peers.worker", peer.module, json.dumps(case)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=environment(case["threads"]))
        ready = self.read()
        self.version, self.note = ready["version"], ready["note"]
        self.ready_s = time.perf_counter() - start

    def read(self):
        line = self.process.stdout.readline()
        said = json.loads(line) if line else {"error": "its process ended: " + self.last_words()}
        if "error" in said:
            self.end()
            raise Unavailable(said["error"])
        return said["answer"]

    def last_words(self):
        self.log.seek(0)
        lines = [line for line in self.log.read().splitlines() if line.strip()]
        return lines[-1] if lines else "without a word"

    def ask(self, **request):
        with contextlib.suppress(BrokenPipeError):  # read() says why
            print(json.dumps(request), file=self.process.stdin, flush=True)
        return self.read()

    def time(self, seconds):
        return self.ask(ask="time", seconds=seconds)

    def logits(self):
        return self.ask(ask="logits")

    def first_loss(self):
        return self.ask(ask="first_loss")

    def close(self):
        """Ends the process; returns the most memory it held, in bytes."""
        peak = self.ask(ask="peak_bytes")
        self.end()
        return peak

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
