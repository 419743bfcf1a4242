"""Where the rows of audit.py are tried: a folder for each, the program, small runs, images and weight files."""
import json
import os
import random
import shutil
import subprocess
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/golden/models"
CAT = ROOT / "examples/images/chelsea.png"
SMALL = {"model": {"image": 8, "patch": 4, "width": 16, "depth": 1, "heads": 2, "mlp": 32},
         "data": {"train": "synthetic:3x8x8x4x64"},
         "train": {"batch": 8, "steps": 4, "log_every": 1, "tensorboard": False}}


class Broken(Exception):
    pass


class Skipped(Exception):
    pass


def expect(condition, seen):
    if not condition:
        raise Broken(seen)


def said(done):
    """How a command ended, in few words."""
    if done.returncode is None:
        return "still running when its time was up"
    lines = [line for line in done.stderr.splitlines() if line.startswith("error")] or done.stderr.splitlines()[-1:]
    return f"exit {done.returncode}" + (f", {lines[0]}" if lines else "")


def png(pixels, width, height):
    """An RGB image of 3 * width * height bytes."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    rows = b"".join(b"\0" + pixels[y * 3 * width:(y + 1) * 3 * width] for y in range(height))
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def read_safetensors(path):
    """name -> (dtype, shape, bytes), and the metadata."""
    raw = Path(path).read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    metadata = header.pop("__metadata__", {})
    return {name: (t["dtype"], t["shape"], raw[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
            for name, t in header.items()}, metadata


def write_safetensors(path, tensors, metadata=None):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    Path(path).write_bytes(len(text).to_bytes(8, "little") + text + b"".join(t[2] for t in tensors.values()))


class Place:
    def __init__(self, program, shim, tmp):
        self.program, self.shim, self.tmp = program, shim, tmp
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("VITRAIL_")}
        self.env["XDG_CONFIG_HOME"] = "/nonexistent"  # what was tuned on this machine is no part of it

    def run(self, *arguments, env=None, limit=60, **more):
        """A finished command; its returncode is None when it was still running after `limit` seconds."""
        command = [self.program, *arguments]
        try:
            return subprocess.run(command, env={**self.env, **(env or {})}, timeout=limit, stdin=subprocess.DEVNULL,
                                  capture_output=True, encoding="utf-8", errors="backslashreplace", **more)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, None, "", "")

    def ok(self, *arguments, **more):
        done = self.run(*arguments, **more)
        expect(done.returncode == 0, f"{arguments[0]}: {said(done)}")
        return done

    def answer(self, *arguments, **more):
        return json.loads(self.ok(*arguments, "--json", **more).stdout)

    def probabilities(self, model, *more, image=CAT, **settings):
        """class -> probability, to four places."""
        top = self.answer("predict", "-m", model, image, "-k", "5", *more, **settings)["top"]
        return {row["class"]: round(row["prob"], 4) for row in top}

    def config(self, **sections):
        """The small run's config with some values changed, or left out where they are None."""
        both = {key: {**SMALL.get(key, {}), **sections.get(key, {})} for key in {**SMALL, **sections}}
        merged = {key: {k: v for k, v in section.items() if v is not None} for key, section in both.items()}
        path = self.tmp / "run.json"
        path.write_text(json.dumps(merged))
        return path

    def training(self, out, *more, **sections):
        """The arguments of a small run."""
        return ["train", "--config", self.config(**sections), "--out", self.tmp / out, *more]

    def log(self, out="run"):
        path = self.tmp / out / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def start(self, *arguments, **more):
        """A process whose first line of output has been read."""
        process = subprocess.Popen([self.program, *arguments], env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
        process.stdout.readline()
        return process

    def noise(self, name="images", count=24, classes=("a", "b"), side=8, seed=1):
        """A folder of images of noise, the classes by turns."""
        draw, folder = random.Random(seed), self.tmp / name
        for number in range(count):
            path = folder / classes[number % len(classes)] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(draw.randbytes(3 * side * side), side, side))
        return folder

    def model(self, name, change=None, to="model"):
        """A copy of a golden model's folder with its config changed."""
        folder = self.tmp / to
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(MODELS / name, folder)
        if change:
            config = json.loads((folder / "config.json").read_text())
            change(config)
            (folder / "config.json").write_text(json.dumps(config))
        return folder

    def faulted(self, watched, **settings):
        """The environment in which the shim disturbs operations on files below a folder."""
        if not self.shim:
            raise Skipped("needs --shim")
        return {"LD_PRELOAD": str(self.shim), "FAULT_ROOT": str(watched), **settings}
