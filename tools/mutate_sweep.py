"""Faults that nobody had to write: drawn from all of src, built at once, each tried with the tests that meet it.
  tools/mutate sweep build [--seed N] [--density LINES] [--sample COUNT] [--only FOLDER...] [--list PATTERN...]
                           [--programs FOLDER...] [--tree FOLDER] [--jobs N]
  tools/mutate sweep reach | run | report [OPTIONS]     see tools/sweep_run.py
  tools/mutate sweep pack FOLDER                        for another host: sweep_run.py reach FOLDER, then run FOLDER
One fault in LINES lines, or COUNT of those, the same ones for the same sources and seed; or, with --list, those of
tools/mutate.d/PATTERN.txt. What does not compile is left out: the compiler's messages name the lines, and the build goes
on without them."""
import argparse
import fnmatch
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import mutate_list
import mutate_tree
import sweep_faults
import sweep_run

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "build" / "sweep"
STAGE, DROPPED = HOME / "stage", HOME / "dropped.json"
# Another compiler's code, hot loops and what no test program links.
LEFT_OUT = re.compile(r"src/(backend/cuda/|.*/isa/|dist/mpi/|cli/main\.cpp)")
HALF = re.compile(r"src/backend/ref/")  # of the density
PROGRAMS = ["base", "tensor", "graph", "ops", "passes", "plan", "backend", "dist", "runtime", "models", "optim", "data",
            "io", "train", "ranks", "launch", "api", "telemetry", "simulate", "measure", "cli"]
NEAR = {"image": "test_data"}  # of layers without a program of their own
PLACE = re.compile(r"(?:^|[\s/])(src/[\w./]+\.cpp):(\d+):(?:\d+:)?\s*(?:error|required from here|fatal error)", re.MULTILINE)
# Most time goes into the compiler; kernels without faults stay as quick as they are.
UNITY, PLAIN = "  vt_unity(vt_${target} 8)\n", "  target_compile_options(vt_${target} PRIVATE -O1 -w)\n"


def draw(root, names, density, seed):
    """The faults of all sources, numbered from 1."""
    faults = []
    for name in sorted(names):
        if name.startswith("src/") and name.endswith(".cpp") and not LEFT_OUT.match(name):
            faults += sweep_faults.drawn(name, (root / name).read_text(), density * (2 if HALF.match(name) else 1), seed)
    for number, fault in enumerate(faults, 1):
        fault.number = number
    return faults


def sampled(faults, count, seed):
    """So many of the faults, each as likely as any other; all of them where no number is given."""
    return sorted(random.Random(seed).sample(faults, count), key=lambda fault: fault.number) if count else faults


def listed(root, patterns):
    """Layers of tools/mutate.d by their lists' names, but for those of GPUs, and their faults as drawn ones look."""
    layers = [layer for layer in mutate_list.load(Path(__file__).parent / "mutate.d")
              if not layer.device and any(fnmatch.fnmatch(layer.name, pattern) for pattern in patterns)]
    if not layers:
        raise SystemExit(f"no list of the CPU in tools/mutate.d is called {' or '.join(patterns)}")
    for number, fault in enumerate((fault for layer in layers for fault in layer.faults), 1):
        fault.number = number
    return layers, [sweep_faults.Fault(fault.name, fault.file, mutate_list.line_of(fault, (root / fault.file).read_text()),
                                       fault.original, fault.mutated, [], fault.number)
                    for layer in layers for fault in layer.faults]


def name_of(fault):
    return f"{fault.file[4:]}:{fault.line}:{fault.kind}"


def files_of(root, names, faults, layers=()):
    """{name: content} of the tree, with drawn faults or with those of layers."""
    files, runtime = {name: (root / name).read_bytes() for name in names}, Path(__file__).parent / "mutate.d"
    kept = {fault.number for fault in faults}
    for layer in layers:
        layer.faults = [fault for fault in layer.faults if fault.number in kept]
    for name in {fault.file for fault in faults}:
        text, of_file = files[name].decode(), [fault for fault in faults if fault.file == name]
        files[name] = (mutate_list.planted(name, text, layers) if layers else sweep_faults.planted(text, of_file)).encode()
    for suffix in ("h", "cpp"):
        files[f"src/base/vt_fault.{suffix}"] = (runtime / f"sweep_fault.{suffix}").read_bytes()
    for folder in PROGRAMS:
        files[f"tests/{folder}/vt_fault_listener.cpp"] = (runtime / "sweep_listener.cpp").read_bytes()
    layers = files["cmake/layers.cmake"].decode()
    assert UNITY in layers
    files["cmake/layers.cmake"] = layers.replace(UNITY, PLAIN + UNITY).encode()
    return files


