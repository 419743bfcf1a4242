#!/usr/bin/env python3
"""predict, eval and the benches on ranks that are processes: what they print is what one rank prints.

inference.py VITRAIL SOURCE [answers|benches|refusals ...]

Each command runs alone, under plain mpirun and under `vitrail launch`, with two ranks. 0 when all held."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MPIRUN = ["mpirun", "-n", "2", "--bind-to", "none", "--oversubscribe"]
CLASSES = ["anemone", "bell tower", "crab", "dune", "elm"]


class Broken(Exception):
    """What did not hold."""


def run(command, code=0, stdin=""):
    """stdout and stderr of a command that must end with this code."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=os.environ | AS_ROOT, timeout=60)
    if done.returncode != code:
        raise Broken(f"{' '.join(command)}: exit code {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def near(one, other):
    """Whether two JSON values have the same form and near numbers; what a clock says may differ."""
    if isinstance(one, dict):
        return list(one) == list(other) and all(near(one[k], other[k]) for k in one if k not in ("seconds", "img_per_s"))
    if isinstance(one, list):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, float):
        return abs(one - other) < 1e-5
    return one == other


def ways(vitrail):
    """What starts two ranks, before the command itself."""
    yield "mpirun", [*MPIRUN, vitrail]
    yield "launch", [vitrail, "launch", "-n", "2", "--mpirun"]
    yield "launch, threads", [vitrail, "launch", "-n", "2", "--rank-threads"]


def check_answers(vitrail, model, folder):
    """Every rank takes a part, and one prints."""
    predict = ["predict", "-m", model, "--logits", "--threads", "1", "--batch", "3", "--json"]
    evaluate = ["eval", "-m", model, "--data", f"folder:{folder}", "--threads", "1", "--batch", "4", "--json"]
    names = "".join(f"{path}\n" for path in sorted(Path(folder).rglob("*.png")))
    for command, stdin in ((predict + [folder], ""), (predict + ["-"], names), (evaluate, "")):
        one = [json.loads(line) for line in run([vitrail, *command], stdin=stdin)[0].splitlines()]
        for name, start in ways(vitrail):
            if stdin and "launch" in start:
                _, err = run([*start, *command], 64, stdin)
                if "@FILE" not in err:
                    raise Broken(err)
                continue
            for mesh in ([], ["--mesh", "tp=2"]):
                out, _ = run([*start, *command, *mesh], stdin=stdin)
                many = [json.loads(line) for line in out.splitlines()]
                if not near(one, many):
                    raise Broken(f"{name} {' '.join(command)} {mesh}:\n{many}\nand alone\n{one}")


def check_benches(vitrail):
    """The benches run under every launcher, and tell of it once."""
    tiny = ["--set", "model.depth=1", "--set", "model.heads=2", "--image", "32", "--threads", "1", "--json"]
    for name, start in ways(vitrail):
        infer = ["bench", "infer", "--weights", "rule", "-m", "vit_tiny_patch16_224", *tiny, "--seconds", "0", "--mesh", "tp=2"]
        result = json.loads(run([*start, *infer])[0])
        if result["ranks"] != 2 or not result["largest_difference"] < 1e-5:
            raise Broken(f"{name} bench infer: {result}")
        train = ["bench", "train", "--weights", "rule", "-m", "vit_tiny_patch16_224", *tiny, "--batch", "4", "--steps", "2",
                 "--warmup", "1"]
        if json.loads(run([*start, *train])[0])["ranks"] != 2:
            raise Broken(f"{name} bench train")
        dist = json.loads(run([*start, "bench", "dist", "--mb", "0.1", "--seconds", "0.1", "--json"])[0])
        if dist["threads"]["ranks"] != 2 or ("mpi" in dist) == name.endswith("threads"):
            raise Broken(f"{name} bench dist: {dist}")


def check_refusals(vitrail, model, folder):
    """Mistakes end with 64 and what would fit; a bad image with 65."""
    image = sorted(Path(folder).rglob("*.png"))[0]
    for _, start in ways(vitrail):
        for mesh, says in (("dp=2,tp=2", "mesh.dp=1 mesh.tp=2"), ("tp=2,zero=1", "zero")):
            _, err = run([*start, "predict", "-m", model, str(image), "--mesh", mesh], 64)
            if says not in err:
                raise Broken(f"{mesh}: {err}")
    _, err = run([vitrail, "launch", "-n", "2", "--max-restarts", "1", "predict", str(image)], 64)
    if "saves nothing" not in err:
        raise Broken(err)
    _, err = run([vitrail, "launch", "-n", "2", "inspect", model], 64)
    if "nothing to share out" not in err:
        raise Broken(err)


def main():
    vitrail, source = sys.argv[1:3]
    checks = sys.argv[3:] or ["answers", "benches", "refusals"]
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from faults import png
    model = f"{source}/tests/golden/models/timm_hub"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as session:
        os.environ["OMPI_MCA_orte_tmpdir_base"] = session  # that of other tests would go when their mpirun ends
        for i in range(7):
            path = Path(folder) / CLASSES[i % 5] / f"{i}.png"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(png(i))
        try:
            for check in checks:
                {"answers": lambda: check_answers(vitrail, model, folder), "benches": lambda: check_benches(vitrail),
                 "refusals": lambda: check_refusals(vitrail, model, folder)}[check]()
        except Broken as broken:
            sys.exit(str(broken))
    print("ok")


if __name__ == "__main__":
    main()
