#!/usr/bin/env python3
"""A host without Open MPI starts processes by the one that came along with Vitrail.

bundled_mpi.py CMAKE BUILD CONFIG

Installs the program, its plugin and the Open MPI of the tarball into a folder, moves that, and trains two steps on two
processes, by the host's mpirun. Then again in a mount namespace of its own where the host's Open MPI is hidden, library
by library: what came along leaves the same tensors, `doctor` says which MPI that was, and other hosts are refused.
Skipped (77) where no such namespace may be made, or the host has no Open MPI to bring along."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from kill_train import Broken, compare  # noqa: E402

NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
OWN = "lib/vitrail/openmpi"


def run(*words, code=0):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if done.returncode != code:
        raise Broken(f"{' '.join(map(str, words))}: exit code {done.returncode}, expected {code}: "
                     f"{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout + done.stderr


def install(cmake, build, prefix):
    """Only what the test needs: models are large."""
    made = prefix.with_name("made")
    (made / "bin").mkdir(parents=True)
    shutil.copy2(Path(build) / "vitrail", made / "bin")
    for component in ("mpi", "bundled_mpi"):
        run(cmake, "--install", build, "--prefix", made, "--component", component)
    made.rename(prefix)
    return (prefix / OWN / "bin/mpirun").exists()


def hide(prefix):
    """Programs, plugins and help texts, and each library that the bundle has. zlib stays: the program is linked with it."""
    names = {file.name for file in (prefix / OWN / "lib").iterdir() if file.is_file() and not file.name.startswith("libz.")}
    libraries = {Path(path).resolve() for name, path in re.findall(r"(\S+) \([^)]*\) => (\S+)", run("/sbin/ldconfig", "-p"))
                 if name in names}
    programs = {Path(path).resolve() for name in ("mpirun", "orterun", "orted") if (path := shutil.which(name))}
    paths = dict(re.findall(r"path:(\w+):(\S+)", run("ompi_info", "--path", "all", "--parsable")))
    if not programs or not any("libmpi.so" in file.name for file in libraries):
        raise Broken(f"nothing to hide: {programs} {libraries}")
    for folder in (paths["pkglibdir"], paths["pkgdatadir"]):
        run("mount", "-t", "tmpfs", "none", folder)
    for file in programs | libraries:
        run("mount", "--bind", "/dev/null", file)


def train(prefix, config, out, by):
    """Trains as two processes, and expects `launch` to say by what."""
    told = run(prefix / "bin/vitrail", "launch", "-n", "2", "train", "--config", config, "--set", "train.steps=2",
               "--threads", "1", "--out", prefix.parent / out)
    for words in (f"2 ranks, a process each, by {by}\n", "2 ranks (mpi)"):
        if words not in told:
            raise Broken(f"{words!r} is not in: {told}")


def check(prefix, config):
    vitrail, work = prefix / "bin/vitrail", prefix.parent
    hide(prefix)
    mpirun = str(prefix / OWN / "bin/mpirun")
    mpi = json.loads(run(vitrail, "doctor", "--json"))["mpi"]
    if mpi["problem"] or mpi["mpirun"] != mpirun or not mpi["came_along"] or "Open MPI" not in mpi["library"]:
        raise Broken(f"doctor: {mpi}")
    train(prefix, config, "own", f"the Open MPI that came along, {mpirun}")
    compare(work / "own", work / "system")
    refused = run(vitrail, "launch", "-n", "2", "--hosts", "a:1,b:1", "train", "--config", config, code=69)
    if "apt install openmpi-bin" not in refused:
        raise Broken(f"--hosts: {refused}")


def main():
    if sys.argv[1] == "--hidden":
        check(Path(sys.argv[2]), sys.argv[3])
        return 0
    cmake, build, config = sys.argv[1:]
    if shutil.which("unshare") is None or subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode != 0:
        print("skipped: a mount namespace may not be made here")
        return 77
    with tempfile.TemporaryDirectory(prefix="vitrail-bundle-") as folder:
        prefix = Path(folder) / "moved"
        os.environ["OMPI_MCA_orte_tmpdir_base"] = folder  # that of other tests would go when their mpirun ends
        if not install(cmake, build, prefix):
            print("skipped: there is no Open MPI here to bring along")
            return 77
        train(prefix, config, "system", shutil.which("mpirun"))
        return subprocess.run([*NAMESPACE, sys.executable, "-B", __file__, "--hidden", prefix, config]).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as error:
        sys.exit(f"failed: {error}")
