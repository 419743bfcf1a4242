#!/usr/bin/env python3
"""Writes the small weight files of tests/data/io with numpy, torch and safetensors.

Every element follows one rule that tests/io/samples.h repeats: element i of a tensor whose name has n
bytes is (3 i + n) mod 11 - 5, its absolute value in unsigned types, whether it is positive in bool.
Run from the repository root: python3 tools/make_io_samples.py
"""
import argparse
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

OUT = Path("tests/data/io")


def values(name, shape, dtype):
    count = int(np.prod(shape))
    v = (3 * np.arange(count) + len(name)) % 11 - 5
    if dtype == np.bool_:
        v = v > 0
    elif dtype == np.uint8:
        v = np.abs(v)
    return v.astype(dtype).reshape(shape)


def tensor(name, shape, dtype=torch.float32):
    plain = {torch.bool: np.bool_, torch.uint8: np.uint8}.get(dtype, np.float64)
    return torch.from_numpy(values(name, shape, plain)).to(dtype)


def raw_bf16(name, shape):
    return tensor(name, shape, torch.bfloat16).view(torch.int16).numpy().view(np.dtype("V2"))


def numpy_files():
    kinds = {"f4": np.float32, "f2": np.float16, "f8": np.float64, "i1": np.int8, "i2": np.int16,
             "i4": np.int32, "i8": np.int64, "u1": np.uint8, "b1": np.bool_}
    arrays = {f"Transformer/{k}": values(f"Transformer/{k}", (2, 3), t) for k, t in kinds.items()}
    arrays["scalar"] = values("scalar", (), np.float32)
    arrays["empty"] = values("empty", (0, 4), np.float32)
    arrays["columns"] = np.asfortranarray(values("columns", (2, 3, 4), np.float32))
    arrays["bf16"] = raw_bf16("bf16", (3,))
    np.savez(OUT / "numpy.npz", **arrays)
    np.savez_compressed(OUT / "numpy_compressed.npz", **arrays, zeros=np.zeros(100000, np.float32))
    np.savez(OUT / "objects.npz", things=np.array([{"a": 1}], dtype=object))


class RunsCommand:
    def __reduce__(self):
        return os.system, ("echo this must never run",)


def torch_files():
    kinds = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
             "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8,
             "bool": torch.bool}
    weights = {k: tensor(k, (2, 3), t) for k, t in kinds.items()}
    weights["scalar"] = tensor("scalar", ())
    weights["parameter"] = torch.nn.Parameter(tensor("parameter", (4,)))
    weights["transposed"] = tensor("transposed", (3, 4)).t().contiguous().t()
    flat = torch.cat([torch.full((5,), 99.0), tensor("slice", (4,)), torch.full((3,), 99.0)])
    weights["slice"] = flat[5:9]
    weights["steps"] = 7
    training = {"model": {"f32": torch.zeros(6)}, "model_ema": weights, "epoch": 3, "loss": 0.5,
                "big": 10**30, "history": [1, (2.5, None), True], "best": np.float64(0.25),
                "args": argparse.Namespace(lr=1e-3, name="run", size=torch.Size([1, 2]))}
    torch.save(training, OUT / "training.pth")
    torch.save(training, OUT / "training_protocol4.pth", pickle_protocol=4)
    layer = torch.nn.Linear(3, 2)
    layer.load_state_dict({k: tensor(k, v.shape) for k, v in layer.state_dict().items()})
    torch.save(layer.state_dict(), OUT / "state_dict.pth")
    torch.save(layer, OUT / "whole_module.pth")
    torch.save({"a": RunsCommand()}, OUT / "runs_command.pth")
    torch.save(layer.state_dict(), OUT / "legacy.pth", _use_new_zipfile_serialization=False)
    deflate(OUT / "state_dict.pth", OUT / "state_dict_deflated.pth")


def deflate(source, target):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))


def safetensors_files():
    kinds = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
             "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
             "BOOL": torch.bool}
    tensors = {k: tensor(k, (2, 3), t) for k, t in kinds.items()}
    tensors["scalar"] = tensor("scalar", ())
    tensors["empty"] = tensor("empty", (0, 4))
    save_file(tensors, OUT / "all_types.safetensors", metadata={"format": "pt", "note": "é"})
    save_file({"f8": torch.zeros(4, dtype=torch.float8_e4m3fn)}, OUT / "float8.safetensors")
    folder = OUT / "sharded"
    folder.mkdir(exist_ok=True)
    shards = {"model-00001-of-00002.safetensors": ["first.weight", "first.bias"],
              "model-00002-of-00002.safetensors": ["second.weight"]}
    for file, names in shards.items():
        save_file({n: tensor(n, (2, 3)) for n in names}, folder / file, metadata={"format": "pt"})
    index = {"metadata": {"total_size": 72}, "weight_map": {n: f for f, names in shards.items() for n in names}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    numpy_files()
    torch_files()
    safetensors_files()
    (OUT / "lfs_pointer.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 346284714\n")
    for file in OUT.rglob("*.*"):
        file.chmod(0o644)


if __name__ == "__main__":
    main()
