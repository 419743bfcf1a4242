#!/usr/bin/env python3
"""The same ranks twice leave the same bits, and ranks that were given another program or other data do not begin.

same_bits.py VITRAIL CONFIG

Every run has two processes under mpirun. After 20 updates the checkpoints and best models of two runs hold the same
tensors, bit for bit. Prints one line a case; 0 when all held."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from kill_train import Broken, compare  # noqa: E402

MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


PIPELINE = ("--set", "mesh.pp=2", "--set", "train.accumulation=4", "--set", "train.micro_batch=2", "--set", "augment.mix_group=2")


def train(vitrail, config, folder, *words):
    return [vitrail, "train", "--config", config, "--threads", "1", "--deadline", "5", "--out", str(folder), *words]


MESHES = {"dp": ("--set", "mesh.dp=2"), "zero-3": ("--set", "mesh.zero=3"), "tp": ("--set", "mesh.tp=2"), "pp": PIPELINE}


def run(command):
    done = subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
    return done.returncode, done.stdout + done.stderr


def twice(vitrail, config, work, name, *words):
    for folder in ("a", "b"):
        code, text = run([*MPIRUN, "-n", "2", *train(vitrail, config, work / f"{name}-{folder}", "--set",
                                                     "train.steps=20", *words)])
        if code != 0:
            raise Broken(f"{name}: exit code {code}: {text[-900:]}")
    compare(work / f"{name}-b", work / f"{name}-a")


def threads(vitrail, config, work):
    """Stages add up in one order, whatever carries their values."""
    code, text = run([*train(vitrail, config, work / "pp-threads", "--set", "train.steps=20", *PIPELINE), "--ranks", "2"])
    if code != 0:
        raise Broken(f"threads: exit code {code}: {text[-900:]}")
    compare(work / "pp-threads", work / "pp-a")


def refused(vitrail, config, work, name, other, *words):
    """Rank 1 is given something else: its line names what, and the folder is not begun."""
    folder = work / name
    code, text = run([*MPIRUN, "-n", "1", *train(vitrail, config, folder), ":", "-n", "1",
                      *train(vitrail, config, folder, *other)])
    if code != 64:
        raise Broken(f"{name}: exit code {code}, expected 64: {text[-900:]}")
    for word in words:
        if word not in text:
            raise Broken(f"{name}: {word!r} is not in: {text[-900:]}")
    if (folder / "checkpoints").exists():
        raise Broken(f"{name}: the run was begun")


def main():
    vitrail, config = sys.argv[1], sys.argv[2]
    chosen = sys.argv[3:] or [*MESHES, "refusals"]
    with tempfile.TemporaryDirectory(prefix="vitrail-bits-") as folder:
        work = Path(folder)
        (work / "s").mkdir()
        ENVIRONMENT["OMPI_MCA_orte_tmpdir_base"] = str(work / "s")  # that of other tests would go when their mpirun ends
        for name in filter(MESHES.get, chosen):
            twice(vitrail, config, work, name, *MESHES[name])
            print(f"{name}: the same bits after 20 updates")
        if "pp" in chosen:
            threads(vitrail, config, work)
            print("pp: threads leave the bits of processes")
        if "refusals" not in chosen:
            return
        refused(vitrail, config, work, "other-config", ("--set", "optim.lr=0.5"), "optim.lr is 0.5 on rank 1")
        print("another config: refused, named")
        # Paths may differ between hosts; names and labels may not.
        refused(vitrail, config, work, "other-data", ("--set", "data.train=synthetic:3x8x8x4x64"),
                "data.train, its names and labels,", "on rank 1 and")
        print("other data: refused, named")


if __name__ == "__main__":
    try:
        main()
    except Broken as broken:
        sys.exit(str(broken))