def blamed(faults, log):
    """Faults in lines that the compiler's messages name, or else the nearest within a few lines."""
    found = set()
    for name, line in PLACE.findall(log):
        line = int(line) - sweep_faults.HEADER.count("\n")
        near = sorted((abs(fault.line - line), fault.number) for fault in faults if fault.file == name)
        if near and near[0][0] <= 5:
            found.add(near[0][1])
    return found


def compiled(root, tree, names, faults, layers, programs, jobs):
    """Builds test programs; the faults that are in them."""
    dropped = set(json.loads(DROPPED.read_text())) if DROPPED.exists() else set()
    while True:
        left = [fault for fault in faults if name_of(fault) not in dropped]
        mutate_tree.fill(tree, files_of(root, names, left, layers))
        subprocess.run(["cmake", "--preset", "release", "-DVITRAIL_CUDA=OFF", "-DVITRAIL_MPI=OFF",
                        "-DVITRAIL_TEST_ROOT=."], cwd=tree, check=True, stdout=subprocess.DEVNULL)
        with (HOME / "build.log").open("w") as log:
            done = subprocess.run(["cmake", "--build", tree / "build/release", "--parallel", str(jobs), "--target",
                                   *programs, "--", "-k", "0"], stdout=log, stderr=subprocess.STDOUT)
        if done.returncode == 0:
            return left
        bad = blamed(left, (HOME / "build.log").read_text())
        print(f"{len(left)} faults, {len(bad)} do not compile", flush=True)
        if not bad:
            raise SystemExit(f"the copy does not build: {HOME / 'build.log'}")
        dropped |= {name_of(fault) for fault in left if fault.number in bad}
        DROPPED.write_text(json.dumps(sorted(dropped)))


def layer_of(file):
    return file.split("/")[1]


def facts_of(root, faults, programs):
    lines = {fault.file: (root / fault.file).read_text().splitlines() for fault in faults}
    rows = [{"number": fault.number, "name": name_of(fault), "layer": layer_of(fault.file), "file": fault.file,
             "near": NEAR.get(layer_of(fault.file), f"test_{layer_of(fault.file)}"), "line": fault.line,
             "from": fault.before, "to": fault.after, "text": lines[fault.file][fault.line - 1].strip()}
            for fault in faults]
    return {"faults": rows, "layers": {row["layer"]: {"programs": programs, "filter": "*"} for row in rows}}


def build(args):
    tree, names = Path(args.tree).resolve(), mutate_tree.tracked_files(ROOT)
    HOME.mkdir(parents=True, exist_ok=True)
    if args.list:
        layers, faults = listed(ROOT, args.list)
    else:
        layers, faults = [], sampled(draw(ROOT, names, args.density, args.seed), args.sample, args.seed)
    faults = [fault for fault in faults if fault.file.startswith(tuple(args.only or ["src/"]))]
    print(f"{len(faults)} faults of {len({fault.file for fault in faults})} files", flush=True)
    programs = [f"test_{folder}" for folder in args.programs]
    faults = compiled(ROOT, tree, names, faults, layers, programs, args.jobs)
    mutate_tree.stage(ROOT, STAGE, facts_of(ROOT, faults, programs), tree / "build/release", programs)
    print(f"{len(faults)} faults built: {STAGE}")


def main(arguments):
    if arguments[:1] in (["reach"], ["run"], ["report"]):
        return sweep_run.main([arguments[0], str(STAGE), *arguments[1:]])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "reach", "run", "report", "pack"])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--density", type=float, default=40, help="lines for each fault")
    parser.add_argument("--sample", type=int, help="only so many of them, drawn by the same seed")
    parser.add_argument("--only", nargs="+", help="folders of src, as src/plan/")
    parser.add_argument("--list", nargs="+", metavar="PATTERN", help="those of tools/mutate.d/PATTERN.txt instead")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS, metavar="FOLDER",
                        help="only the test programs of these folders of tests")
    parser.add_argument("--tree", default=HOME / "tree", help="where the copy goes: a compiler cache knows paths")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at once")
    args = parser.parse_args(arguments)
    if args.command == "pack":
        folder = Path(args.folder or parser.error("pack needs a folder"))
        return mutate_tree.pack(STAGE, folder, ["sweep_run.py", "mutate_run.py"])
    return build(args)
