#!/usr/bin/env python3
"""Whether two builds of the program give the same bits: logits of inference in every arithmetic, and all weights after
twenty updates of training in each of its ways. A change that is to change nothing is held to it.

    tools/same_results.py OLD NEW [--device cuda] [--only PATTERN...]

OLD and NEW are programs. Needs the bundled DeiT-Tiny, the photographs of examples/ and no other data."""
import argparse
import fnmatch
import gzip
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEIT = ROOT / "models/deit_tiny_patch16_224"
IMAGES = ROOT / "examples/images"
ARITHMETICS = {"cpu": ("f32", "bf16", "int8"), "cuda": ("f32", "bf16", "fp8")}
SMALL = ["model.image=28", "model.patch=7", "model.channels=1", "model.width=64", "model.depth=3", "model.heads=4",
         "model.mlp=128", "preprocess.mean=0.3", "preprocess.std=0.35", "train.batch=16", "train.steps=20",
         "train.seed=7", "optim.lr=0.002"]
# What each way of training adds to SMALL.
WAYS = {
    "f32": [],
    "bf16": ["train.dtype=bf16"],
    "f16": ["train.dtype=f16", "loss_scale.window=4"],
    "accumulation": ["train.accumulation=4"],
    "average": ["optim.ema_decay=0.9"],
    "average bf16": ["optim.ema_decay=0.9", "train.dtype=bf16", "train.low_residual=true"],
    "recompute": ["train.recompute=block", "train.dropout=0.1", "train.drop_path=0.1"],
    "mixed images": ["augment.mixup=0.8", "augment.cutmix=1", "train.smoothing=0.1"],
}


def write_idx(folder):
    """64 drawn images of ten classes as idx files: the same bytes each time."""
    state, pixels = 1, bytearray()
    for _ in range(64 * 28 * 28):
        state = (state * 1103515245 + 12345) % 2**31
        pixels.append(state >> 16 & 255)
    labels = bytes(i % 10 for i in range(64))
    for part in ("train", "t10k"):
        images = struct.pack(">IIII", 0x803, 64, 28, 28) + bytes(pixels)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(struct.pack(">II", 0x801, 64) + labels))


def run(program, words):
    done = subprocess.run([program, *map(str, words)], capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(map(str, words))}\nexit code {done.returncode}\n{done.stderr.decode()[-2000:]}")
    return done.stdout


def logits(program, device, arithmetic, batch):
    return run(program, ["predict", "-m", DEIT, "--logits", "--json", "--dtype", arithmetic, "--batch", batch,
                         "--device", device, IMAGES])


def trained(program, device, settings, folder):
    """Every file of weights that a run leaves, by name."""
    words = [word for setting in settings for word in ("--set", setting)]
    run(program, ["train", "--out", folder, "--device", device, "--quiet", *words])
    found = sorted(folder.glob("checkpoints/step-*/*.safetensors")) + sorted(folder.glob("best/*.safetensors"))
    if not found:
        sys.exit(f"{program}: no weights in {folder}")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def cases(device, data):
    for arithmetic in ARITHMETICS[device]:
        for batch in (1, 8):
            yield f"logits {arithmetic} batch {batch}", lambda program, _, a=arithmetic, b=batch: logits(program, device, a, b)
    small = [*SMALL, f"data.train=idx:{data}"]
    for name, more in WAYS.items():
        yield f"weights {name}", lambda program, folder, s=small + more: trained(program, device, s, folder)
    adapted = [f"model.init={DEIT}", f"data.train=idx:{data}", "model.image=64", "train.batch=8", "train.steps=20",
               "train.seed=7", "lora.rank=4"]
    yield "weights adapters", lambda program, folder: trained(program, device, adapted, folder)

    def taught(program, folder):
        trained(program, device, small, folder / "teacher")
        lesson = ["distill.kind=soft", f"distill.teacher={folder / 'teacher/best'}", "train.dtype=bf16", "train.seed=8"]
        return trained(program, device, small + lesson, folder / "student")

    yield "weights teacher", taught


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("--device", default="cpu", choices=sorted(ARITHMETICS))
    p.add_argument("--only", nargs="+", default=["*"], help="names of cases, * allowed")
    options = p.parse_args()
    for program in (options.old, options.new):
        if not shutil.which(program):
            p.error(f"{program} is no program; expected a built vitrail")
    different = tried = 0
    with tempfile.TemporaryDirectory(prefix="vitrail-same-") as temporary:
        home = pathlib.Path(temporary)
        (home / "data").mkdir()
        write_idx(home / "data")
        for i, (name, result) in enumerate(cases(options.device, home / "data")):
            if not any(fnmatch.fnmatch(name, only) for only in options.only):
                continue
            same = result(options.old, home / f"{i}-old") == result(options.new, home / f"{i}-new")
            tried, different = tried + 1, different + (not same)
            print(f"{name}: {'the same bits' if same else 'DIFFERENT'}", flush=True)
    print(f"{tried} cases, {different} different")
    return 1 if different or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
